/* See drain.h. */
#include "drain.h"

#include "encoder/thread/buffers.h"
#include "generation.h"
#include "encoder/file/output.h"
#include "recording.h"
#include "encoder/thread/switch.h"

#include "encoder/base/clock.h"
#include "encoder/base/sparse.h"
#include "encoder/base/urgent.h"

#include <stdlib.h>
#include <string.h>

/*
 * DEADLINE_NS: how long a thread of the program waits at most, for the drain thread or, if it acts
 * as the drain side, for its own writing. STANDS_NS: how long the drain side waits for an output
 * that takes nothing, such as a FIFO whose reader stands still. Threads that need a buffer wait
 * that long.
 */
#define DEADLINE_NS 20000000000
#define STANDS_NS 10000000000

#define ALONE_EVERY_NS 1000000000

enum phase { IDLE, OPEN, FINISHING, FINISHED };

static struct {
    struct gt_drain_config config;
    _Atomic uint32_t phase;
    _Atomic uint32_t threaded; /* a drain thread runs */
    _Atomic uint32_t sample;   /* requested */

    /* Its holder is the drain side: the drain thread, or a thread in its place. */
    struct gt_lock side;

    uint64_t asked_alone; /* when the drain thread last asked if it is the last thread */

    _Atomic uint64_t deadline;   /* of the drain side, while a thread waits for its end */
    _Atomic int64_t patience_ns; /* how far off a deadline is set; 0: DEADLINE_NS */

    /*
     * A request. The client, the holder of `client`, writes the request, then its number into
     * `asked`. The drain side takes the request by writing 0 there, and answers with the number in
     * `answered`. The client may take the request back by writing 0 there itself; then the drain
     * side does not execute it. Toggles have no client.
     */
    struct gt_lock client;
    enum gt_drain_command command;
    bool has_path;
    int result;
    uint32_t last_asked;
    _Atomic uint32_t asked, answered;
    _Atomic uint32_t toggles;
} drain;
static char asked_path[PATH_MAX] GT_SPARSE; /* the request's path, if has_path */

_Atomic uint32_t gt_drain_unattended;

/* Without a drain thread a thread of the program has to look at the clock. */
static void note_unattended(void)
{
    if (!atomic_load(&drain.threaded) && gt_recording_is_timed())
        atomic_fetch_or(&gt_drain_unattended, GT_UNATTENDED_WORK);
    else
        atomic_fetch_and(&gt_drain_unattended, ~(uint32_t)GT_UNATTENDED_WORK);
}

/* Called when there is work that only the drain side can do. Any context. */
static void need(void)
{
    if (atomic_load(&drain.phase) == OPEN && !atomic_load(&drain.threaded))
        atomic_fetch_or(&gt_drain_unattended, GT_UNATTENDED_WORK);
}

void gt_drain_open(const struct gt_drain_config *config)
{
    gt_lock(&drain.side, GT_RANK_SIDE);
    drain.config = *config;
    gt_account_init(config->cpus.usage, config->cpus.halts, gt_drain_is_threaded);
    gt_recording_init(&drain.config, need);
    note_unattended();
    atomic_store(&drain.phase, OPEN);
    gt_generation_open();
    gt_unlock(&drain.side);
}

/* Waiting ------------------------------------------------------------------------------------ */

static int64_t patience(void)
{
    int64_t ns = atomic_load(&drain.patience_ns);
    return ns ? ns : DEADLINE_NS;
}

static uint64_t deadline_from_now(void)
{
    return gt_clock_monotonic_raw() + (uint64_t)patience();
}

void gt_drain_hurry(int64_t ns)
{
    atomic_store(&drain.patience_ns, ns);
}

/* Whether a thread that waits for the drain side should give up. */
static bool in_vain(uint64_t deadline)
{
    return gt_output_stands_ns() > STANDS_NS || gt_clock_monotonic_raw() > deadline;
}

/*
 * The patience of a program's thread that acts as the drain side, and of any thread at the
 * process's end.
 */
static bool writes_in_vain(void)
{
    return in_vain(atomic_load(&drain.deadline));
}

static bool is_alone(void)
{
    return drain.config.host.alone && drain.config.host.alone();
}

/*
 * The patience of the drain thread: it has time, unless it is the process's last thread, or a
 * thread waits for its end.
 */
static bool drain_thread_writes_in_vain(void)
{
    bool long_enough = gt_output_stands_ns() > ALONE_EVERY_NS;
    return atomic_load(&drain.phase) == OPEN ? long_enough && is_alone() : writes_in_vain();
}

/* The end, and what others want -------------------------------------------------------------- */

static void finish(void)
{
    gt_recording_finish();
    atomic_store(&drain.phase, FINISHED);
    gt_futex_wake(&drain.phase, INT_MAX);
}

static void attend(uint64_t now)
{
    gt_recording_attend(atomic_exchange(&drain.toggles, 0) & 1, now);
    if (drain.config.host.serve)
        drain.config.host.serve();
}

static int settle(void)
{
    int error = gt_recording_settle();
    if (!error && drain.config.host.hold)
        drain.config.host.hold();
    return error;
}

int gt_drain_execute(enum gt_drain_command command, const char *path)
{
    switch (command) {
    case GT_DRAIN_START: return gt_recording_start();
    case GT_DRAIN_STOP: return gt_recording_stop();
    case GT_DRAIN_TOGGLE: return gt_recording_toggle();
    case GT_DRAIN_SETTLE: return settle();
    case GT_DRAIN_SAMPLE: return gt_recording_sample((uint32_t)strtoul(path, NULL, 10));
    case GT_DRAIN_PASS: return 0;
    case GT_DRAIN_LEAVE: return gt_recording_leave();
    default: return gt_recording_snapshot(path);
    }
}

/* The drain thread --------------------------------------------------------------------------- */

static void answer(uint32_t asked, int result)
{
    drain.result = result;
    atomic_store(&drain.answered, asked);
    gt_futex_wake(&drain.answered, INT_MAX);
}

/* Whether the caller now acts as the drain side; false if there is a drain thread. */
static bool take_side(int64_t patience_ns)
{
    if (atomic_load(&drain.threaded) || !gt_lock_within(&drain.side, GT_RANK_SIDE, patience_ns))
        return false;
    if (atomic_load(&drain.threaded)) {
        gt_unlock(&drain.side);
        return false;
    }
    atomic_store(&drain.deadline, deadline_from_now());
    gt_output_set_patience(writes_in_vain);
    gt_switch_set_deadline(atomic_load(&drain.deadline));
    return true;
}

/*
 * A turn as the drain side, with signals held: a handler might stay for long, or jump out, and
 * then no thread could become the drain side.
 */
struct turn {
    uint64_t signals;
    struct gt_quiet quiet;
};

static bool begin_turn(struct turn *t, int64_t patience_ns)
{
    t->signals = gt_signals_hold();
    if (!take_side(patience_ns)) {
        gt_signals_release(t->signals);
        return false;
    }
    gt_quiet_begin(&t->quiet);
    return true;
}

static void end_turn(struct turn *t)
{
    gt_quiet_end(&t->quiet);
    gt_unlock(&drain.side);
    gt_signals_release(t->signals);
}

/*
 * Executes the client's request unless the client has taken it back. After the exchange the
 * request is the drain side's alone.
 */
static bool serve_request(void)
{
    static char path[PATH_MAX] GT_SPARSE;
    uint32_t number = atomic_load(&drain.asked), asked = number;
    if (!number)
        return false;
    enum gt_drain_command command = drain.command;
    bool has_path = drain.has_path;
    memcpy(path, asked_path, sizeof path);
    if (!atomic_compare_exchange_strong(&drain.asked, &asked, 0))
        return false;
    answer(number, gt_drain_execute(command, has_path ? path : NULL));
    return true;
}

/* Whether the drain thread is the process's last thread. No event says so: it asks now and then. */
static bool is_alone_at(uint64_t now)
{
    if (now - drain.asked_alone < ALONE_EVERY_NS / 2)
        return false;
    drain.asked_alone = now;
    if (drain.config.host.look)
        drain.config.host.look();
    return is_alone();
}

static int64_t idle_ns(uint64_t now)
{
    int64_t ns = gt_recording_idle_ns(now);
    int64_t ask = (int64_t)(drain.asked_alone + ALONE_EVERY_NS - now);
    return ns < 0 || ns > ask ? ask : ns;
}

void gt_drain_run(void)
{
    gt_lock(&drain.side, GT_RANK_SIDE);
    gt_urgent_helper((uint32_t)gt_syscall(SYS_gettid));
    gt_output_set_patience(drain_thread_writes_in_vain);
    gt_switch_set_deadline(0);
    note_unattended();
    while (atomic_load(&drain.phase) == OPEN) {
        gt_urgent_give_back();
        gt_buffers_reserve();
        if (atomic_exchange(&drain.sample, 0))
            drain.config.host.sample();
        uint64_t now = gt_clock_monotonic_raw();
        attend(now);
        if (!serve_request() && !gt_recording_advance(now)) {
            if (is_alone_at(now))
                break;
            int64_t ns = idle_ns(now);
            uint64_t begin = gt_clock_monotonic_raw();
            gt_buffers_sleep(ns);
            int64_t late = (int64_t)(gt_clock_monotonic_raw() - begin) - ns;
            gt_account_note_late(late > 0 ? (uint64_t)late : 0);
        }
        gt_recording_give_up();
    }
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    if (atomic_load(&drain.phase) != FINISHED)
        finish();
    gt_urgent_helper(0);
    gt_quiet_end(&quiet);
    gt_unlock(&drain.side);
    gt_futex_wake(&drain.answered, INT_MAX); /* a client sees that no answer will come */
}

void gt_drain_set_threaded(void)
{
    atomic_store(&drain.threaded, 1);
}

void gt_drain_set_unthreaded(void)
{
    atomic_store(&drain.threaded, 0);
    note_unattended();
}

bool gt_drain_is_threaded(void)
{
    return atomic_load(&drain.threaded);
}

bool gt_drain_finish(void)
{
    uint32_t phase = OPEN;
    uint64_t deadline = deadline_from_now();
    atomic_store(&drain.deadline, deadline);
    if (!atomic_compare_exchange_strong(&drain.phase, &phase, FINISHING) && phase == IDLE)
        return false;
    gt_recording_hasten();
    struct turn turn;
    bool mine = phase == OPEN && begin_turn(&turn, patience());
    if (mine) {
        finish();
        end_turn(&turn);
    }
    gt_buffers_kick();
    bool others = phase != OPEN || atomic_load(&drain.threaded);
    while (others && (phase = atomic_load(&drain.phase)) == FINISHING && !in_vain(deadline)) {
        gt_urgent_hasten();
        gt_futex_wait(&drain.phase, phase, 100000000);
    }
    return gt_recording_is_unreported() || gt_recording_is_on();
}

/* Commands ----------------------------------------------------------------------------------- */

static int take_back(uint32_t mine, int error)
{
    atomic_compare_exchange_strong(&drain.asked, &mine, 0);
    return error;
}

/* Has the drain thread execute the command. The caller holds `client`. */
static int ask_locked(enum gt_drain_command command, const char *path, uint64_t deadline)
{
    drain.command = command;
    drain.has_path = path;
    strcpy(asked_path, path ? path : "");
    drain.last_asked += drain.last_asked == UINT32_MAX ? 2 : 1; /* never 0 */
    uint32_t mine = drain.last_asked, done;
    atomic_store(&drain.asked, mine);
    while ((done = atomic_load(&drain.answered)) != mine) {
        if (atomic_load(&drain.phase) != OPEN || !atomic_load(&drain.threaded))
            return take_back(mine, -ESHUTDOWN);
        if (in_vain(deadline))
            return take_back(mine, -ETIMEDOUT);
        gt_buffers_kick();
        gt_futex_wait(&drain.answered, done, 100000000);
    }
    return drain.result;
}

static int execute_or_ask(enum gt_drain_command command, const char *path, uint64_t deadline)
{
    struct turn turn;
    if (!begin_turn(&turn, GT_LOCK_PATIENCE_NS))
        return atomic_load(&drain.threaded) ? ask_locked(command, path, deadline) : -EBUSY;
    int r = gt_drain_execute(command, path);
    end_turn(&turn);
    return r;
}

int gt_drain_command(enum gt_drain_command command, const char *path)
{
    int r = -ESHUTDOWN;
    uint64_t deadline = deadline_from_now();
    if (!gt_lock_within(&drain.client, GT_RANK_CLIENT, DEADLINE_NS))
        return -ETIMEDOUT;
    if (path && strlen(path) >= PATH_MAX)
        r = -ENAMETOOLONG;
    else if (atomic_load(&drain.phase) == OPEN)
        r = execute_or_ask(command, path, deadline);
    note_unattended();
    gt_unlock(&drain.client);
    return r;
}

bool gt_drain_sample(void)
{
    if (!atomic_load(&drain.threaded))
        return false;
    atomic_store(&drain.sample, 1);
    gt_buffers_kick();
    return true;
}

int gt_drain_leave(void)
{
    return gt_drain_command(GT_DRAIN_LEAVE, NULL);
}

void gt_drain_toggle(void)
{
    if (atomic_load(&drain.phase) != OPEN)
        return;
    atomic_fetch_add(&drain.toggles, 1);
    need();
    gt_buffers_kick();
}

void gt_drain_attend(void)
{
    struct turn turn;
    if (!begin_turn(&turn, 0)) {
        if (atomic_load(&drain.threaded))
            note_unattended();
        return;
    }
    if (atomic_load(&drain.phase) == OPEN) {
        uint64_t now = gt_clock_monotonic_raw();
        attend(now);
        gt_recording_renew(now);
    }
    note_unattended();
    end_turn(&turn);
}

void gt_drain_relieve(bool anywhere)
{
    struct turn turn;
    if (!begin_turn(&turn, 0))
        return;
    if (atomic_load(&drain.phase) == OPEN && anywhere)
        gt_recording_relieve();
    else if (atomic_load(&drain.phase) == OPEN)
        gt_recording_advance(gt_clock_monotonic_raw());
    gt_recording_give_up();
    end_turn(&turn);
}

void gt_drain_after_fork(void)
{
    memset(&drain, 0, sizeof drain);
    atomic_store(&gt_drain_unattended, 0);
}
