/*
 * Absences of threads before they are watched (encoder/cpu/unwatched.h): a thread's events, what
 * its CPU clock said, and where it has lost its CPU by that. Times are those of the trace's clock.
 */
#include "encoder/cpu/unwatched.h"

#include "encoder/base/clock.h"
#include "encoder/base/futex.h"
#include "encoder/base/varint.h"

#include "check.h"

#include <string.h>

enum { M = 7, OTHER_M = 8, G = 5 };

static uint64_t us(uint64_t n)
{
    return gt_clock_units(n * 1000);
}

/* What there is ------------------------------------------------------------------------------ */

static struct gt_buf *bufs;
static uint64_t now;

static void thread(uint32_t m)
{
    struct gt_buf *buf = gt_buffers_get(true);
    buf->next = bufs;
    bufs = buf;
    buf->m = m;
    buf->ts = now = us(1000);
    buf->used = 0;
}

static void event(enum gt_event_type type, uint64_t at_us)
{
    uint8_t *p = bufs->data + bufs->used;
    *p++ = (uint8_t)type;
    p = gt_varint_put(p, us(at_us) - now);
    for (int i = 0; i < gt_event_args[type]; i++)
        *p++ = G;
    bufs->used = (uint32_t)(p - bufs->data);
    now = us(at_us);
}

/* A thread that runs all its life, by its events. */
static void thread_that_runs(uint32_t m, uint64_t from_us, uint64_t to_us)
{
    thread(m);
    event(GT_EV_GO_START, from_us);
    event(GT_EV_GO_DESTROY, to_us);
}

static struct gt_absence recorded[1];
static size_t n_recorded;

static const struct gt_absence *recorded_of(uint32_t m, size_t *n)
{
    *n = m == M ? n_recorded : 0;
    return recorded;
}

static uint64_t generation_end = UINT64_MAX;

static uint64_t end_of(uint32_t m)
{
    return m == M ? generation_end : UINT64_MAX;
}

/* What becomes of it ------------------------------------------------------------------------- */

/* "from-to" of each absence of thread m in the generation, in us. */
static const char *inferred_in(uint32_t gen, uint32_t m)
{
    static char told[256];
    size_t n, used = 0;
    gt_unwatched_infer(gen, NULL, bufs, recorded_of, end_of);
    const struct gt_absence *a = gt_unwatched_absences(m, &n);
    for (size_t i = 0; i < n; i++)
        used +=
            (size_t)snprintf(told + used, sizeof told - used, "%s%.0f-%.0f", i ? " " : "",
                             (double)a[i].from / (double)us(1), (double)a[i].to / (double)us(1));
    told[used] = 0;
    gt_buffers_put_all(bufs);
    bufs = NULL;
    n_recorded = 0;
    return told;
}

static const char *inferred(uint32_t m)
{
    const char *told = inferred_in(1, m);
    gt_unwatched_forget();
    return told;
}

static void expect(const char *got, const char *expected)
{
    CHECK(strcmp(got, expected) == 0, "got \"%s\", expected \"%s\"", got, expected);
}

/* Scenes ------------------------------------------------------------------------------------- */

static void has_run_all_the_time(void)
{
    thread_that_runs(M, 1000, 3000);
    gt_unwatched_note(1, M, us(1000), us(3000), 1999000);
    expect(inferred(M), "");
}

static void the_longest_stretches_give(void)
{
    thread(M);
    event(GT_EV_GO_START, 1000);
    event(GT_EV_GO_SYSCALL_BEGIN, 2000); /* 1 ms, which is as long as the others may be */
    event(GT_EV_GO_SYSCALL_END, 9000);
    event(GT_EV_GO_BLOCK, 13000); /* 4 ms */
    event(GT_EV_GO_START, 20000);
    event(GT_EV_GO_DESTROY, 22000); /* 2 ms */
    gt_unwatched_note(1, M, us(1000), us(22000), 3000000);
    expect(inferred(M), "10000-13000 21000-22000");
}

static void no_event_follows(void)
{
    thread(M);
    event(GT_EV_GO_START, 1000);
    gt_unwatched_note(1, M, us(1000), us(5000), 1000000);
    recorded[n_recorded++] = (struct gt_absence){.from = us(5000), .to = us(6000)};
    expect(inferred(M), "2000-5000 5000-6000");
}

static void what_is_recorded_stays(void)
{
    thread_that_runs(M, 1000, 9000);
    gt_unwatched_note(1, M, us(1000), us(9000), 1000000);
    recorded[n_recorded++] = (struct gt_absence){.from = us(4000), .to = us(8000)};
    expect(inferred(M), "2000-4000 4000-8000");
}

static void each_thread_has_its_own(void)
{
    thread_that_runs(OTHER_M, 1000, 4000);
    thread_that_runs(M, 1000, 6000);
    gt_unwatched_note(1, OTHER_M, us(1000), us(4000), 3000000);
    gt_unwatched_note(1, M, us(1000), us(6000), 2000000);
    expect(inferred(M), "3000-6000");
}

/* Threads of the next generation are met while this one is completed. */
static void is_of_the_next_generation(void)
{
    size_t n;
    thread_that_runs(M, 2000, 6000);
    gt_unwatched_note(2, M, us(2000), us(6000), 1000000);
    gt_unwatched_infer(1, NULL, NULL, recorded_of, end_of);
    gt_unwatched_absences(M, &n);
    CHECK_EQ(n, 0);
    expect(inferred(M), "3000-6000");
}

/* The thread is met when it is in the next generation: each has its own part. */
static void is_of_two_generations(void)
{
    thread(M);
    event(GT_EV_GO_START, 1000);
    gt_unwatched_note(2, M, us(1000), us(6000), 1000000);
    generation_end = us(4000);
    expect(inferred_in(1, M), "2000-4000");
    generation_end = UINT64_MAX;
    thread_that_runs(M, 4000, 7000);
    expect(inferred_in(2, M), "4000-6000");
    gt_unwatched_forget();
}

int main(void)
{
    static struct gt_lock side;
    gt_lock(&side, GT_RANK_SIDE);
    gt_clock = (struct gt_clock){.hardware = false};
    has_run_all_the_time();
    the_longest_stretches_give();
    no_event_follows();
    what_is_recorded_stays();
    each_thread_has_its_own();
    is_of_the_next_generation();
    is_of_two_generations();
    return 0;
}
