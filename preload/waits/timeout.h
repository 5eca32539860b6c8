/* Timeouts of waits and calls: what a hook knows of them from its arguments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

struct gt_timeout {
    uint64_t ns;           /* the timeout's length; 0: not known, or it ends at `until` */
    clockid_t clock;       /* of `until` */
    struct timespec until; /* zeros: not known */
};

/* No timeout, or none that is known. */
static inline struct gt_timeout gt_timeout_none(void)
{
    return (struct gt_timeout){.ns = 0};
}

/* ns: after 0 ns the kernel is not asked to wait, but looks first. */
static inline struct gt_timeout gt_timeout_after(uint64_t ns)
{
    return (struct gt_timeout){.ns = ns ? ns : 1};
}

static inline bool gt_timeout_is_set(const struct gt_timeout *timeout)
{
    return timeout->ns || timeout->until.tv_sec || timeout->until.tv_nsec;
}

/*
 * The timeout in an argument of the program's call. The pointer may be invalid; then the kernel
 * must report that, not us. Called before the real call: afterwards the memory may be gone.
 */
struct gt_timeout gt_timeout_for(const struct timespec *time);
struct gt_timeout gt_timeout_for_timeval(const struct timeval *time);

/* false for clocks of CPU time, which do not say when a wait is over. */
bool gt_timeout_is_time(clockid_t clock);
struct gt_timeout gt_timeout_at(clockid_t clock, const struct timespec *time);

/* Whether the timeout ends at a time that is valid and still to come. */
bool gt_timeout_is_ahead(const struct gt_timeout *timeout);

/*
 * When a wait or call that begins at `since` will be over, in trace time; 0: not known. If its
 * timeout was over before it began, that is as soon as the kernel has looked.
 */
uint64_t gt_timeout_due(const struct gt_timeout *timeout, uint64_t since, unsigned per_mille);

/* Whether gt_timeout_due returned `due` because the timeout was over before `since`. */
bool gt_timeout_is_past(uint64_t since, uint64_t due);

/*
 * When a wait or call that began at `since` reached its timeout, in trace time; 0: not known. No
 * other thread ended it. due: what gt_timeout_due returned at its begin. *_PER_MILLE: how much the
 * kernel may add, as a share of the timeout.
 */
enum { GT_SLEEP_PER_MILLE = 1, GT_POLL_PER_MILLE = 5 };
uint64_t gt_timeout_over(const struct gt_timeout *timeout, uint64_t since, uint64_t due,
                         unsigned per_mille);
