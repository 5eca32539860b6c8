/* See timeout.h. */
#include "timeout.h"

#include "encoder/base/clock.h"
#include "preload/stacks/code_layouts.h"
#include "preload/thread/thread.h"

/* Linux's timer slack, for threads that did not choose another: prctl(2). */
enum { SLACK_NS = 50000, HOUR_S = 3600 };
#define HOUR_NS (HOUR_S * INT64_C(1000000000))

/*
 * Copies a time of the program's if it can be read and is valid. The page of our own frame can be
 * read; about others the kernel is asked.
 */
static bool copy_time(struct timespec *to, const struct timespec *from)
{
    enum { PAGE = 4096 };
    uintptr_t at = (uintptr_t)from, here = (uintptr_t)__builtin_frame_address(0);
    bool near = at / PAGE == here / PAGE && (at + sizeof *from - 1) / PAGE == here / PAGE;
    bool readable = from && (near || gt_can_read(from, sizeof *from));
    if (readable)
        *to = *from;
    return readable && to->tv_sec >= 0 && to->tv_nsec >= 0 && to->tv_nsec < 1000000000;
}

/* unit_ns: how many ns a unit of the time's second word has. */
static struct gt_timeout after_time(const struct timespec *time, uint64_t unit_ns)
{
    struct timespec t = {0};
    if (!gt_recording() || !copy_time(&t, time) || t.tv_sec > HOUR_S)
        return gt_timeout_none();
    return gt_timeout_after((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec * unit_ns);
}

struct gt_timeout gt_timeout_for(const struct timespec *time)
{
    return after_time(time, 1);
}

struct gt_timeout gt_timeout_for_timeval(const struct timeval *time)
{
    return after_time((const struct timespec *)time, 1000);
}

bool gt_timeout_is_time(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
           clock == CLOCK_TAI;
}

struct gt_timeout gt_timeout_at(clockid_t clock, const struct timespec *time)
{
    struct gt_timeout timeout = {.clock = clock};
    struct timespec t = {0};
    if (gt_recording() && gt_timeout_is_time(clock) && copy_time(&t, time))
        timeout.until = t;
    return timeout;
}

/* How long the timeout is ahead; negative: how long it has been over. A time further away than an
 * hour is more than an hour. false: not known. */
static bool read_left(const struct gt_timeout *timeout, int64_t *ns)
{
    enum { FAR_S = HOUR_S + 2 };
    struct timespec now;
    if (!timeout->until.tv_sec || gt_clock_read(timeout->clock, &now) != 0)
        return false;
    int64_t s = timeout->until.tv_sec - now.tv_sec;
    s = s > FAR_S ? FAR_S : s < -FAR_S ? -FAR_S : s;
    *ns = s * 1000000000 + timeout->until.tv_nsec - now.tv_nsec;
    return true;
}

static uint64_t over_at(const struct gt_timeout *timeout)
{
    int64_t left;
    if (!read_left(timeout, &left) || -left <= SLACK_NS || -left > HOUR_NS)
        return 0;
    return gt_clock_now() - gt_clock_units((uint64_t)-left - SLACK_NS);
}

bool gt_timeout_is_ahead(const struct gt_timeout *timeout)
{
    int64_t left;
    return read_left(timeout, &left) && left > 0;
}

/* When a wait or call that begins at `since` is over, if its timeout was over before. */
static uint64_t at_once(uint64_t since)
{
    return since + gt_clock_units(SLACK_NS);
}

static uint64_t due_at(const struct gt_timeout *timeout, uint64_t since)
{
    int64_t left;
    if (!read_left(timeout, &left) || left > HOUR_NS)
        return 0;
    return left > 0 ? gt_clock_now() + gt_clock_units((uint64_t)left + SLACK_NS) : at_once(since);
}

static uint64_t over_after(const struct gt_timeout *timeout, uint64_t since, unsigned per_mille)
{
    return since + gt_clock_units(timeout->ns + timeout->ns / 1000 * per_mille + SLACK_NS);
}

uint64_t gt_timeout_due(const struct gt_timeout *timeout, uint64_t since, unsigned per_mille)
{
    return timeout->ns ? over_after(timeout, since, per_mille) : due_at(timeout, since);
}

bool gt_timeout_is_past(uint64_t since, uint64_t due)
{
    return due && due == at_once(since);
}

uint64_t gt_timeout_over(const struct gt_timeout *timeout, uint64_t since, uint64_t due,
                         unsigned per_mille)
{
    if (gt_timeout_is_past(since, due))
        return due;
    uint64_t at = timeout->ns ? over_after(timeout, since, per_mille) : over_at(timeout);
    return at > since ? at : 0; /* the program used another clock */
}
