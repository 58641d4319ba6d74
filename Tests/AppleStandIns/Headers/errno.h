// Darwin's errno.h, as far as Sources/CAirDbPlatform uses it.
#pragma once

int *__error(void);
#define errno (*__error())

#define ENOTSUP 45
#define EOPNOTSUPP 102
