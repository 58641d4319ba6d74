// Darwin's sys/types.h, as far as Sources/CAirDbPlatform uses it.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int64_t off_t;
