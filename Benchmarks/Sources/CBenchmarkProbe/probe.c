// For the calls that strict C leaves out, and the names of the GNU C library's own functions.
#define _GNU_SOURCE
#include "CBenchmarkProbe.h"

#include <time.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

static atomic_bool counting;
static atomic_ullong allocations;

void probe_count_allocations(bool isOn) { atomic_store(&counting, isOn); }

uint64_t probe_allocations(void) { return atomic_load(&allocations); }

// The content of a small file of the system, without using the heap. Its length, or 0.
static size_t read_small(const char *path, char *buffer, size_t size) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  ssize_t count = read(descriptor, buffer, size - 1);
  close(descriptor);
  if (count <= 0) return 0;
  buffer[count] = 0;
  return (size_t)count;
}

uint64_t probe_anonymous_bytes(void) {
  char text[256];
  unsigned long long resident, ofFiles;
  if (!read_small("/proc/self/statm", text, sizeof text)) return 0;
  if (sscanf(text, "%*u %llu %llu", &resident, &ofFiles) != 2) return 0;
  return (resident - ofFiles) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void probe_trim_heap(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

static uint64_t field(const char *text, const char *name) {
  const char *place = strstr(text, name);
  return place ? strtoull(place + strlen(name), NULL, 10) : 0;
}

void probe_written(uint64_t *passed, uint64_t *toDevice) {
  char text[512];
  *passed = *toDevice = 0;
  if (!read_small("/proc/self/io", text, sizeof text)) return;
  *passed = field(text, "wchar: ");
  *toDevice = field(text, "\nwrite_bytes: ");
}

uint64_t probe_file_bytes(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  // Some file systems choose the blocks only now.
  struct stat status = {0};
  uint64_t bytes = 0;
  if (fsync(descriptor) == 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
    bytes = (uint64_t)status.st_blocks * 512;
  close(descriptor);
  return bytes;
}

void probe_sync_all(void) { sync(); }

#if defined(__GLIBC__)

bool probe_counts_allocations(void) { return true; }

// Defined in the executable, these come before those of the C library, for every library that the
// process loads.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static inline void count(void) {
  if (atomic_load_explicit(&counting, memory_order_relaxed))
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
  count();
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  count();
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *result = memory;
  return 0;
}

#else

bool probe_counts_allocations(void) { return false; }

#endif

double probe_cpu_seconds(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int64_t probe_thread_nanoseconds(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int probe_sync(int descriptor) {
#if defined(__APPLE__)
  return fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : errno;
#else
  return fdatasync(descriptor) == 0 ? 0 : errno;
#endif
}

int probe_reserve(int descriptor, int64_t size) {
#if defined(__APPLE__)
  fstore_t request = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, size, 0};
  if (fcntl(descriptor, F_PREALLOCATE, &request) != 0) return errno;
  return ftruncate(descriptor, size) == 0 ? 0 : errno;
#else
  return posix_fallocate(descriptor, 0, size);
#endif
}

int probe_write(int descriptor, const void *bytes, size_t size, int64_t offset) {
  const char *from = bytes;
  while (size > 0) {
    ssize_t count = pwrite(descriptor, from, size, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    from += count;
    offset += count;
    size -= (size_t)count;
  }
  return 0;
}
