/* See process.h. */
#include "process.h"

#include "capture.h"
#include "control.h"
#include "descent.h"
#include "drain_thread.h"
#include "gc.h"
#include "heap.h"
#include "nursery.h"
#include "old_cond.h"
#include "options.h"
#include "sampler.h"
#include "sanitizer.h"
#include "signals.h"
#include "thread.h"

#include "../encoder/arena.h"
#include "../encoder/drain.h"
#include "../encoder/era.h"
#include "../encoder/log.h"
#include "../encoder/output.h"
#include "../encoder/recording.h"
#include "../encoder/urgent.h"
#include "../symbolize/elf_names.h"
#include "../symbolize/modules.h"
#include "../symbolize/symbolize.h"

#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum { WITH = 1, WITHOUT };

static struct {
    pid_t pid; /* of the process whose trace this is; a vfork child's differs */
    bool descendant;
    _Atomic bool leaves_children;   /* to themselves, whatever the options say */
    bool exiting;                   /* exit(3) is under way, as far as we were told */
    _Atomic uint32_t drain_started; /* WITH a thread, or WITHOUT: there was to be one */
    _Atomic uint32_t ended;
    _Atomic uint32_t serving; /* see serve_unfollowed */
    char path[PATH_MAX];
    unsigned files;            /* so many have been named */
    _Atomic uint64_t crash_ns; /* when it began to die of a signal; 0: it has not */
    bool said_lost;            /* before an exec */
    bool anywhere;             /* a signal handler writes: see gt_drain_relieve */
    struct gt_symbolizer *symbolizer;
    bool confined;         /* see gt_process_confines */
    bool epochs_unknown;   /* forget_modules' */
    uint32_t *same_memory; /* zero in a forked child: MADV_WIPEONFORK */
} process;

bool gt_process_is_ours(void)
{
    return process.pid && gt_syscall(SYS_getpid) == process.pid;
}

/* Symbols ------------------------------------------------------------------------------------ */

/* A process that dies spends so long on names, and then does without. */
#define CRASH_SYMBOLS_NS 5000000000

static int name_roughly(const struct gt_stack *s, uint64_t pc, struct gt_frame *out)
{
    static char name[PATH_MAX + 32];
    const struct gt_module *m = gt_modules_find(s->epoch, pc);
    const char *file = m ? gt_module_name(m) : "", *slash = strrchr(file, '/');
    snprintf(name, sizeof name, "%s+0x%llx", slash ? slash + 1 : file,
             (unsigned long long)(m ? pc - m->bias : pc));
    *out = (struct gt_frame){.func = name, .file = file};
    return 1;
}

/* Index 0 is the number of a hook, or the entry of a routine; the rest are return addresses. */
static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    static char description[GT_STRING_MAX + 1]; /* one caller at a time */
    struct gt_sym_frame frames[max];
    uint64_t pc = s->pcs[index], at = pc - (index > 0);
    if (index == 0 && pc < GT_LEAVES_END) {
        out[0] = (struct gt_frame){.func = gt_real_name((enum gt_hook)pc), .file = "libc.so.6"};
        return 1;
    }
    uint64_t crash_ns = atomic_load(&process.crash_ns);
    bool late = crash_ns && gt_clock_monotonic_raw() - crash_ns > CRASH_SYMBOLS_NS;
    bool hurry = late || process.anywhere;
    if (!crash_ns && !process.anywhere && !gt_modules_find(s->epoch, pc))
        gt_modules_refresh(); /* loaded since the last look, and still there */
    if (!hurry && !process.symbolizer)
        process.symbolizer = gt_symbolizer_new();
    int n = hurry ? name_roughly(s, at, out)
                  : gt_symbolize(process.symbolizer, s->epoch, pc, index > 0, frames, max);
    for (int i = 0; i < n && !hurry; i++)
        out[i] = (struct gt_frame){frames[i].func, frames[i].file, frames[i].line, 0, NULL};
    const struct gt_module *m = gt_modules_find(s->epoch, at);
    if (m)
        out[n - 1].pc = at - m->lo + m->shown;
    if (m && gt_modules_describe(m, description, sizeof description))
        out[n - 1].module = description;
    return n;
}

static void hold_names(void)
{
    if (!process.symbolizer)
        process.symbolizer = gt_symbolizer_new();
    gt_symbolize_hold(process.symbolizer);
}

static bool is_same_code(uint64_t pc, uint32_t one, uint32_t other)
{
    const struct gt_module *m = pc < GT_LEAVES_END ? NULL : gt_modules_find(one, pc);
    if (m)
        return m == gt_modules_find(other, pc);
    return pc < GT_LEAVES_END || gt_modules_same(&pc, 1, one, other);
}

/* Memory ------------------------------------------------------------------------------------- */

static bool is_inside(const struct gt_writer *w)
{
    const struct gt_thread *t = (const void *)((const char *)w - offsetof(struct gt_thread, w));
    bool inside = __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE); /* then what it found is read */
    return inside && !__atomic_load_n(&t->stuck, __ATOMIC_RELAXED) && t != gt_self;
}

static void note_epoch(void *epochs, struct gt_stack *s)
{
    uint64_t *slot = gt_memo_at(epochs, gt_stack_epoch(s));
    if (slot)
        *slot = 1;
    else
        process.epochs_unknown = true;
}

/*
 * The symbolizer has the modules' records, and files of some: it is made anew when next needed. In
 * a child whose parent was here there is none, rather than one with records that are gone.
 */
static void forget_with_symbolizer(const struct gt_memo *epochs)
{
    struct gt_symbolizer *s = process.symbolizer;
    process.symbolizer = NULL;
    if (!gt_modules_forget(epochs))
        process.symbolizer = s;
    else if (s)
        gt_symbolizer_free(s);
}

/* Not where files that the symbolizer has could not be opened again, nor in a signal handler. */
static void forget_modules(void)
{
    enum { GONE_MAX = 64 };
    struct gt_memo epochs = {.slots = NULL};
    if (gt_modules_gone() < GONE_MAX || process.confined || process.anywhere)
        return;
    process.epochs_unknown = false;
    gt_stacks_each_kept(note_epoch, &epochs);
    if (!process.epochs_unknown)
        forget_with_symbolizer(&epochs);
    gt_memo_free(&epochs);
}

/* Recording ---------------------------------------------------------------------------------- */

static const char *next_path(void)
{
    bool whole = gt_options_output_path(process.path, process.descendant, ++process.files);
    return whole ? process.path : NULL;
}

static bool say_stopped(void)
{
    char line[GT_PROCESS_LINE];
    gt_process_describe(line);
    return gt_log("%s", line);
}

/*
 * Begins to follow threads, and to record them unless that is for later: when told to, if manual.
 */
static void start_recording(bool manual)
{
    if (!gt_options_output_path(process.path, process.descendant, 1)) {
        gt_log("GOTRACE_OUTPUT is too long; nothing is recorded");
        return;
    }
    process.files = !manual && !gt_options.delay && !gt_options.ring_bytes;
    gt_clock_init();
    gt_buffers_set_limit(gt_options.max_mem);
    gt_drain_open(&(struct gt_drain_config){.path = process.path,
                                            .next_path = next_path,
                                            .max_size = gt_options.max_size,
                                            .format = gt_options.format,
                                            .manual = manual,
                                            .delay_ns = gt_options.delay,
                                            .duration_ns = gt_options.duration,
                                            .ring_bytes = gt_options.ring_bytes,
                                            .ring_ns = gt_options.ring_time,
                                            .memory = gt_options.ring_bytes ? gt_options.ring_bytes
                                                                            : gt_options.max_mem,
                                            .started = gt_heap_restart,
                                            .stopped = say_stopped,
                                            .serve = gt_control_serve,
                                            .resolve = resolve,
                                            .hold = hold_names,
                                            .same = is_same_code,
                                            .inside = is_inside,
                                            .aged = gt_modules_age,
                                            .forget = forget_modules,
                                            .sample = gt_heap_sample_goal,
                                            .alone = gt_drain_thread_is_last});
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
    int saved = errno;
    GT_HEAP_OWN(own);
    gt_control_serve();
    errno = saved;
    atomic_store(&process.serving, 0);
}

/*
 * What a thread of the program does in the drain thread's place: within the guard, and without the
 * program's allocator, which it may be inside of.
 */
static void act(struct gt_thread *t, void (*what)(struct gt_thread *t))
{
    int saved = errno;
    GT_HEAP_OWN(own);
    gt_nursery_only = true;
    what(t);
    gt_nursery_only = false;
    errno = saved;
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
    process.anywhere = is_anywhere(t);
    gt_drain_relieve(process.anywhere);
    process.anywhere = false;
}

void gt_process_relieve(void)
{
    struct gt_thread *t;
    if (atomic_load(&process.drain_started) == WITH || atomic_load(&process.ended) ||
        !gt_process_is_ours())
        return;
    if ((t = gt_thread_enter()))
        act(t, relieve);
}

void gt_process_threaded(void)
{
    if (atomic_load(&process.drain_started) || atomic_load(&process.ended) || !gt_process_is_ours())
        return;
    uint32_t no = 0;
    if (!atomic_compare_exchange_strong(&process.drain_started, &no, WITH))
        return;
    int saved = errno;
    GT_HEAP_OWN(own);
    bool before = gt_nursery_only;
    gt_nursery_only = true; /* a signal handler may be what makes a thread known */
    if (!gt_recording())
        start_recording(gt_options.manual);
    if (gt_recording() && !gt_drain_thread_start())
        atomic_store(&process.drain_started, WITHOUT);
    gt_nursery_only = before;
    errno = saved;
}

void gt_process_wait_for_memory(void)
{
    int saved = errno;
    if (gt_drain_is_threaded() && gt_urgent())
        gt_urgent_lend();
    else if (gt_drain_is_threaded())
        gt_era_wait();
    errno = saved;
}

/* End ---------------------------------------------------------------------------------------- */

#define NOT_IN_TIME "%s: could not be written in time; its end is missing"

void gt_process_describe(char line[GT_PROCESS_LINE])
{
    struct gt_recording_summary s = gt_recording_summary();
    if (!s.finished || s.error == -ETIMEDOUT) {
        snprintf(line, GT_PROCESS_LINE, NOT_IN_TIME, s.path);
        return;
    }
    if (s.error && !s.limited) {
        snprintf(line, GT_PROCESS_LINE, "cannot write %s: %s; the program was not affected", s.path,
                 strerrordesc_np(-s.error));
        return;
    }
    if (s.limited && !s.bytes) {
        snprintf(line, GT_PROCESS_LINE, "%s: no file: GOTRACE_MAX_SIZE is too small for any of it",
                 s.path);
        return;
    }
    char lost[96] = "nothing lost";
    if (s.limited)
        strcpy(lost, "stopped at GOTRACE_MAX_SIZE");
    else if (s.lost)
        snprintf(lost, sizeof lost, "%llu events lost: threads or the disk stood still",
                 (unsigned long long)s.lost);
    else if (s.waits)
        snprintf(lost, sizeof lost, "nothing lost, but threads waited %llu times, %.3f s, to write",
                 (unsigned long long)s.waits, (double)s.wait_ns / 1e9);
    else if (gt_stacks_lost())
        snprintf(lost, sizeof lost, "%llu stacks lost: too many new ones at a time",
                 (unsigned long long)gt_stacks_lost());
    else if (gt_samples_lost())
        snprintf(lost, sizeof lost, "%llu CPU samples lost", (unsigned long long)gt_samples_lost());
    snprintf(line, GT_PROCESS_LINE,
             "%s: %.1f KiB, %llu events in %.3f s, %s; view: go tool trace %s", s.path,
             (double)s.bytes / 1024, (unsigned long long)s.events, (double)s.duration_ns / 1e9,
             lost, s.path);
}

void gt_process_end(void)
{
    if (!gt_process_is_ours())
        return;
    GT_HEAP_OWN(own);
    struct gt_thread *t = gt_self;
    if (t && t != &gt_nobody) {
        bool mid_event = gt_writer_busy(&t->w) || (process.crash_ns && t->inside);
        if (t->inside)
            atomic_store(&gt_any_jumped, true); /* what is locked stays so */
        /* A signal handler that ends the process in the middle of our code never goes back there;
         * the drain side must not wait for it. */
        t->inside = 1;
        gt_writer_leave(&t->w);
        if (!mid_event)
            gt_heap_write_exact(t);
    }
    bool first = !atomic_exchange(&process.ended, 1);
    if (gt_drain_finish() && first)
        say_stopped();
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
    int saved = errno;
    if (gt_recording() && !atomic_load(&process.leaves_children) && gt_process_is_ours() &&
        gt_log_keep()) {
        process.exiting = is_exiting();
        if (!process.exiting)
            atomic_store(&gt_drain_unattended, 1);
    }
    errno = saved;
}

void gt_process_end_last(void)
{
    gt_process_end();
    gt_drain_thread_await_end();
}

void gt_process_crash(void)
{
    struct gt_thread *t = gt_self;
    bool inside = t && t != &gt_nobody && t->inside;
    if (inside && atomic_load(&process.drain_started) != WITH)
        return; /* in the middle of our own code, which would have to do it */
    if (!gt_process_is_ours())
        return;
    atomic_store(&process.crash_ns, gt_clock_monotonic_raw());
    gt_nursery_only = true; /* without threads it is this one that looks up names */
    gt_symbolize_freeze();
    gt_process_end();
}

void gt_process_withdraw(void)
{
    if (!gt_process_is_ours())
        return;
    int saved = errno;
    if (gt_recording())
        gt_log("the program confines itself by seccomp(2): nothing is recorded from here on");
    gt_descent_confine();
    gt_sampler_end();
    gt_process_end_last(); /* a filter may be for all threads, ours too */
    process.pid = 0;
    gt_control_open_alone(); /* the page says so */
    errno = saved;
}

void gt_process_leave_children(void)
{
    gt_descent_confine();
    atomic_store(&process.leaves_children, true);
}

void gt_process_confines(bool all)
{
    /* Our thread keeps what it has, unless it is meant too. */
    if ((gt_drain_is_threaded() && !all) || atomic_load(&process.ended) || !gt_process_is_ours())
        return;
    int saved = errno;
    GT_HEAP_OWN(own);
    process.confined = true;
    if (!gt_recording())
        start_recording(gt_options.manual); /* could not begin when it makes a thread */
    struct gt_thread *t = gt_thread_enter();
    if (t) {
        gt_drain_command(GT_DRAIN_SETTLE, NULL);
        gt_thread_leave(t);
    }
    errno = saved;
}

__attribute__((destructor)) static void at_exit(void)
{
    gt_process_end();
}

GT_EXPORT __attribute__((noreturn)) void _exit(int status)
{
    gt_process_end();
    gt_real._exit(status);
    __builtin_unreachable();
}

GT_EXPORT __attribute__((noreturn)) void _Exit(int status)
{
    gt_process_end();
    gt_real._Exit(status);
    __builtin_unreachable();
}

GT_EXPORT __attribute__((noreturn)) void abort(void)
{
    gt_process_end();
    gt_real.abort();
    __builtin_unreachable();
}

/* Nobody will say it afterwards. */
static void say_lost_by_exec(int error)
{
    struct gt_recording_summary s = gt_recording_summary();
    bool lost = error == -ETIMEDOUT || s.error || s.lost;
    if (!lost || process.said_lost)
        return;
    process.said_lost = true; /* the next exec is only another directory of PATH */
    if (error == -ETIMEDOUT)
        gt_log(NOT_IN_TIME, gt_output_path());
    else if (s.error)
        say_stopped();
    else
        gt_log("%s: %llu events lost: threads or the disk stood still", gt_output_path(),
               (unsigned long long)s.lost);
}

static void leave_file(struct gt_thread *t)
{
    gt_heap_write_exact(t);
    process.anywhere = atomic_load(&process.drain_started) != WITH && is_anywhere(t);
    say_lost_by_exec(gt_drain_flush());
    process.anywhere = false;
}

void gt_process_before_exec(void)
{
    struct gt_thread *t;
    /* A single-threaded program that turns into another has hardly a trace of its own to leave. */
    bool leaves = atomic_load(&process.drain_started) || gt_recording_has_written() ||
                  gt_recording_is_unreported();
    if (leaves && gt_process_is_ours() && (t = gt_thread_enter()))
        act(t, leave_file);
}

/* A library's symbols must be findable after it is gone. */
GT_EXPORT int dlclose(void *handle)
{
    struct gt_thread *t = gt_thread_enter();
    if (t)
        gt_modules_refresh();
    if (t)
        gt_thread_leave(t);
    int r = gt_real.dlclose(handle);
    t = gt_thread_enter();
    if (t)
        gt_modules_refresh();
    if (t)
        gt_thread_leave(t);
    return r;
}

/* Start and fork ----------------------------------------------------------------------------- */

/* The child has one thread and no trace; it gets one when it makes a second thread. */
static void after_fork(void)
{
    if (!process.pid)
        return;
    bool followed = gt_options.children && !atomic_load(&process.leaves_children);
    process.pid = followed ? (pid_t)gt_syscall(SYS_getpid) : 0;
    if (process.same_memory)
        *process.same_memory = 1;
    process.descendant = true;
    process.drain_started = process.ended = process.serving = 0;
    process.exiting = false;
    process.crash_ns = 0;
    process.said_lost = process.anywhere = false;
    gt_control_after_fork();
    gt_drain_thread_after_fork();
    gt_drain_after_fork();
    gt_registry_after_fork();
    gt_modules_after_fork();
    gt_heap_after_fork();
    gt_sampler_after_fork();
    gt_signals_after_fork();
    gt_thread_after_fork();
}

enum { HELD_SYMBOLS = 1, HELD_MODULES = 2 };

unsigned gt_process_before_fork(void)
{
    gt_log_let_go();
    unsigned held = gt_symbolize_fork_begin() ? HELD_SYMBOLS : 0;
    return held | (gt_modules_fork_begin() ? HELD_MODULES : 0);
}

static void release_after_fork(unsigned held)
{
    if (held & HELD_MODULES)
        gt_modules_fork_end();
    if (held & HELD_SYMBOLS)
        gt_symbolize_fork_end();
}

void gt_process_after_fork(unsigned held)
{
    release_after_fork(held);
    gt_process_check_fork();
}

static __thread unsigned held_over_fork;

static void before_libc_forks(void)
{
    held_over_fork = gt_process_before_fork();
}

static void after_libc_forked(void)
{
    gt_process_after_fork(held_over_fork);
}

/* Not by what a wiped page tells: old kernels do not wipe. */
static void in_libcs_child(void)
{
    release_after_fork(held_over_fork);
    after_fork();
}

static void watch_forks(void)
{
    pthread_atfork(before_libc_forks, after_libc_forked, in_libcs_child);
    uint32_t *word = gt_pages_alloc(sizeof *word);
    if (word && madvise(word, sizeof *word, MADV_WIPEONFORK) == 0) {
        *word = 1;
        process.same_memory = word;
    }
}

void gt_process_check_fork(void)
{
    if (process.same_memory && !*process.same_memory)
        after_fork();
}

GT_EXPORT pid_t _Fork(void)
{
    unsigned held = gt_process_before_fork();
    pid_t pid = gt_real._Fork();
    int saved = errno;
    gt_process_after_fork(held);
    errno = saved;
    return pid;
}

static void quick(void)
{
    gt_process_end();
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

static void start(void)
{
    GT_HEAP_OWN(own);
    bool barred = getauxval(AT_SECURE) != 0 || gt_descent_is_confined();
    if (!barred) {
        gt_log_init();
        gt_options_read();
    }
    if (barred || !gt_options.on || !gt_options.heap)
        gt_heap_off();
    if (barred || !gt_options.on)
        return;
    if (gt_elf_is_late()) {
        gt_log("loaded by dlopen(3), not by LD_PRELOAD: nothing is recorded");
        return;
    }
    if (gt_sanitizer_of_threads()) {
        gt_log("a program with ThreadSanitizer is not traced");
        return;
    }
    process.pid = (pid_t)gt_syscall(SYS_getpid);
    process.descendant =
        gt_options_output_path(process.path, false, 1) && gt_descent_is_descendant(process.path);
    if (process.descendant && !gt_options.children) {
        process.pid = 0;
        return;
    }
    watch_forks();
    at_quick_exit(quick);
    gt_old_cond_scan();
    gt_thread_init();
    gt_drain_thread_init();
    gt_capture_init();
    gt_sampler_init();
    gt_thread_main();
    prepare_symbols();
    gt_real_clear_dlerror();
    gt_signals_init();
    gt_control_open_alone();
    if (!process.descendant)
        start_recording(gt_options.manual);
    if (gt_thread_others())
        gt_process_threaded();
}

static bool started;

__attribute__((constructor)) static void at_start(void)
{
    gt_real_resolve();
    if (!started)
        start();
    started = true;
    if (!process.pid)
        return;
    gt_gc_init(); /* takes the collector's lock: not where that makes its threads */
    gt_real_clear_dlerror();
}

/*
 * Most constructors run before ours, and some make threads. Not while an allocator may be at it
 * that does not know ours from the program's requests; nor before libc's own constructor, in
 * .preinit_array, where there is no environment yet.
 */
void gt_process_start_early(void)
{
    if (started || !environ || gt_syscall(SYS_gettid) != gt_syscall(SYS_getpid))
        return;
    gt_real_resolve();
    if (gt_elf_definer_before_us("malloc"))
        return;
    int saved = errno;
    started = true;
    gt_nursery_only = true;
    start();
    gt_nursery_only = false;
    errno = saved;
}
