// Looks at the heap of the process, for measurements in tests.
#ifndef CHEAPPROBE_H
#define CHEAPPROBE_H

#include <stddef.h>

/// Bytes that have been allocated and not freed; 0 where the system cannot say.
size_t heap_bytes_in_use(void);

#endif
