#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "CAirDbPlatform.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int airdb_reserve(int descriptor, uint64_t offset, uint64_t count) {
#if defined(__linux__)
  return fallocate(descriptor, 0, (off_t)offset, (off_t)count) == 0 ? 0 : errno;
#elif defined(__APPLE__)
  struct stat status;
  if (fstat(descriptor, &status) != 0) return errno;
  off_t end = (off_t)(offset + count);
  if (end <= status.st_size) return 0;
  // F_PREALLOCATE counts from the physical end of the file and leaves its size alone.
  fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, end - status.st_size, 0};
  if (fcntl(descriptor, F_PREALLOCATE, &store) != 0) return errno == ENOTSUP ? EOPNOTSUPP : errno;
  return ftruncate(descriptor, end) == 0 ? 0 : errno;
#else
  return EOPNOTSUPP;
#endif
}
