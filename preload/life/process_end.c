/* See process_end.h. */
#include "process_end.h"

#include "encoder/base/log.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/live.h"
#include "encoder/drain/recording.h"
#include "encoder/format/origin.h"
#include "encoder/thread/room.h"
#include "preload/bind/nursery.h"
#include "preload/bind/real.h"
#include "preload/control/process_relief.h"
#include "preload/control/report.h"
#include "preload/heap/heap.h"
#include "preload/process/process_names.h"
#include "preload/process/process_state.h"
#include "preload/shared/census.h"
#include "preload/shared/options.h"
#include "preload/thread/capture.h"
#include "preload/waits/file_locks.h"
#include "symbolize/elf/elf_names.h"
#include "symbolize/symbolize.h"

/*
 * Loads elfutils in the calling thread if it holds the loader's lock, as in a constructor that ends
 * the program. The drain thread could not load it then, and needs it for the names in the file.
 */
static void load_symbols_within_loader(struct gt_thread *t)
{
    if (!gt_drain_is_threaded() || gt_options.names_later || gt_process.dying ||
        gt_process_is_anywhere(t) || !gt_elf_loader_is_ours())
        return;
    bool before = gt_nursery_only;
    gt_nursery_only = true;
    gt_symbolize_prepare();
    gt_nursery_only = before;
}

/* How long other threads are held at most while the file is completed. */
#define WORKS_NS 20000000000

static void hold_for(uint64_t ns)
{
    atomic_store(&gt_process.holds_until, gt_clock_monotonic_raw() + ns);
    atomic_fetch_or(&gt_drain_unattended, GT_UNATTENDED_HOLD);
}

static void hold_until_gone(void)
{
    uint32_t self = (uint32_t)gt_syscall(SYS_gettid);
    gt_process.leaves_cpu = gt_process_cpu_of(self) + GT_PROCESS_LEAVES_NS;
    gt_process.leaves_latest = gt_clock_monotonic_raw() + GT_PROCESS_LATEST_NS;
    hold_for(GT_PROCESS_LEAVES_NS);
    atomic_store(&gt_process.leaver, self);
}

/* Waits until the drain thread no longer exists for libc and the kernel, 1 s at most. */
static void await_drain_thread_end(void)
{
    enum { SLICES = 10 };
    static const struct timespec slice = {0, 1000000000 / SLICES};
    uint32_t tid;
    /* Not FUTEX_PRIVATE: the kernel's wake-up at the end of a thread is not private. */
    for (int i = 0; i < SLICES && (tid = atomic_load(&gt_process.drain_tid)) != 0; i++)
        gt_syscall(SYS_futex, &gt_process.drain_tid, FUTEX_WAIT, tid, &slice);
}

void gt_process_end(bool last)
{
    if (!gt_process_is_ours())
        return;
    GT_HEAP_OWN(own);
    bool holds =
        !last && !gt_process.ended && (gt_recording_is_on() || gt_recording_is_unreported());
    if (holds)
        hold_for(WORKS_NS);
    struct gt_thread *t = gt_self;
    if (t && t != &gt_nobody) {
        bool mid_event = gt_writer_busy(&t->w) || (gt_process.dying && t->inside);
        bool whole = !t->inside && !mid_event && !gt_process.dying;
        if (t->inside)
            atomic_store(&gt_any_jumped, true); /* locks that the thread holds stay locked */
        /* A signal handler that ends the process in the middle of our code never returns to that
         * code: the drain side must not wait for the thread. */
        t->inside = GT_INSIDE_FOR_GOOD;
        gt_writer_unpin(&t->w);
        if (whole && !gt_process.ended)
            gt_file_locks_end(t);
        if (!mid_event && !gt_process.dying) { /* both functions may wait */
            gt_heap_write_exact(t);
            load_symbols_within_loader(t);
        }
    }
    bool first = !atomic_exchange(&gt_process.ended, 1);
    bool reports = gt_drain_finish() && first;
    if (holds) /* one that is held may read what we print */
        hold_until_gone();
    if (reports)
        gt_report_stopped();
    uint32_t refused = first && gt_process.root && !gt_process.dying ? gt_census_refused() : 0;
    if (refused)
        gt_log_note("GOTRACE_MAX_PROCESSES=%llu: %u more were not recorded",
                    (unsigned long long)gt_options.max_processes, refused);
    gt_log_let_go();
    if (last)
        await_drain_thread_end();
}

/* Whether exit(3) is among the callers of the current hook. */
static bool is_exiting(void)
{
    enum { EXIT_BYTES = 64 }; /* exit calls another function at once */
    uintptr_t begin = (uintptr_t)exit;
    struct gt_thread *t = gt_thread_enter();
    struct gt_stack *s = t ? gt_capture_caller(t) : NULL;
    bool found = false;
    for (uint32_t i = 0; s && i < s->n; i++)
        found |= s->pcs[i] > begin && s->pcs[i] <= begin + EXIT_BYTES;
    if (t)
        gt_thread_leave(t);
    return found;
}

/* Does nothing once a seccomp filter is installed that may refuse calls of the drain side. */
void gt_process_keep_stderr(void)
{
    GT_KEEP_ERRNO;
    if (gt_recording() && !atomic_load(&gt_process.abandons_children) && gt_process_is_ours() &&
        gt_log_keep()) {
        gt_process.exiting = is_exiting();
        if (!gt_process.exiting)
            atomic_fetch_or(&gt_drain_unattended, GT_UNATTENDED_WORK);
    }
}

/*
 * How long we delay the end of a process by a signal. Most of a recording is in its file by then
 * and most names are looked up, but a flight recorder has yet to write everything.
 */
#define DYING_NS 100000000
#define NAMES_NS 50000000
#define RING_NAMES_NS 5000000000

void gt_process_crash(void)
{
    struct gt_thread *t = gt_self;
    bool inside = t && t != &gt_nobody && t->inside;
    if (inside && atomic_load(&gt_process.drain_started) != GT_DRAIN_WITH_THREAD)
        return; /* the signal interrupted our code, which would have to write the file */
    if (!gt_process_is_ours())
        return;
    atomic_store(&gt_process.dying, true);
    gt_nursery_only = true; /* in a single-threaded program the caller looks up names itself */
    gt_names_die(gt_options.ring_bytes ? RING_NAMES_NS : NAMES_NS);
    if (!gt_options.ring_bytes)
        gt_drain_hurry(DYING_NS);
    gt_process_end(false);
}

__attribute__((destructor)) void gt_process_at_exit(void)
{
    gt_process_end(false);
}

static void complete_file(struct gt_thread *t)
{
    gt_heap_write_exact(t);
    load_symbols_within_loader(t);
    gt_names_roughly(atomic_load(&gt_process.drain_started) != GT_DRAIN_WITH_THREAD &&
                     gt_process_is_anywhere(t));
    atomic_store(&gt_process.execs, t->w.m);
    gt_report_before_exec(gt_drain_leave());
    atomic_store(&gt_process.execs, 0);
    gt_names_roughly(false);
}

/*
 * Whether the program image leaves a trace of its own before an exec. An image with one thread that
 * has run for less than 5 ms has hardly anything to show. Its trace would also take the plain
 * output name from the next image.
 */
static bool leaves_trace(void)
{
    enum { LIVED_NS = 5000000 };
    bool has = atomic_load(&gt_process.drain_started) || gt_recording_has_written() ||
               gt_recording_is_unreported();
    return has || (gt_options_output_is_unused() && gt_recording() &&
                   gt_clock_now() > gt_clock_units(LIVED_NS));
}

/* Notes the maker of this process for the next image. In a vfork child, which runs in our memory,
 * gt_self is the thread that made the child and waits for it. */
static void note_maker(void)
{
    struct gt_maker maker = {0};
    if (!gt_census_is_open())
        return;
    pid_t pid = (pid_t)gt_syscall(SYS_getpid);
    if (gt_process.pid == pid)
        maker = gt_origin_maker();
    else if (gt_recording() && gt_self && gt_syscall(SYS_getppid) == gt_process.pid)
        maker = (struct gt_maker){(uint64_t)gt_process.pid, gt_self->w.m, gt_clock_counter()};
    if (maker.thread)
        gt_census_note_maker(pid, &maker);
}

void gt_process_before_exec(void)
{
    struct gt_thread *t;
    note_maker();
    if (!gt_process_is_ours())
        return;
    if (leaves_trace()) {
        if ((t = gt_thread_enter()))
            gt_process_act(t, complete_file);
        return;
    }
    gt_census_withdraw();
    gt_live_remove(); /* there is no drain thread to remove the .live file */
}

void gt_process_stays(void)
{
    if (!gt_process_is_ours() || !atomic_load(&gt_process.ended))
        return;
    gt_process_hold_no_longer();
    gt_log("daemon(3) failed: nothing is recorded from here on");
}
