/*
 * What `gotrace attach` saw of the program's threads while they stood still, as it hands that to
 * the library: what each waits in, and its stack, which nobody can walk from inside of the process
 * for want of the registers. By the time that it is read threads have gone on: met.c looks who has
 * not.
 */
#ifndef GT_PICTURE_H
#define GT_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

/* A system call, as /proc/PID/syscall tells it. */
struct gt_call_now {
    int64_t number;
    uint64_t argument[6];
    uint64_t sp, pc; /* where it was made, or will be again */
};

struct gt_pictured {
    uint32_t bytes; /* of all that is of this thread */
    uint32_t tid;   /* as the process calls it */
    uint64_t self;  /* its pthread_t; 0: not known */
    struct gt_call_now call;
    uint64_t lock;    /* what it waits for, by its address as hooks have it; 0: nothing has one */
    uint32_t leaf;    /* the function of libc's, if no other is found in its stack; or 0 */
    uint8_t reason;   /* enum gt_reason */
    uint8_t kind;     /* enum gt_lock_kind */
    bool timed;       /* it ends by itself */
    uint8_t of_libc;  /* so many of the frames, the innermost, are libc's */
    uint32_t frames;  /* the innermost first */
    uint32_t routine; /* the outermost that is the program's, of these; UINT32_MAX: not known */
    uint32_t words;   /* of the stack at which there are return addresses */
    uint64_t more[];  /* PCs, return addresses but for the first; then where words are, and what */
};

struct gt_picture {
    uint64_t leaves; /* gt_real_names: who has made this calls functions by the same numbers */
    uint32_t n;
    uint32_t bytes; /* of all threads */
    struct gt_pictured first[];
};

static inline const struct gt_pictured *gt_pictured_after(const struct gt_pictured *p)
{
    return (const struct gt_pictured *)((uintptr_t)p + p->bytes);
}

#endif
