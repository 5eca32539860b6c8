/* See process_start.h. */
#include "process_start.h"

#include "births.h"
#include "drain_thread.h"
#include "fork.h"
#include "process_end.h"

#include "encoder/base/log.h"
#include "encoder/base/sparse.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/live.h"
#include "encoder/format/lock_texts.h"
#include "preload/bind/nursery.h"
#include "preload/bind/real.h"
#include "preload/bind/sanitizer.h"
#include "preload/control/control.h"
#include "preload/control/report.h"
#include "preload/heap/gc.h"
#include "preload/heap/heap.h"
#include "preload/process/attach_state.h"
#include "preload/process/fatal.h"
#include "preload/process/process_names.h"
#include "preload/process/process_state.h"
#include "preload/process/read_usage.h"
#include "preload/process/signals.h"
#include "preload/registry/contention.h"
#include "preload/shared/census.h"
#include "preload/shared/control_page.h"
#include "preload/shared/descent.h"
#include "preload/shared/options.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/capture.h"
#include "preload/thread/sampler.h"
#include "preload/waits/blocked.h"
#include "preload/waits/brief.h"
#include "preload/waits/hang.h"
#include "preload/waits/signalled.h"
#include "preload/waits/wait.h"
#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/modules.h"
#include "symbolize/symbolize.h"

#include <sys/auxv.h>

static char process_path[PATH_MAX] GT_SPARSE; /* of the process's trace */

static unsigned files; /* output files named so far */

static bool is_inside(const struct gt_writer *w)
{
    const struct gt_thread *t = gt_thread_of(w);
    /* acquire: pairs with gt_thread_leave; a thread found outside has read what it looked up. */
    bool inside = __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE);
    return inside && !__atomic_load_n(&t->stuck, __ATOMIC_RELAXED) && t != gt_self;
}

/* Recording ---------------------------------------------------------------------------------- */

/* The next output path that does not overwrite a trace of an earlier image (exec) of this process.
 * NULL: too long. */
static const char *next_path(void)
{
    enum { MOST = 1000 };
    bool whole;
    do
        whole = gt_options_output_path(process_path, gt_process.descendant, ++files);
    while (whole && files < MOST && gt_descent_has_left(process_path));
    return whole ? process_path : NULL;
}

/* Called when a new recording begins. */
static void restart(void)
{
    gt_heap_restart();
    gt_signalled_reset();
    gt_brief_reset();
    gt_contention_begin();
}

/* Called when the recording goes on in another file. */
static void go_on(void)
{
    gt_heap_restart();
    gt_signalled_forget_told();
    gt_brief_forget_told();
}

static void tell_at_end(gt_tell_fn *tell)
{
    uint32_t caller = atomic_load(&gt_process.execs);
    char text[sizeof GT_EXEC + 16];
    gt_blocked_tell(tell);
    gt_signalled_tell(tell);
    gt_brief_tell(tell);
    gt_contention_sum_up();
    if (caller)
        tell(text, (uint32_t)snprintf(text, sizeof text, GT_EXEC "%u ", caller));
}

static const struct gt_drain_host host = {.next_path = next_path,
                                          .started = restart,
                                          .rotated = go_on,
                                          .stopped = gt_report_stopped,
                                          .serve = gt_control_serve,
                                          .hold = gt_names_hold,
                                          .sample = gt_heap_sample_goal,
                                          .look = gt_hang_look,
                                          .alone = gt_drain_thread_is_last};
static const struct gt_frame_names names = {
    .resolve = gt_names_resolve, .of_time = gt_names_of_time, .same = gt_names_same_code};
static const struct gt_held_texts texts = {
    .lock = gt_names_lock, .function = gt_names_function, .at_end = tell_at_end};
static const struct gt_drain_waits waits = {.is_taken = gt_wait_is_taken,
                                            .is_asleep = gt_wait_is_asleep};
static const struct gt_drain_cpus cpus = {.usage = gt_usage_read,
                                          .halts = gt_usage_halts,
                                          .where = gt_usage_where,
                                          .may_watch = gt_usage_is_apart,
                                          .walk = gt_sampler_walk,
                                          .by_copy = gt_sampler_by_copy,
                                          .by_timers = gt_sampler_switch};
static const struct gt_drain_renewal renewal = {
    .inside = is_inside, .aged = gt_modules_age, .forget = gt_names_forget};

/* Whether the caller is the thread that loads us to attach. */
static bool attach_is_under_way(void)
{
    char name[16];
    return gt_syscall(SYS_prctl, PR_GET_NAME, name) == 0 && strcmp(name, GT_CONTROL_THREAD) == 0;
}

/* Begins to follow threads, and to record them unless recording is to start later. manual: it
 * starts on request. */
static void start_recording(bool manual)
{
    if (!gt_census_admit())
        return;
    files = 0;
    if (!next_path()) {
        gt_log("GOTRACE_OUTPUT is too long; nothing is recorded");
        return;
    }
    if (manual || gt_options.delay || gt_options.ring_bytes)
        files--; /* the file is named again when it is begun */
    gt_clock_init();
    if (!attach_is_under_way())
        gt_fatal_init(gt_process_crash);
    gt_buffers_set_limit(gt_options.max_mem);
    gt_drain_open(&(struct gt_drain_config){
        .file = {.path = process_path,
                 .format = gt_options.format,
                 .max_size = gt_options.max_size,
                 .spares = gt_descent_since(),
                 .rotation = gt_options.rotation,
                 .program = gt_options_program(),
                 .setup = gt_options_setup(),
                 .names_later = gt_options.names_later},
        .times = {manual, gt_options.delay, gt_options.duration},
        .memory = {.ring_bytes = gt_options.ring_bytes,
                   .ring_ns = gt_options.ring_time,
                   .tables = gt_options.ring_bytes ? gt_options.ring_bytes : gt_options.max_mem,
                   .live = gt_options.boxed ? gt_options.live : NULL,
                   .leaves = gt_options.boxed ? gt_real_names() : 0},
        .cpu = {gt_sampler_hz(), .copies = !gt_python_runs, .sched = gt_options.sched},
        .host = host,
        .names = names,
        .texts = texts,
        .waits = waits,
        .cpus = cpus,
        .renewal = renewal});
    gt_modules_box();
    gt_thread_main_begin();
    struct gt_thread *t = gt_thread_enter();
    if (t) {
        gt_heap_write_exact(t);
        gt_thread_leave(t);
    }
}

bool gt_process_begin(bool manual)
{
    start_recording(manual);
    return gt_recording();
}

void gt_process_second_thread(void)
{
    if (atomic_load(&gt_process.drain_started) || gt_process_has_ended())
        return;
    uint32_t no = 0;
    if (!atomic_compare_exchange_strong(&gt_process.drain_started, &no, GT_DRAIN_WITH_THREAD))
        return;
    GT_OWN_WORK(own);
    bool before = gt_nursery_only;
    gt_nursery_only = true; /* a signal handler may be what makes a thread known */
    if (!gt_recording())
        start_recording(gt_options.manual);
    if (gt_recording() && !gt_drain_thread_start())
        atomic_store(&gt_process.drain_started, GT_DRAIN_WITHOUT_THREAD);
    gt_nursery_only = before;
}

/* Resets the state: the child has one thread and no trace. Its trace begins in
 * gt_process_begin_child or when it makes a second thread. */
void gt_process_after_fork(void)
{
    bool followed =
        gt_options.children != GT_CHILDREN_NONE && !atomic_load(&gt_process.abandons_children);
    gt_process.pid = followed ? (pid_t)gt_syscall(SYS_getpid) : 0;
    gt_process.root = false;
    gt_process.descendant = true;
    gt_process.drain_started = gt_process.ended = gt_process.serving = gt_process.execs = 0;
    gt_process.drain_tid = 0; /* no thread waits for its end */
    gt_process.holds_until = 0;
    gt_process.leaver = 0;
    gt_process.dying = false;
    gt_process.exiting = false;
}

/* Whether to record before there is a second thread. A descendant with one thread is hardly worth a
 * file, unless the user asks for it. */
static bool begins_with_one_thread(void)
{
    return !gt_process.descendant || gt_options.children == GT_CHILDREN_ALL;
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
 * Loads elfutils early, in two cases.
 *
 * If the loader found another malloc before ours, it allocates from that malloc, not from the
 * nursery, while it loads elfutils with its locks held. The allocator may take its own locks and
 * the loader's in the other order (jemalloc, which makes threads). That cannot deadlock while there
 * is only one thread.
 *
 * A flight recorder may be written when nothing can be loaded any more: see gt_process_crash.
 */
static void prepare_symbols(void)
{
    if (gt_elf_definer_before_us("malloc") || (gt_options.ring_bytes && !gt_process.descendant))
        gt_symbolize_prepare();
}

static bool is_barred(void)
{
    return getauxval(AT_SECURE) != 0 || gt_descent_is_confined();
}

/* Sets up what the process needs once, before anything is recorded. */
static void prepare(void)
{
    gt_process.pid = (pid_t)gt_syscall(SYS_getpid);
    gt_fork_watch();
    at_quick_exit(gt_process_at_exit);
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
    gt_process.descendant = false;
    gt_control_open_alone();
    start_recording(true);
    if (gt_recording())
        gt_process_second_thread();
    gt_thread_main_leave();
    return atomic_load(&gt_process.drain_started) == GT_DRAIN_WITH_THREAD ? 0 : -EAGAIN;
}

bool gt_process_set_output(const char *pattern)
{
    files = 0;
    return gt_options_set_output(pattern);
}

/*
 * The constructor's work after dlopen(3), when the program's calls do not come to us unless
 * `gotrace start` attaches to it. For attaching, looks at all modules now: the loader's lock is
 * held, so that no module is unloaded.
 */
static void start_late(void)
{
    GT_HEAP_OWN(own);
    bool attaches = attach_is_under_way();
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

/* The environment that the kernel made; NULL: not known, before libc calls constructors. */
static char **kernels_environment;

static void start(void)
{
    GT_HEAP_OWN(own);
    bool barred = is_barred();
    if (!barred) {
        gt_log_init();
        gt_process.root = !gt_descent_is_child();
        if (!gt_process.root)
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
    gt_process.descendant =
        gt_options_output_path(process_path, false, 1) && gt_descent_is_descendant(process_path);
    if (gt_process.descendant && gt_options.children == GT_CHILDREN_NONE) {
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
    if (gt_census_take_maker(gt_process.pid, &maker))
        gt_origin_made_by(&maker);
    prepare_symbols();
    gt_real_clear_dlerror();
    gt_signals_init();
    if (gt_options.ring_bytes)
        gt_fatal_init(gt_process_crash);
    gt_control_open_alone();
    if (begins_with_one_thread())
        start_recording(gt_options.manual);
    if (gt_thread_others())
        gt_process_second_thread();
}

__attribute__((constructor)) static void at_start(int argc, char **argv)
{
    kernels_environment = argv + argc + 1;
    GT_KEEP_ERRNO; /* the C standard says that main finds errno 0 */
    gt_real_resolve();
    if (!gt_process.started && gt_elf_is_late())
        start_late();
    else if (!gt_process.started)
        start();
    gt_process.started = true;
    if (gt_process.pid) {
        gt_gc_init(); /* takes the collector's lock: not while the collector makes its threads */
        gt_real_clear_dlerror();
    }
}

/*
 * Most constructors run before ours, and some make threads. Does nothing if a malloc before ours
 * may be making the thread, since that allocator cannot tell our requests from the program's. Does
 * nothing in .preinit_array, before libc's own constructor, either: there is no environment yet.
 */
void gt_process_start_early(void)
{
    if (gt_process.started || !environ || gt_syscall(SYS_gettid) != gt_syscall(SYS_getpid))
        return;
    gt_real_resolve();
    if (gt_elf_definer_before_us("malloc"))
        return;
    GT_KEEP_ERRNO;
    gt_process.started = true;
    gt_nursery_only = true;
    start();
    gt_nursery_only = false;
}
