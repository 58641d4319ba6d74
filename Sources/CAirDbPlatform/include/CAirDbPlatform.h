// Small pieces that Swift cannot express: hardware CRC32C and calls that its C importer hides.
#ifndef CAIRDB_PLATFORM_H
#define CAIRDB_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

/// CRC32C (Castagnoli, RFC 3720 appendix B.4) of `count` bytes, continued from `crc`, the value
/// for the bytes before them (0 at the start). By instruction where the processor has one.
uint32_t airdb_crc32c(uint32_t crc, const void *bytes, size_t count);

/// The same by table, on every processor; the tests hold the two against each other.
uint32_t airdb_crc32c_portable(uint32_t crc, const void *bytes, size_t count);

/// Allocates a range of a file and extends the file where it passes the end. 0, or errno;
/// EOPNOTSUPP where the file system cannot.
int airdb_reserve(int descriptor, uint64_t offset, uint64_t count);

#endif
