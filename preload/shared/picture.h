/*
 * The picture: the state of the program's threads as `gotrace attach` saw it while they stood
 * still, passed to the library. It holds the call in which each thread waits, and its stack, which
 * the library cannot walk without the thread's registers. By the time that the library reads the
 * picture, threads have run on: met.c finds the threads that still stand in their call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A system call, as in /proc/PID/syscall. */
struct gt_call_now {
    int64_t number;
    uint64_t argument[6];
    uint64_t sp, pc; /* where the thread made the call, or will restart it */
};

struct gt_pictured {
    uint32_t bytes; /* size of this thread's record */
    uint32_t tid;   /* in the process's own PID namespace */
    uint64_t self;  /* pthread_t; 0: not known */
    struct gt_call_now call;
    uint64_t lock;    /* address of what the thread waits for, as in hooks; 0: none */
    uint32_t leaf;    /* libc's function, used if the stack shows no other one; 0: none */
    uint8_t reason;   /* enum gt_reason */
    uint8_t kind;     /* enum gt_lock_kind */
    bool timed;       /* the wait has a timeout */
    uint8_t of_libc;  /* number of innermost frames that are libc's */
    uint32_t frames;  /* number of frames in `more`, the innermost first */
    uint32_t routine; /* index of the outermost frame that is the program's; UINT32_MAX: unknown */
    uint32_t words;   /* number of stack words with return addresses in `more` */
    uint64_t more[];  /* PCs, the first exact, then return addresses; then (address, word) pairs */
};

struct gt_picture {
    uint64_t leaves; /* gt_real_names: equal if `gotrace` and library number functions alike */
    uint32_t n;
    uint32_t bytes; /* size of all records */
    struct gt_pictured first[];
};

static inline const struct gt_pictured *gt_pictured_after(const struct gt_pictured *p)
{
    return (const struct gt_pictured *)((uintptr_t)p + p->bytes);
}
