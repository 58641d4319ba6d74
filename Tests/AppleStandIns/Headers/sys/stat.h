// Darwin's sys/stat.h, as far as Sources/CAirDbPlatform uses it.
#pragma once
#include <sys/types.h>

struct stat {
  off_t st_size;
};

int fstat(int descriptor, struct stat *status);
