#include "compression.h"

#include <limits.h>
#include <lz4.h>

// Apple's LZ4 with a frame would not be readable elsewhere, so whoever asks for it gets nothing.
static int accepts(size_t target_size, size_t source_size, compression_algorithm algorithm) {
  return algorithm == COMPRESSION_LZ4_RAW && target_size > 0 && target_size <= INT_MAX &&
         source_size > 0 && source_size <= INT_MAX;
}

size_t compression_encode_buffer(uint8_t *target, size_t target_size, const uint8_t *source,
                                 size_t source_size, void *scratch,
                                 compression_algorithm algorithm) {
  (void)scratch;
  if (!accepts(target_size, source_size, algorithm)) return 0;
  int size = LZ4_compress_default((const char *)source, (char *)target, (int)source_size,
                                  (int)target_size);
  return size > 0 ? (size_t)size : 0;
}

size_t compression_decode_buffer(uint8_t *target, size_t target_size, const uint8_t *source,
                                 size_t source_size, void *scratch,
                                 compression_algorithm algorithm) {
  (void)scratch;
  if (!accepts(target_size, source_size, algorithm)) return 0;
  int size = LZ4_decompress_safe_partial((const char *)source, (char *)target, (int)source_size,
                                         (int)target_size, (int)target_size);
  return size > 0 ? (size_t)size : 0;
}
