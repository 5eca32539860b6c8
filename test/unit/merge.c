/*
 * The order of events (encoder/cpu/merge.h) with absences from the CPU, and of events that
 * contradict each other: each scene is the events of threads and when one was away, and what
 * becomes of that. Times are those of the trace's clock, a nanosecond each; 300 of them are the
 * clocks' uncertainty.
 */
#include "encoder/cpu/merge.h"

#include "encoder/base/clock.h"

#include "check.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

enum { M = 7, CPU = 2, P = 3, G = 5, OTHER_M = 8, OTHER_P = 4, OTHER_G = 6, STACK = 9 };

static int clock_of_scene(clockid_t clock, struct timespec *ts)
{
    static long ns;
    (void)clock;
    ns += 1000000;
    *ts = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

/* What there is ------------------------------------------------------------------------------ */

static uint32_t gen;
static struct gt_buf *first, **last;
static uint64_t now;
static struct gt_absence away[8];
static size_t n_away;

static void scene(void)
{
    gen++;
    gt_merge_reset(&gt_merge_for_sched);
    first = NULL;
    last = &first;
    n_away = 0;
}

static void thread(uint32_t m, uint64_t ts)
{
    struct gt_buf *buf = gt_buffers_get(true);
    *last = buf;
    last = &buf->next;
    *last = NULL;
    buf->m = m;
    buf->ts = now = ts;
    buf->used = 0;
}

static void event(enum gt_event_type type, uint64_t ts, ...)
{
    struct gt_buf *buf = first;
    va_list args;
    while (buf->next)
        buf = buf->next;
    uint8_t *p = buf->data + buf->used;
    *p++ = (uint8_t)type;
    *p++ = (uint8_t)((ts - now) | 0x80); /* two bytes: */
    *p++ = (uint8_t)((ts - now) >> 7);
    va_start(args, ts);
    for (int i = 0; i < gt_event_args[type]; i++)
        *p++ = (uint8_t)va_arg(args, int);
    va_end(args);
    buf->used = (uint32_t)(p - buf->data);
    now = ts;
}

static void statuses(int p, int g, int m, enum gt_g_state state, uint64_t ts)
{
    event(GT_EV_PROC_STATUS, ts, p, GT_P_RUNNING);
    event(GT_EV_GO_STATUS, ts, g, m, state);
}

static void absent(uint64_t from, uint64_t to, bool preempted)
{
    away[n_away++] =
        (struct gt_absence){.from = from, .to = to, .preempted = preempted, .cpu = CPU};
}

static const struct gt_absence *absences_of(uint32_t m, size_t *n)
{
    *n = m == M ? n_away : 0;
    return away;
}

/* What becomes of it ------------------------------------------------------------------------- */

static char told[4096];

static void tell(const struct gt_merge_event *ev)
{
    static const char *const names[GT_EVENTS_END] = {
        [GT_EV_GO_STATUS] = "status",   [GT_EV_GO_START] = "start",
        [GT_EV_GO_STOP] = "stop",       [GT_EV_GO_BLOCK] = "block",
        [GT_EV_GO_UNBLOCK] = "unblock", [GT_EV_GO_SYSCALL_BEGIN] = "call",
        [GT_EV_GO_LABEL] = "label",     [GT_EV_GO_SYSCALL_END] = "return",
        [GT_EV_PROC_STOP] = "off",      [GT_EV_PROC_START] = "on",
        [GT_EV_GO_CREATE] = "create",
    };
    size_t at = strlen(told);
    if (ev->type == GT_EV_PROC_STATUS)
        return;
    CHECK(names[ev->type], "event %d", ev->type);
    snprintf(told + at, sizeof told - at, "%s%" PRIu64 " %s%s%s", at ? ", " : "", ev->ts,
             ev->m == M ? "" : "other's ", ev->added ? "+" : "", names[ev->type]);
    at = strlen(told);
    if (ev->type == GT_EV_GO_STATUS)
        snprintf(told + at, sizeof told - at, " %" PRIu64, ev->arg[2]);
    if (ev->type == GT_EV_GO_START && ev->p > 255)
        snprintf(told + at, sizeof told - at, " by %" PRIu32, ev->p);
    if (ev->type == GT_EV_PROC_START)
        snprintf(told + at, sizeof told - at, " %d", (int)ev->arg[0]);
}

static void becomes(const char *expected)
{
    *told = 0;
    CHECK_EQ(gt_merge(&gt_merge_for_sched, gen, NULL, first, absences_of, tell), 0);
    CHECK(strcmp(told, expected) == 0, "\n  %s, expected\n  %s", told, expected);
    gt_buffers_put_all(first);
}

static void running_from(uint64_t ts)
{
    thread(M, ts);
    statuses(P, G, M, GT_G_RUNNING, ts);
}

static void test_while_it_runs(void)
{
    scene();
    running_from(1000);
    absent(2000, 3000, true);
    absent(4000, 5000, false);
    becomes("1000 status 2, 2000 +stop, 2000 +off, 3000 +on 2, 3000 +start, "
            "4000 +block, 4000 +off, 5000 +on 2, 5000 +unblock, 5000 +start");
    scene(); /* what the clocks disagree in does not turn events around */
    running_from(1000);
    event(GT_EV_GO_LABEL, 2100, 1);
    absent(2000, 3000, true);
    becomes("1000 status 2, 2100 label, 2100 +stop, 2100 +off, 3000 +on 2, 3000 +start");
}

static void wait_that_other_ends(uint64_t at)
{
    running_from(1000);
    event(GT_EV_GO_BLOCK, 2000, GT_REASON_SYNC, STACK);
    event(GT_EV_GO_START, 9000, G, 2);
    thread(OTHER_M, 1000);
    statuses(OTHER_P, OTHER_G, OTHER_M, GT_G_RUNNING, 1000);
    event(GT_EV_GO_UNBLOCK, at, G, 1, STACK);
}

static void test_in_a_wait(void)
{
    scene();
    wait_that_other_ends(5000);
    absent(2200, 3000, false);
    absent(3100, 7000, false);
    becomes("1000 status 2, 1000 other's status 2, 2000 block, 2200 +off, 3000 +on 2, 3100 +off, "
            "5000 other's unblock, 7000 +on 2, 7000 start");
    scene(); /* the unblock that the waker wrote late still comes first */
    wait_that_other_ends(8000);
    absent(2200, 7000, false);
    becomes("1000 status 2, 1000 other's status 2, 2000 block, 2200 +off, 7000 +on 2, "
            "8000 other's unblock, 8000 start");
    scene(); /* alone; and the record is a little later than the event */
    running_from(1000);
    event(GT_EV_GO_BLOCK, 2000, GT_REASON_SLEEP, STACK);
    event(GT_EV_GO_UNBLOCK, 9000, G, 1, STACK);
    event(GT_EV_GO_START, 9000, G, 2);
    absent(2200, 9100, false);
    becomes("1000 status 2, 2000 block, 2200 +off, 9000 +on 2, 9000 unblock, 9000 start");
}

/* Its thread slept on: its records from then on have no CPU. */
static void test_in_vain(void)
{
    scene();
    running_from(1000);
    event(GT_EV_GO_BLOCK, 2000, GT_REASON_SYNC, STACK);
    event(GT_EV_GO_START, 5000, G, 2);
    event(GT_EV_GO_BLOCK, 5000, GT_REASON_SYNC, STACK);
    event(GT_EV_GO_START, 9000, G, 4);
    thread(OTHER_M, 1000);
    statuses(OTHER_P, OTHER_G, OTHER_M, GT_G_RUNNING, 1000);
    event(GT_EV_GO_UNBLOCK, 4000, G, 1, STACK);
    event(GT_EV_GO_UNBLOCK, 7000, G, 3, STACK);
    absent(2200, 8000, false);
    becomes("1000 status 2, 1000 other's status 2, 2000 block, 2200 +off, 4000 other's unblock, "
            "5000 start, 5000 block, 7000 other's unblock, 8000 +on 2, 8000 start");
}

static void test_in_a_call(void)
{
    scene();
    running_from(1000);
    event(GT_EV_GO_SYSCALL_BEGIN, 2000, 1, STACK);
    event(GT_EV_GO_SYSCALL_END, 6000);
    absent(2500, 5500, false);
    absent(7000, 8000, true);
    becomes("1000 status 2, 2000 call, 2500 +off, 5500 +on 2, 6000 return, "
            "7000 +stop, 7000 +off, 8000 +on 2, 8000 +start");
}

static void test_over_a_boundary(void)
{
    scene();
    running_from(1000);
    absent(2000, GT_ABSENT, true);
    becomes("1000 status 2, 2000 +stop, 2000 +off");
    scene(); /* the status says so; a record of it brings it back for a moment */
    running_from(11000);
    event(GT_EV_GO_LABEL, 11001, 1);
    absent(0, 15000, true);
    becomes("11000 status 1, 11001 +on -1, 11001 +start, 11001 label, "
            "11001 +stop, 11001 +off, 15000 +on 2, 15000 +start");
    scene();
    running_from(21000);
    absent(0, GT_ABSENT, false);
    becomes("21000 status 4");
    scene(); /* it was back before it told */
    running_from(31000);
    event(GT_EV_GO_BLOCK, 32000, GT_REASON_SYNC, STACK);
    absent(0, 30900, false);
    becomes("31000 status 4, 31000 +on 2, 31000 +unblock, 31000 +start, 32000 block");
    scene(); /* in a wait the end of which comes now */
    thread(M, 41000);
    statuses(P, G, 0, GT_G_WAITING, 41000);
    event(GT_EV_GO_UNBLOCK, 49000, G, 1, STACK);
    event(GT_EV_GO_START, 49000, G, 2);
    absent(0, 48000, false);
    becomes("41000 status 4, 48000 +on 2, 48000 unblock, 48000 start");
}

static void contradict(uint64_t mended, const char *expected)
{
    becomes(expected);
    CHECK_EQ(gt_merge_mended(), mended);
}

/* Events are missing that others need. */
static void test_contradictions(void)
{
    gt_merge_be_lenient();
    scene(); /* the wait that went on after a spurious wake-up */
    running_from(1000);
    event(GT_EV_GO_BLOCK, 2000, GT_REASON_SYNC, STACK);
    event(GT_EV_GO_START, 9000, G, 4);
    event(GT_EV_GO_LABEL, 9100, 1);
    thread(OTHER_M, 1000);
    statuses(OTHER_P, OTHER_G, OTHER_M, GT_G_RUNNING, 1000);
    event(GT_EV_GO_UNBLOCK, 4000, G, 1, STACK);
    event(GT_EV_GO_UNBLOCK, 7000, G, 3, STACK);
    event(GT_EV_GO_LABEL, 7100, 1);
    contradict(1, "1000 status 2, 1000 other's status 2, 2000 block, 4000 other's unblock, "
                  "7100 other's label, 9000 start, 9100 label");
    scene(); /* the end of a wait */
    running_from(1000);
    event(GT_EV_GO_BLOCK, 2000, GT_REASON_SYNC, STACK);
    event(GT_EV_GO_START, 9000, G, 2);
    event(GT_EV_GO_LABEL, 9100, 1);
    contradict(1, "1000 status 2, 2000 block, 9000 +unblock, 9000 start, 9100 label");
    scene(); /* why a goroutine runs on another thread */
    running_from(1000);
    event(GT_EV_GO_LABEL, 9000, 1);
    thread(OTHER_M, 1000);
    event(GT_EV_PROC_STATUS, 1000, OTHER_P, GT_P_RUNNING);
    event(GT_EV_GO_START, 2000, G, 1);
    event(GT_EV_GO_LABEL, 2100, 1);
    contradict(1, "1000 status 2, 9000 label");
    scene(); /* which Ps two threads have */
    thread(M, 1000);
    event(GT_EV_GO_CREATE, 1000, G, STACK, STACK);
    event(GT_EV_GO_START, 1000, G, 1);
    thread(OTHER_M, 1200);
    event(GT_EV_GO_CREATE, 1200, OTHER_G, STACK, STACK);
    event(GT_EV_GO_START, 1500, OTHER_G, 1);
    contradict(
        2, "1000 create, 1000 start by 65535, 1200 other's create, 1500 other's start by 65534");
    scene(); /* nothing */
    running_from(1000);
    contradict(0, "1000 status 2");
}

int main(void)
{
    gt_clock_read = clock_of_scene;
    gt_clock = (struct gt_clock){.hardware = false};
    test_while_it_runs();
    test_in_a_wait();
    test_in_vain();
    test_in_a_call();
    test_over_a_boundary();
    test_contradictions(); /* lenient from here on */
    return 0;
}
