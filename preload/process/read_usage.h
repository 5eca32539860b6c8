/* Reads from the kernel what threads have used (CPU time, switches, faults), for the encoder. */
#pragma once

#include "encoder/cpu/sched.h"
#include "encoder/format/usage.h"

/* See gt_usage_fn. With a tid: drain side, or while there is only one thread. tid 0, the caller:
 * any thread. */
bool gt_usage_read(uint32_t tid, unsigned wanted, struct gt_usage *usage);

/* The calling thread's voluntary context switches; UINT64_MAX: not known. Any thread. */
uint64_t gt_usage_own_waits(void);

/* See gt_halts_fn. Drain side. */
void gt_usage_halts(struct gt_halts_count *count);

/* See gt_where_fn. Drain side. */
bool gt_usage_where(uint32_t tid, struct gt_where_now *where);

/* Whether the thread sleeps in a system call. first: the call's first argument. Drain side. */
bool gt_usage_sleeps(uint32_t tid, uintptr_t *first);

/* Notes, and asks, whether the drain thread, which calls gt_usage_read, has a descriptor table of
 * its own. */
void gt_usage_apart(void);
bool gt_usage_is_apart(void);

/*
 * Reads the file `name` of /proc about a thread as a text. Returns its length; 0: it cannot be
 * read. For the callers that may call gt_usage_read with a tid.
 */
size_t gt_usage_read_file(char *text, size_t size, uint32_t tid, const char *name);

/* Reads no clock of a thread from here on (seccomp.c). Any thread. */
void gt_usage_forbid(void);

/* Called in a forked child, which has no drain thread. */
void gt_usage_after_fork(void);
