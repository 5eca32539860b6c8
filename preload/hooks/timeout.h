/* When waits and calls end by themselves: what a hook knows of that from its arguments. */
#ifndef GT_TIMEOUT_H
#define GT_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

struct gt_timeout {
    uint64_t ns;           /* after so long; 0: not known, or at `until` */
    clockid_t clock;       /* of that */
    struct timespec until; /* zeros: not known */
};

static inline struct gt_timeout gt_timeout_after(uint64_t ns)
{
    return (struct gt_timeout){.ns = ns};
}

static inline bool gt_timeout_is_set(const struct gt_timeout *timeout)
{
    return timeout->ns || timeout->until.tv_sec || timeout->until.tv_nsec;
}

/*
 * As the caller's argument has it, which may be no memory at all: the kernel is to say so. Before
 * the call: afterwards it may not be there any more.
 */
struct gt_timeout gt_timeout_for(const struct timespec *time);
struct gt_timeout gt_timeout_for_timeval(const struct timeval *time);

/* Clocks of CPU time say nothing of when a wait is over. */
bool gt_timeout_is_time(clockid_t clock);
struct gt_timeout gt_timeout_at(clockid_t clock, const struct timespec *time);

/* When what begins at `since` will be over, in trace time; 0: not known. */
uint64_t gt_timeout_due(const struct gt_timeout *timeout, uint64_t since, unsigned per_mille);

/*
 * It is over, and nobody has ended what began at `since`: when that was, in trace time; 0: not
 * known. *_PER_MILLE: what the kernel may add, of its time.
 */
enum { GT_SLEEP_PER_MILLE = 1, GT_POLL_PER_MILLE = 5 };
uint64_t gt_timeout_over(const struct gt_timeout *timeout, uint64_t since, unsigned per_mille);

#endif
