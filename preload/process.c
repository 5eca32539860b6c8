/* See process.h. */
#include "process.h"

#include "attach.h"
#include "census.h"
#include "control.h"
#include "descent.h"
#include "drain_thread.h"
#include "fatal.h"
#include "fork.h"
#include "hang.h"
#include "names.h"
#include "options.h"
#include "real.h"
#include "report.h"
#include "sampler.h"
#include "signals.h"
#include "thread.h"
#include "usage.h"

#include "encoder/base/era.h"
#include "encoder/base/log.h"
#include "encoder/base/sparse.h"
#include "encoder/base/urgent.h"
#include "encoder/drain.h"
#include "encoder/live.h"
#include "encoder/recording.h"
#include "preload/heap/gc.h"
#include "preload/heap/heap.h"
#include "preload/hooks/blocked.h"
#include "preload/hooks/signalled.h"
#include "preload/hooks/wait.h"
#include "preload/heap/nursery.h"
#include "preload/heap/sanitizer.h"
#include "preload/stacks/capture.h"
#include "preload/stacks/python.h"
#include "symbolize/elf_names.h"
#include "symbolize/modules.h"
#include "symbolize/symbolize.h"

#include <stddef.h>
#include <sys/auxv.h>

enum { WITH = 1, WITHOUT };

static struct {
    pid_t pid;       /* of the process whose trace this is; a vfork child's differs */
    bool started;    /* the constructor has, or as if it had */
    bool root;       /* the user has started it */
    bool descendant; /* of that one, or a later image of it */
    _Atomic bool abandons_children; /* to themselves, whatever the options say */
    bool exiting;                   /* exit(3) is under way, as far as we were told */
    _Atomic uint32_t drain_started; /* WITH a thread, or WITHOUT: there was to be one */
    _Atomic uint32_t ended;
    _Atomic uint32_t serving; /* see serve_unfollowed */
    _Atomic uint32_t execs;   /* the thread that is about to */
    unsigned files;           /* so many have been named */
    _Atomic bool dying;       /* of a signal */
} process;
static char process_path[PATH_MAX] GT_SPARSE; /* of its trace */

bool gt_process_is_ours(void)
{
    return process.pid && gt_syscall(SYS_getpid) == process.pid;
}

static bool is_inside(const struct gt_writer *w)
{
    const struct gt_thread *t = gt_thread_of(w);
    bool inside = __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE); /* then what it found is read */
    return inside && !__atomic_load_n(&t->stuck, __ATOMIC_RELAXED) && t != gt_self;
}

/* Recording ---------------------------------------------------------------------------------- */

static const char *next_path(void)
{
    bool whole = gt_options_output_path(process_path, process.descendant, ++process.files);
    return whole ? process_path : NULL;
}

/* Another recording. */
static void restart(void)
{
    gt_heap_restart();
    gt_signalled_reset();
}

/* The same one, in another file. */
static void go_on(void)
{
    gt_heap_restart();
    gt_signalled_forget_told();
}

static void tell_at_end(gt_tell_fn *tell)
{
    uint32_t caller = atomic_load(&process.execs);
    char text[sizeof GT_EXEC + 16];
    gt_blocked_tell(tell);
    gt_signalled_tell(tell);
    if (caller)
        tell(text, (uint32_t)snprintf(text, sizeof text, GT_EXEC "%u ", caller));
}

/* Begins to follow threads, and to record them unless that is for later (manual: when told to). */
static void start_recording(bool manual)
{
    if (!gt_census_admit())
        return;
    if (!gt_options_output_path(process_path, process.descendant, 1)) {
        gt_log("GOTRACE_OUTPUT is too long; nothing is recorded");
        return;
    }
    process.files = !manual && !gt_options.delay && !gt_options.ring_bytes;
    gt_clock_init();
    if (!gt_attach_is_under_way())
        gt_fatal_init();
    gt_buffers_set_limit(gt_options.max_mem);
    gt_drain_open(&(struct gt_drain_config){.path = process_path,
                                            .next_path = next_path,
                                            .max_size = gt_options.max_size,
                                            .format = gt_options.format,
                                            .manual = manual,
                                            .delay_ns = gt_options.delay,
                                            .duration_ns = gt_options.duration,
                                            .ring_bytes = gt_options.ring_bytes,
                                            .ring_ns = gt_options.ring_time,
                                            .rotation = gt_options.rotation,
                                            .live = gt_options.boxed ? gt_options.live : NULL,
                                            .leaves = gt_options.boxed ? gt_real_names() : 0,
                                            .program = gt_options_program(),
                                            .memory = gt_options.ring_bytes ? gt_options.ring_bytes
                                                                            : gt_options.max_mem,
                                            .started = restart,
                                            .rotated = go_on,
                                            .stopped = gt_report_stopped,
                                            .serve = gt_control_serve,
                                            .resolve = gt_names_resolve,
                                            .of_time = gt_names_of_time,
                                            .names_later = gt_options.names_later,
                                            .lock = gt_names_lock,
                                            .function = gt_names_function,
                                            .at_end = tell_at_end,
                                            .hold = gt_names_hold,
                                            .same = gt_names_same_code,
                                            .inside = is_inside,
                                            .aged = gt_modules_age,
                                            .forget = gt_names_forget,
                                            .usage = gt_usage_read,
                                            .may_watch = gt_usage_is_apart,
                                            .cpu_hz = gt_sampler_hz(),
                                            .walk = gt_python_runs ? NULL : gt_sampler_walk,
                                            .by_copy = gt_sampler_by_copy,
                                            .by_timers = gt_sampler_switch,
                                            .sched = gt_options.sched,
                                            .where = gt_usage_where,
                                            .is_taken = gt_wait_is_taken,
                                            .sample = gt_heap_sample_goal,
                                            .look = gt_hang_look,
                                            .alone = gt_drain_thread_is_last});
    gt_modules_box();
    gt_thread_main_begin();
    struct gt_thread *t = gt_thread_enter();
    if (t) {
        gt_heap_write_exact(t);
        gt_thread_leave(t);
    }
}

bool gt_process_begin(void)
{
    start_recording(true);
    return gt_recording();
}

/* The program may be in the middle of anything, the loader included. */
static bool is_anywhere(struct gt_thread *t)
{
    return _r_debug.r_state != RT_CONSISTENT || gt_capture_in_handler(t);
}

/* A child that has one thread is not followed, until it makes another one or is told to start. */
static void serve_unfollowed(void)
{
    atomic_store(&gt_drain_unattended, 0);
    if (atomic_load(&process.ended) || atomic_exchange(&process.serving, 1))
        return;
    GT_KEEP_ERRNO;
    GT_HEAP_OWN(own);
    gt_control_serve();
    atomic_store(&process.serving, 0);
}

/*
 * What a thread of the program does in the drain thread's place: within the guard, and without the
 * program's allocator, which it may be inside of.
 */
static void act(struct gt_thread *t, void (*what)(struct gt_thread *t))
{
    GT_KEEP_ERRNO;
    GT_HEAP_OWN(own);
    gt_nursery_only = true;
    what(t);
    gt_nursery_only = false;
    gt_thread_leave(t);
}

static void attend(struct gt_thread *t)
{
    if (!is_anywhere(t))
        gt_drain_attend();
}

void gt_process_attend(void)
{
    struct gt_thread *t = gt_self;
    if (!t || t->frame || !gt_process_is_ours())
        return;
    if (!atomic_load(&process.ended) && !process.exiting)
        gt_log_let_go();
    if (!gt_recording() && !is_anywhere(t))
        serve_unfollowed();
    if ((t = gt_thread_enter()))
        act(t, attend);
}

static void relieve(struct gt_thread *t)
{
    bool anywhere = is_anywhere(t);
    gt_names_roughly(anywhere);
    gt_drain_relieve(anywhere);
    gt_names_roughly(false);
}

static bool has_ended(void)
{
    return atomic_load(&process.ended) || !gt_process_is_ours();
}

void gt_process_relieve(void)
{
    struct gt_thread *t;
    if (atomic_load(&process.drain_started) == WITH || has_ended())
        return;
    if ((t = gt_thread_enter()))
        act(t, relieve);
}

void gt_process_second_thread(void)
{
    if (atomic_load(&process.drain_started) || has_ended())
        return;
    uint32_t no = 0;
    if (!atomic_compare_exchange_strong(&process.drain_started, &no, WITH))
        return;
    GT_KEEP_ERRNO;
    GT_HEAP_OWN(own);
    bool before = gt_nursery_only;
    gt_nursery_only = true; /* a signal handler may be what makes a thread known */
    if (!gt_recording())
        start_recording(gt_options.manual);
    if (gt_recording() && !gt_drain_thread_start())
        atomic_store(&process.drain_started, WITHOUT);
    gt_nursery_only = before;
}

bool gt_process_had_threads(void)
{
    return atomic_load(&process.drain_started);
}

void gt_process_wait_for_memory(void)
{
    GT_KEEP_ERRNO;
    if (gt_drain_is_threaded() && gt_urgent())
        gt_urgent_lend();
    else if (gt_drain_is_threaded())
        gt_era_wait();
}

/*
 * A constructor that ends the program has the loader's lock. Our thread could not load elfutils
 * then, for the names in the file: this one can.
 */
static void load_symbols_within_loader(struct gt_thread *t)
{
    if (!gt_drain_is_threaded() || gt_options.names_later || process.dying || is_anywhere(t) ||
        !gt_elf_loader_is_ours())
        return;
    bool before = gt_nursery_only;
    gt_nursery_only = true;
    gt_symbolize_prepare();
    gt_nursery_only = before;
}

/* End ---------------------------------------------------------------------------------------- */

void gt_process_end(void)
{
    if (!gt_process_is_ours())
        return;
    GT_HEAP_OWN(own);
    struct gt_thread *t = gt_self;
    if (t && t != &gt_nobody) {
        bool mid_event = gt_writer_busy(&t->w) || (process.dying && t->inside);
        if (t->inside)
            atomic_store(&gt_any_jumped, true); /* what is locked stays so */
        /* A signal handler that ends the process in the middle of our code never goes back there;
         * the drain side must not wait for it. */
        t->inside = GT_INSIDE_FOR_GOOD;
        gt_writer_unpin(&t->w);
        if (!mid_event && !process.dying) { /* both may wait */
            gt_heap_write_exact(t);
            load_symbols_within_loader(t);
        }
    }
    bool first = !atomic_exchange(&process.ended, 1);
    if (gt_drain_finish() && first)
        gt_report_stopped();
    uint32_t refused = first && process.root && !process.dying ? gt_census_refused() : 0;
    if (refused)
        gt_log_note("GOTRACE_MAX_PROCESSES=%llu: %u more were not recorded",
                    (unsigned long long)gt_options.max_processes, refused);
    gt_log_let_go();
}

/* Whether exit(3) has called what has called us. */
static bool is_exiting(void)
{
    enum { EXIT_BYTES = 64 }; /* it calls something else at once */
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

/* Not in a thread with a filter that was not asked whether it takes what this needs. */
void gt_process_keep_stderr(void)
{
    GT_KEEP_ERRNO;
    if (gt_recording() && !atomic_load(&process.abandons_children) && gt_process_is_ours() &&
        gt_log_keep()) {
        process.exiting = is_exiting();
        if (!process.exiting)
            atomic_store(&gt_drain_unattended, 1);
    }
}

void gt_process_end_last(void)
{
    gt_process_end();
    gt_drain_thread_await_end();
}

/*
 * How long a process that a signal ends is held up. Most of a recording is in its file by then, and
 * most names are looked up; a flight recorder has yet to write all.
 */
#define DYING_NS 100000000
#define NAMES_NS 50000000
#define RING_NAMES_NS 5000000000

void gt_process_crash(void)
{
    struct gt_thread *t = gt_self;
    bool inside = t && t != &gt_nobody && t->inside;
    if (inside && atomic_load(&process.drain_started) != WITH)
        return; /* in the middle of our own code, which would have to do it */
    if (!gt_process_is_ours())
        return;
    atomic_store(&process.dying, true);
    gt_nursery_only = true; /* without threads it is this one that looks up names */
    gt_names_die(gt_options.ring_bytes ? RING_NAMES_NS : NAMES_NS);
    if (!gt_options.ring_bytes)
        gt_drain_hurry(DYING_NS);
    gt_process_end();
}

void gt_process_withdraw(void)
{
    if (!gt_process_is_ours())
        return;
    GT_KEEP_ERRNO;
    if (gt_recording())
        gt_log("the program confines itself by seccomp(2): nothing is recorded from here on");
    gt_descent_confine();
    gt_sampler_end();
    gt_process_end_last(); /* a filter may be for all threads, ours too */
    process.pid = 0;
    gt_control_open_alone(); /* the page says so */
}

void gt_process_abandon_children(void)
{
    gt_descent_confine();
    atomic_store(&process.abandons_children, true);
}

static void command(enum gt_drain_command what)
{
    struct gt_thread *t = gt_thread_enter();
    if (t) {
        gt_drain_command(what, NULL);
        gt_thread_leave(t);
    }
}

void gt_process_confines(bool all)
{
    /* Our thread keeps what it has, unless it is meant too. */
    if ((gt_drain_is_threaded() && !all) || has_ended())
        return;
    GT_KEEP_ERRNO;
    GT_HEAP_OWN(own);
    gt_names_confine();
    if (!gt_recording())
        start_recording(gt_options.manual); /* could not begin when it makes a thread */
    command(GT_DRAIN_SETTLE);
}

void gt_process_await_drain(void)
{
    if (!gt_drain_is_threaded() || has_ended())
        return;
    GT_KEEP_ERRNO;
    GT_HEAP_OWN(own);
    command(GT_DRAIN_PASS);
}

__attribute__((destructor)) static void at_exit(void)
{
    gt_process_end();
}

static void complete_file(struct gt_thread *t)
{
    gt_heap_write_exact(t);
    load_symbols_within_loader(t);
    gt_names_roughly(atomic_load(&process.drain_started) != WITH && is_anywhere(t));
    atomic_store(&process.execs, t->w.m);
    gt_report_before_exec(gt_drain_leave());
    atomic_store(&process.execs, 0);
    gt_names_roughly(false);
}

/*
 * A single-threaded program that turns into another has hardly a trace of its own to leave, unless
 * it has lived, and the other one's would not have its name.
 */
static bool leaves_trace(void)
{
    enum { LIVED_NS = 5000000 };
    bool has = atomic_load(&process.drain_started) || gt_recording_has_written() ||
               gt_recording_is_unreported();
    return has || (gt_options_output_is_unused() && gt_recording() &&
                   gt_clock_now() > gt_clock_units(LIVED_NS));
}

/* A child of vfork's has our memory, and so the thread that has made it, which stands still. */
static void note_maker(void)
{
    struct gt_maker maker = {0};
    if (!gt_census_is_open())
        return;
    pid_t pid = (pid_t)gt_syscall(SYS_getpid);
    if (process.pid == pid)
        maker = gt_origin_maker();
    else if (gt_recording() && gt_self && gt_syscall(SYS_getppid) == process.pid)
        maker = (struct gt_maker){(uint64_t)process.pid, gt_self->w.m, gt_clock_counter()};
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
            act(t, complete_file);
        return;
    }
    gt_census_withdraw();
    gt_live_remove(); /* there is no drain thread */
}

void gt_process_stays(void)
{
    if (gt_process_is_ours() && atomic_load(&process.ended))
        gt_log("daemon(3) failed: nothing is recorded from here on");
}

/* Start -------------------------------------------------------------------------------------- */

/* The child has one thread and no trace; it gets one when it makes a second thread, or now. */
void gt_process_after_fork(void)
{
    bool followed =
        gt_options.children != GT_CHILDREN_NONE && !atomic_load(&process.abandons_children);
    process.pid = followed ? (pid_t)gt_syscall(SYS_getpid) : 0;
    process.root = false;
    process.descendant = true;
    process.drain_started = process.ended = process.serving = process.execs = 0;
    process.dying = false;
    process.exiting = false;
}

bool gt_process_is_followed(void)
{
    return process.pid != 0;
}

bool gt_process_is_left_alone(void)
{
    return process.started && !process.pid;
}

/* A descendant with one thread is hardly worth a file, unless the user says so. */
static bool begins_with_one_thread(void)
{
    return !process.descendant || gt_options.children == GT_CHILDREN_ALL;
}

void gt_process_begin_child(void)
{
    GT_HEAP_OWN(own);
    bool before = gt_nursery_only;
    gt_nursery_only = true; /* a signal handler may have forked */
    if (begins_with_one_thread() && !gt_attach_is_free())
        start_recording(gt_options.manual);
    gt_nursery_only = before;
}

/*
 * Loading elfutils, the loader allocates with its locks held; and not in the nursery if it has
 * found another malloc before ours. The allocator may take its own locks and the loader's in the
 * other order (jemalloc, which makes threads), but not while there is one thread.
 *
 * A flight recorder is written when nothing can be loaded any more: see gt_process_crash.
 */
static void prepare_symbols(void)
{
    if (gt_elf_definer_before_us("malloc") || (gt_options.ring_bytes && !process.descendant))
        gt_symbolize_prepare();
}

static bool is_barred(void)
{
    return getauxval(AT_SECURE) != 0 || gt_descent_is_confined();
}

/* What is made once, before anything is recorded. */
static void prepare(void)
{
    process.pid = (pid_t)gt_syscall(SYS_getpid);
    gt_fork_watch();
    at_quick_exit(gt_process_end);
    gt_thread_init();
    gt_drain_thread_init();
    gt_sampler_init();
    gt_thread_main();
}

int gt_process_attach(const char *settings)
{
    GT_HEAP_OWN(own);
    if (getauxval(AT_SECURE) || gt_sanitizer_allocates())
        return getauxval(AT_SECURE) ? -EPERM : -ENOTSUP;
    gt_log_init();
    gt_options_read(settings);
    if (!gt_options.heap)
        gt_heap_off();
    gt_keys_have_destructors = true; /* for all we know */
    if (gt_attach_is_free())
        gt_thread_main();
    else
        prepare();
    process.descendant = false;
    gt_control_open_alone();
    start_recording(true);
    if (gt_recording())
        gt_process_second_thread();
    gt_thread_main_leave();
    return atomic_load(&process.drain_started) == WITH ? 0 : -EAGAIN;
}

bool gt_process_set_output(const char *pattern)
{
    process.files = 0;
    return gt_options_set_output(pattern);
}

/*
 * By dlopen(3): the program's calls do not come to us, unless we are attached to it. For that all
 * modules are looked at now, while the loader's lock is held, and none of them is unloaded.
 */
static void start_late(void)
{
    GT_HEAP_OWN(own);
    bool attaches = gt_attach_is_under_way();
    gt_nursery_close();
    if (attaches) {
        gt_capture_init();
        gt_real_find_code();
    }
    if (attaches || is_barred())
        return;
    gt_log_init();
    gt_options_read(NULL);
    if (gt_options.on)
        gt_log("loaded by dlopen(3), not by LD_PRELOAD: nothing is recorded");
}

/* As the kernel has made it; NULL: not known, before libc calls constructors. */
static char **kernels_environment;

static void start(void)
{
    GT_HEAP_OWN(own);
    bool barred = is_barred();
    if (!barred) {
        gt_log_init();
        process.root = !gt_descent_is_child();
        if (!process.root)
            gt_log_be_child();
        gt_options_read(NULL);
    }
    if (barred || !gt_options.on || !gt_options.heap)
        gt_heap_off();
    if (barred || !gt_options.on)
        return;
    if (gt_sanitizer_of_threads()) {
        gt_log("a program with ThreadSanitizer is not traced");
        return;
    }
    process.descendant =
        gt_options_output_path(process_path, false, 1) && gt_descent_is_descendant(process_path);
    if (process.descendant && gt_options.children == GT_CHILDREN_NONE) {
        gt_heap_off();
        return;
    }
    const char *family = gt_census_open(0600);
    if (family)
        gt_descent_tell(GT_CENSUS_VARIABLE, family);
    gt_descent_hand_down(kernels_environment);
    gt_capture_init();
    prepare();
    struct gt_maker maker;
    if (gt_census_take_maker(process.pid, &maker))
        gt_origin_made_by(&maker);
    prepare_symbols();
    gt_real_clear_dlerror();
    gt_signals_init();
    gt_control_open_alone();
    if (begins_with_one_thread())
        start_recording(gt_options.manual);
    if (gt_thread_others())
        gt_process_second_thread();
}

__attribute__((constructor)) static void at_start(int argc, char **argv)
{
    kernels_environment = argv + argc + 1;
    GT_KEEP_ERRNO; /* main finds 0 there, says the standard */
    gt_real_resolve();
    if (!process.started && gt_elf_is_late())
        start_late();
    else if (!process.started)
        start();
    process.started = true;
    if (process.pid) {
        gt_gc_init(); /* takes the collector's lock: not where that makes its threads */
        gt_real_clear_dlerror();
    }
}

/*
 * Most constructors run before ours, and some make threads. Not while an allocator may be at it
 * that does not know ours from the program's requests; nor before libc's own constructor, in
 * .preinit_array, where there is no environment yet.
 */
void gt_process_start_early(void)
{
    if (process.started || !environ || gt_syscall(SYS_gettid) != gt_syscall(SYS_getpid))
        return;
    gt_real_resolve();
    if (gt_elf_definer_before_us("malloc"))
        return;
    GT_KEEP_ERRNO;
    process.started = true;
    gt_nursery_only = true;
    start();
    gt_nursery_only = false;
}
