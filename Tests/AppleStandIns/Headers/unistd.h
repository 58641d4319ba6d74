// Darwin's unistd.h, as far as Sources/CAirDbPlatform uses it.
#pragma once
#include <sys/types.h>

int ftruncate(int descriptor, off_t size);
