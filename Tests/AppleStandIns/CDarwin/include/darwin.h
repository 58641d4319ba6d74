// Stands in for <os/lock.h> and the commands of fcntl(2) that only Darwin knows.
#ifndef DARWIN_STAND_IN_H
#define DARWIN_STAND_IN_H

#include <stdint.h>

#pragma clang assume_nonnull begin

#define F_FULLFSYNC 51

typedef struct os_unfair_lock_s {
  uint32_t _os_unfair_lock_opaque;
} os_unfair_lock, *os_unfair_lock_t;

void os_unfair_lock_lock(os_unfair_lock_t lock);

/// Ends the process if the calling thread does not hold the lock, as the system does.
void os_unfair_lock_unlock(os_unfair_lock_t lock);

#pragma clang assume_nonnull end

#endif
