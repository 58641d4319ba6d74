// Stands in for Apple's Compression framework where the package is built with
// AIRDB_APPLE_STAND_INS: the declarations that the engine uses, as Swift sees those of Apple.
#ifndef COMPRESSION_STAND_IN_H
#define COMPRESSION_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
  /// LZ4 in a frame of Apple's own: not what a store holds.
  COMPRESSION_LZ4 = 0x100,
  /// LZ4 blocks as everybody writes them.
  COMPRESSION_LZ4_RAW = 0x101,
} compression_algorithm;

/// The number of bytes written, or 0 if the result does not fit or the call fails.
size_t compression_encode_buffer(uint8_t *target, size_t target_size, const uint8_t *source,
                                 size_t source_size, void *_Nullable scratch,
                                 compression_algorithm algorithm);

/// The number of bytes written, or 0 if the source is malformed. A result that does not fit is
/// cut: the first `target_size` bytes are written and `target_size` is returned.
size_t compression_decode_buffer(uint8_t *target, size_t target_size, const uint8_t *source,
                                 size_t source_size, void *_Nullable scratch,
                                 compression_algorithm algorithm);

#pragma clang assume_nonnull end

#endif
