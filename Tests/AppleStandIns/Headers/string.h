// Darwin's string.h, as far as Sources/CAirDbPlatform uses it.
#pragma once
#include <stddef.h>

void *memcpy(void *target, const void *source, size_t count);
