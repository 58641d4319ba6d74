#define _GNU_SOURCE
#include "darwin.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

// As on Darwin the word of a held lock tells its thread, and that of a free one is zero.
static uint32_t this_thread(void) { return (uint32_t)gettid(); }

void os_unfair_lock_lock(os_unfair_lock_t lock) {
  uint32_t thread = this_thread();
  uint32_t expected = 0;
  while (!__atomic_compare_exchange_n(&lock->_os_unfair_lock_opaque, &expected, thread, 0,
                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    if (expected == thread) abort();
    expected = 0;
    sched_yield();
  }
}

void os_unfair_lock_unlock(os_unfair_lock_t lock) {
  uint32_t expected = this_thread();
  if (!__atomic_compare_exchange_n(&lock->_os_unfair_lock_opaque, &expected, 0, 0,
                                   __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    abort();
  }
}
