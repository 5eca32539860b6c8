/*
 * The owner of a lock: the kernel's id of the thread that holds it, as libc and the kernel keep it
 * there. Reading it writes nothing and takes no lock; the answer may be out of date at once.
 */
#pragma once

#include "preload/shared/lock_kind.h"

#include <stdint.h>

/*
 * The lock that threads at an address wait for. A read-write lock has two addresses
 * (sync_rwlock.c).
 */
static inline const void *gt_lock_at(const void *addr)
{
    return (const void *)((uintptr_t)addr & ~(uintptr_t)1);
}

/*
 * The lock's owner, a thread's number or a value of enum gt_holder. The lock's memory must be
 * readable. The number is the kernel's, in the pid namespace of the owner, which may differ from
 * ours for a lock that processes share. Any context.
 */
uint32_t gt_owner_of(enum gt_lock_kind kind, const void *lock);

/* In a forked child. before: the calling thread's number in the parent. */
void gt_owner_forked(uint32_t before);
