/*
 * Python's global interpreter lock, from 3.7 on. CPython builds it from condition variables, so
 * libc does not know it as a lock. A thread that finds it held waits at `cond` until the holder
 * signals there. A holder that was asked to give the lock up then waits at `switch_cond` until
 * another thread has taken the lock.
 *
 * Both waits are for one lock, whose address is the one of `cond`. A free-threaded Python has no
 * such lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_gil_wait {
    GT_GIL_NONE,  /* it is no wait for a GIL */
    GT_GIL_TAKE,  /* the thread waits until the GIL is free */
    GT_GIL_SWITCH /* the thread has given the GIL up, and waits until another thread has it */
};

/*
 * What a wait at `cond` is, for which the thread gives up `mutex`, by a function called at pc. The
 * caller holds the mutex.
 */
enum gt_gil_wait gt_gil_waits(const void *cond, const void *mutex, const void *pc);

/* Whether a thread has waited at this address for a GIL. */
bool gt_gil_is(const void *cond);

/* Whether the GIL is free. The caller holds the GIL's mutex. */
bool gt_gil_is_free(const void *cond);

/* The kernel's number of the thread that has the GIL; 0: none has it, or it is not known. */
uint32_t gt_gil_owner(const void *cond);

/*
 * Writes the name of the GIL, or of its mutex, that has that address. The GIL of a subinterpreter
 * has a number. false: no GIL is there.
 */
bool gt_gil_name(uint64_t address, char *name, size_t size);
