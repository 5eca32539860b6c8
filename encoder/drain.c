/* See drain.h. */
#include "drain.h"

#include "buffers.h"
#include "clock.h"
#include "generation.h"
#include "merge.h"
#include "output.h"
#include "recording.h"
#include "renewal.h"
#include "ring.h"
#include "samples.h"
#include "switch.h"
#include "symbols.h"

#include <string.h>

/* How long the end of the process waits for the drain thread before it gives up. */
#define FINISH_TIMEOUT_NS 20000000000

#define ALONE_EVERY_NS 1000000000

enum phase { IDLE, OPEN, FINISHING, FINISHED };

static struct {
    struct gt_drain_config config;
    _Atomic uint32_t phase;
    _Atomic uint32_t threaded; /* a drain thread runs */
    _Atomic uint32_t sample;   /* requested */

    /* Held by whoever acts as the drain side: its thread, or without one who asks for something. */
    struct gt_lock side;

    /* What others want. One of them at a time has `client`, but for toggles. */
    struct gt_lock client;
    enum gt_drain_command command;
    const char *path;
    int result;
    _Atomic uint32_t asked, answered;
    _Atomic uint32_t toggles;
} drain;

_Atomic uint32_t gt_drain_unattended;

/* Without a drain thread somebody has to look at the clock. */
static void note_unattended(void)
{
    atomic_store(&gt_drain_unattended, !atomic_load(&drain.threaded) && gt_recording_is_timed());
}

void gt_drain_open(const struct gt_drain_config *config)
{
    drain.config = *config;
    gt_recording_init(&drain.config);
    note_unattended();
    atomic_store(&drain.phase, OPEN);
    gt_generation_open();
}

static void finish(void)
{
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    gt_recording_finish();
    gt_quiet_end(&quiet);
    atomic_store(&drain.phase, FINISHED);
    gt_futex_wake(&drain.phase, INT_MAX);
}

static void attend(uint64_t now)
{
    gt_recording_attend(atomic_exchange(&drain.toggles, 0) & 1, now);
    if (drain.config.serve)
        drain.config.serve();
}

int gt_drain_execute(enum gt_drain_command command, const char *path)
{
    switch (command) {
    case GT_DRAIN_START: return gt_recording_start();
    case GT_DRAIN_STOP: return gt_recording_stop();
    case GT_DRAIN_TOGGLE: return gt_recording_toggle();
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

/* Whether there is no thread for it, and the caller may act as the drain side. */
static bool take_side(int64_t patience_ns)
{
    if (atomic_load(&drain.threaded) || !gt_lock_within(&drain.side, patience_ns))
        return false;
    if (!atomic_load(&drain.threaded))
        return true;
    gt_unlock(&drain.side);
    return false;
}

static bool is_alone(void)
{
    return drain.config.alone && drain.config.alone();
}

/* Nobody wakes the last thread of a process. */
static int64_t idle_ns(uint64_t now)
{
    int64_t ns = gt_recording_idle_ns(now);
    return ns < 0 || ns > ALONE_EVERY_NS ? ALONE_EVERY_NS : ns;
}

void gt_drain_run(void)
{
    gt_lock(&drain.side);
    note_unattended();
    while (atomic_load(&drain.phase) == OPEN) {
        if (atomic_exchange(&drain.sample, 0))
            drain.config.sample();
        uint64_t now = gt_clock_monotonic_raw();
        uint32_t asked = atomic_load(&drain.asked);
        attend(now);
        if (asked != atomic_load(&drain.answered))
            answer(asked, gt_drain_execute(drain.command, drain.path));
        else if (!gt_recording_advance(now)) {
            if (is_alone())
                break;
            gt_buffers_sleep(idle_ns(now));
        }
        gt_recording_give_up();
    }
    if (atomic_load(&drain.phase) != FINISHED)
        finish();
    gt_unlock(&drain.side);
    answer(atomic_load(&drain.asked), -ESHUTDOWN);
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
    if (!atomic_compare_exchange_strong(&drain.phase, &phase, FINISHING) && phase == IDLE)
        return false;
    if (phase == OPEN && take_side(GT_LOCK_PATIENCE_NS)) {
        finish();
        gt_unlock(&drain.side);
        return gt_recording_is_unreported();
    }
    if (phase == OPEN && !atomic_load(&drain.threaded))
        return false; /* a signal handler ends the process in the middle of a command */
    gt_buffers_kick();
    uint64_t deadline = gt_clock_monotonic_raw() + FINISH_TIMEOUT_NS;
    while ((phase = atomic_load(&drain.phase)) == FINISHING && gt_clock_monotonic_raw() < deadline)
        gt_futex_wait(&drain.phase, phase, 100000000);
    return gt_recording_is_unreported() || gt_recording_is_on();
}

/* Commands ----------------------------------------------------------------------------------- */

/* The drain thread does it; `client` is held. */
static int ask_locked(enum gt_drain_command command, const char *path)
{
    drain.command = command;
    drain.path = path;
    uint32_t mine = atomic_fetch_add(&drain.asked, 1) + 1, done;
    while ((done = atomic_load(&drain.answered)) != mine) {
        if (atomic_load(&drain.phase) != OPEN || !atomic_load(&drain.threaded))
            return -ESHUTDOWN;
        gt_buffers_kick();
        gt_futex_wait(&drain.answered, done, 100000000);
    }
    return drain.result;
}

static int execute_or_ask(enum gt_drain_command command, const char *path)
{
    if (!take_side(GT_LOCK_PATIENCE_NS))
        return atomic_load(&drain.threaded) ? ask_locked(command, path) : -EBUSY;
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    int r = gt_drain_execute(command, path);
    gt_quiet_end(&quiet);
    gt_unlock(&drain.side);
    return r;
}

int gt_drain_command(enum gt_drain_command command, const char *path)
{
    int r = -ESHUTDOWN;
    gt_lock(&drain.client);
    if (path && strlen(path) >= PATH_MAX)
        r = -ENAMETOOLONG;
    else if (atomic_load(&drain.phase) == OPEN)
        r = execute_or_ask(command, path);
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

void gt_drain_flush(void)
{
    if (!drain.config.ring_bytes)
        gt_drain_command(GT_DRAIN_SNAPSHOT, NULL);
}

void gt_drain_toggle(void)
{
    if (atomic_load(&drain.phase) != OPEN)
        return;
    atomic_fetch_add(&drain.toggles, 1);
    atomic_store(&gt_drain_unattended, !atomic_load(&drain.threaded));
    gt_buffers_kick();
}

void gt_drain_need(void)
{
    if (atomic_load(&drain.phase) == OPEN && !atomic_load(&drain.threaded))
        atomic_store(&gt_drain_unattended, 1);
}

void gt_drain_attend(void)
{
    if (!take_side(0)) {
        if (atomic_load(&drain.threaded))
            note_unattended();
        return;
    }
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    if (atomic_load(&drain.phase) == OPEN) {
        uint64_t now = gt_clock_monotonic_raw();
        attend(now);
        gt_recording_renew(now);
    }
    note_unattended();
    gt_quiet_end(&quiet);
    gt_unlock(&drain.side);
}

void gt_drain_after_fork(void)
{
    gt_generation_after_fork();
    gt_output_after_fork();
    gt_strings_after_fork();
    gt_stacks_after_fork();
    gt_renewal_after_fork();
    gt_merge_after_fork();
    gt_samples_after_fork();
    gt_switch_after_fork();
    gt_procs_after_fork();
    gt_writer_after_fork();
    gt_buffers_after_fork();
    gt_ring_clear();
    gt_recording_after_fork();
    memset(&drain, 0, sizeof drain);
    atomic_store(&gt_drain_unattended, 0);
}
