// Darwin's stdlib.h, as far as the compiler's own headers use it.
#pragma once
#include <stddef.h>

void *malloc(size_t size);
void free(void *memory);
