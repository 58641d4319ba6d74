// What a benchmark wants to know about its process, and the system calls of the raw baseline.
#ifndef CBENCHMARKPROBE_H
#define CBENCHMARKPROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Starts or stops counting allocations. While it is off, an allocation costs one look at a flag.
void probe_count_allocations(bool isOn);

/// Allocations while counting was on: calls of malloc, calloc, realloc and the aligned ones, by all
/// threads and libraries of the process. Zero where the C library's functions cannot be wrapped.
uint64_t probe_allocations(void);

/// Whether allocations can be counted here.
bool probe_counts_allocations(void);

/// User and system time of the process, in seconds.
double probe_cpu_seconds(void);

/// User and system time of the calling thread, in nanoseconds.
int64_t probe_thread_nanoseconds(void);

/// Memory of the process that is not that of files, in bytes; zero where the system cannot say.
uint64_t probe_anonymous_bytes(void);

/// Gives the system back what the heap has free, so that what is allocated afterwards shows.
void probe_trim_heap(void);

/// Bytes that the process passed to write calls, and those that it made the system write to the
/// device, now or later. Zero where the system cannot say.
void probe_written(uint64_t *passed, uint64_t *toDevice);

/// Bytes of the device that a file takes, once it is written.
uint64_t probe_file_bytes(const char *path);

/// Makes everything that any process wrote reach the device.
void probe_sync_all(void);

/// Makes the data of a file survive a loss of power. Zero, or an errno.
int probe_sync(int descriptor);

/// Reserves space for a file and sets its size. Zero, or an errno.
int probe_reserve(int descriptor, int64_t size);

/// Writes all of a buffer at the offset. Zero, or an errno.
int probe_write(int descriptor, const void *bytes, size_t size, int64_t offset);

#endif
