// Darwin's sys/sysctl.h, as far as Sources/CAirDbPlatform uses it.
#pragma once
#include <sys/types.h>

int sysctlbyname(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
