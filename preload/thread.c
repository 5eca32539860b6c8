/* Threads: their beginning, end, names, and waiting for their end. See thread.h. */
#include "thread.h"

#include "attach.h"
#include "fork.h"
#include "met.h"
#include "process.h"
#include "seccomp.h"

#include "encoder/base/arena.h"
#include "encoder/base/libc.h"
#include "encoder/base/sparse.h"
#include "encoder/events.h"
#include "encoder/origin.h"
#include "preload/heap/heap.h"
#include "preload/hooks/wait.h"
#include "preload/stacks/capture.h"
#include "preload/stacks/python.h"
#include "preload/stacks/routine.h"

#include <stdarg.h>
#include <sys/stat.h>

__thread struct gt_thread *gt_self;
struct gt_thread gt_nobody = {.inside = GT_INSIDE_FOR_GOOD, .stack_size = UINTPTR_MAX};

static struct {
    struct gt_freelist free;
    _Atomic(struct gt_thread *) cloned; /* without thread-local variables of their own, by tid */
    struct gt_arena arena;
    _Atomic uint64_t last_g;
    _Atomic uint32_t live;   /* threads in the trace that have not ended, or not even begun */
    struct gt_lock key_lock; /* of the two below */
    bool has_key;            /* whose destructor tells of a thread's end */
    pthread_key_t key;
    pthread_attr_t attr; /* all defaults: libc fills them in when asked */
} threads = {
    .arena = {.chunk_bytes = 16 * sizeof(struct gt_thread), .align = _Alignof(struct gt_thread)}};

static struct gt_thread first_thread GT_SPARSE, *main_thread = &first_thread;

/* Structs ------------------------------------------------------------------------------------ */

static struct gt_thread *thread_alloc(void)
{
    struct gt_thread *t = gt_freelist_pop(&threads.free);
    if (t) {
        t->regions.open = 0;
    } else {
        t = gt_arena_alloc(&threads.arena, sizeof *t);
        if (!t) {
            gt_lost();
            return NULL;
        }
        gt_writer_register(&t->w);
    }
    t->w.g.id = atomic_fetch_add(&threads.last_g, 1) + 1;
    t->stack_bytes = 0;
    t->exit_round = 0;
    t->inside = 0;
    t->frame = 0;
    t->jumped = false;
    t->w.jumped = false;
    t->w.may_lose = false;
    t->stuck = false;
    memset(&t->holds, 0, sizeof t->holds);
    return t;
}

static void thread_free(struct gt_thread *t)
{
    gt_freelist_push(&threads.free, &t->free);
}

#define STACK_WINDOW (256u << 10)

/* The caller runs on this stack: around here it need not be checked again. */
static void note_stack(struct gt_thread *t)
{
    t->stack_lo = (uintptr_t)__builtin_frame_address(0) - STACK_WINDOW / 2;
    t->stack_size = STACK_WINDOW;
}

/* false: the program has our key. */
static bool set_key(struct gt_thread *t)
{
    bool locked = gt_lock_within(&threads.key_lock, GT_RANK_KEY, GT_LOCK_PATIENCE_NS);
    bool set = locked && threads.has_key && pthread_setspecific(threads.key, t) == 0;
    if (locked)
        gt_unlock(&threads.key_lock);
    return set;
}

/* The calling thread is t. */
static void settle(struct gt_thread *t)
{
    note_stack(t);
    gt_trail_begin(&t->trail, t->stack_bytes);
    t->self = pthread_self();
    gt_self = t;
}

/* It becomes that. */
static void adopt(struct gt_thread *t)
{
    t->w.m = (uint32_t)gt_syscall(SYS_gettid);
    t->w.last = gt_clock_now();
    settle(t);
}

void gt_thread_ignore(void)
{
    gt_self = &gt_nobody;
}

/* Beginning and end -------------------------------------------------------------------------- */

/* Whether the thread was cancelled, or jumped, amid an event: more events could contradict it. */
static bool is_torn(struct gt_thread *t)
{
    bool torn = gt_writer_busy(&t->w);
    if (t->inside && !t->stuck)
        atomic_store(&gt_any_jumped, true);
    if (torn)
        gt_writer_jumped(&t->w);
    /* release: what it has written is whole. Pairs with the drain side's acquire. */
    atomic_store_explicit(&t->w.torn, torn, memory_order_release);
    return torn;
}

/* The thread's goroutine ends; the thread itself is not traced any more, or as another one. */
static void end_goroutine(struct gt_thread *t)
{
    bool torn = is_torn(t);
    t->inside = 1;
    t->w.may_lose = false;
    gt_sampler_thread_end(t);
    bool forgotten; /* a wait that was left by cancellation or longjmp */
    do
        forgotten = gt_park_forget(&t->parking, GT_LOCK_PATIENCE_NS);
    while (!forgotten && !atomic_load(&gt_any_jumped));
    gt_heap_thread_end(torn ? NULL : t, atomic_load(&threads.live) == 1);
    if (forgotten && !torn && gt_writer_pin(&t->w)) {
        gt_ev_thread_end(&t->w);
        gt_writer_unpin(&t->w);
    }
    gt_capture_close(t); /* a call left by a jump may still be announced */
    gt_self = &gt_nobody;
    t->inside = 0; /* nobody is any more: see gt_process's is_inside */
    if (t != main_thread && forgotten && !torn && !gt_writer_gone(&t->w))
        thread_free(t);
}

static void local_destructor(void *arg);

/* At the beginning of a thread, where it may allocate. */
static void await_end(struct gt_thread *t)
{
    if (!set_key(t))
        __cxa_thread_atexit_impl(local_destructor, t, &__dso_handle);
}

static void write_label(struct gt_thread *t, const char *name)
{
    struct gt_string *s = gt_strings_intern(name);
    if (!s)
        gt_lost();
    if (s && t->w.g.state == GT_G_RUNNING && gt_writer_pin(&t->w)) {
        gt_ev_go_label(&t->w, s);
        gt_writer_unpin(&t->w);
    }
}

static void thread_begin(struct gt_thread *t)
{
    /* A signal handler may have run in this thread before, and have made it appear. */
    struct gt_thread *early = __atomic_exchange_n(&gt_self, &gt_nobody, __ATOMIC_RELAXED);
    bool appeared = early && early != &gt_nobody;
    if (appeared) {
        end_goroutine(early);
        atomic_fetch_sub(&threads.live, 1);
    }
    t->inside = 1;
    adopt(t);
    await_end(t);
    gt_sampler_thread_begin(t, !appeared); /* before the drain side can meet it */
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_start(&t->w);
        gt_writer_unpin(&t->w);
    }
    if (*t->name)
        write_label(t, t->name);
    t->w.may_lose = true;
    gt_thread_leave(t);
}

struct gt_thread *gt_thread_appear(void)
{
    gt_process_second_thread();
    gt_self = &gt_nobody; /* whatever happens below goes straight through */
    bool now;
    struct gt_thread *t = gt_met_claim(&now);
    if (t || !now)
        return t;
    t = thread_alloc();
    if (!t)
        return NULL;
    t->inside = 1;
    atomic_fetch_add(&threads.live, 1);
    adopt(t);
    set_key(t);
    gt_sampler_thread_begin(t, false);
    struct gt_stack *routine = gt_capture_bottom(t);
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_appear(&t->w, routine);
        gt_writer_unpin(&t->w);
    }
    t->w.may_lose = true;
    return t;
}

struct gt_thread *gt_thread_meet(uint32_t tid, pthread_t self, struct gt_stack *routine,
                                 struct gt_string *label)
{
    struct gt_thread *t = thread_alloc();
    if (!t)
        return NULL;
    atomic_fetch_add(&threads.live, 1);
    t->self = self;
    t->w.m = tid;
    t->w.last = gt_clock_now();
    t->w.label = label;
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_appear(&t->w, routine);
        gt_writer_unpin(&t->w);
    }
    return t;
}

void gt_thread_become(struct gt_thread *t)
{
    t->inside = 1;
    settle(t);
}

void gt_thread_became(struct gt_thread *t)
{
    set_key(t);
    gt_sampler_thread_begin(t, false);
    t->w.may_lose = true;
}

void gt_thread_forget_self(void)
{
    gt_self->inside = 0;
    gt_self = NULL;
}

/* Its memory stays with it. What it had used by then nobody knows. */
void gt_thread_gone(struct gt_thread *t)
{
    t->w.account = NULL;
    if (gt_writer_pin_at_once(&t->w)) {
        gt_ev_thread_end(&t->w);
        gt_writer_unpin(&t->w);
    }
    atomic_fetch_sub(&threads.live, 1);
}

static struct gt_thread *find_cloned(uint32_t tid)
{
    struct gt_thread *t = atomic_load_explicit(&threads.cloned, memory_order_acquire);
    while (t && t->w.m != tid)
        t = t->next;
    return t;
}

/* A thread without a thread's libc state: nothing tells its end, it just falls silent. */
static struct gt_thread *clone_appear(uint32_t tid)
{
    struct gt_thread *t = thread_alloc();
    if (!t)
        return NULL;
    t->inside = 1;
    gt_trail_begin(&t->trail, 0);
    t->w.m = tid;
    t->w.last = gt_clock_now();
    t->next = atomic_load_explicit(&threads.cloned, memory_order_relaxed);
    /* release: pairs with find_cloned */
    while (!atomic_compare_exchange_weak_explicit(&threads.cloned, &t->next, t,
                                                  memory_order_release, memory_order_relaxed))
        ;
    struct gt_stack *routine = gt_capture_bottom(t);
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_appear(&t->w, routine);
        gt_writer_unpin(&t->w);
    }
    t->w.may_lose = true;
    t->inside = 0;
    return t;
}

struct gt_thread *gt_thread_elsewhere(struct gt_thread *t)
{
    uint32_t tid = (uint32_t)gt_syscall(SYS_gettid);
    gt_fork_check();
    if (tid == t->w.m) {
        note_stack(t);
        return t;
    }
    struct gt_thread *cloned = find_cloned(tid);
    return cloned ? cloned : clone_appear(tid);
}

bool gt_thread_on_signal_stack(void)
{
    stack_t now;
    return gt_real.sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK);
}

/* Whether it was the last one. */
static bool thread_end(struct gt_thread *t)
{
    gt_wake_all(GT_HOOK_pthread_join, (const void *)t->self);
    end_goroutine(t);
    return atomic_fetch_sub(&threads.live, 1) == 1;
}

void gt_thread_exit(void)
{
    struct gt_thread *t = gt_self;
    gt_wait_note_jump(); /* from the call that a signal handler of the thread has interrupted */
    if (gt_recording() && t && t != &gt_nobody && t->w.m == (uint32_t)gt_syscall(SYS_gettid) &&
        thread_end(t))
        gt_process_end_last();
}

/*
 * Runs once in each of glibc's rounds over the keys, after all destructors of thread_local objects:
 * the last round is after all but the most stubborn destructors of other keys. A round takes libc
 * 500 instructions; without other destructors the first one will do.
 */
static void key_destructor(void *arg)
{
    struct gt_thread *t = arg;
    if (gt_self != t)
        return;
    bool again = gt_keys_have_destructors && ++t->exit_round < PTHREAD_DESTRUCTOR_ITERATIONS;
    if ((!again || !set_key(t)) && thread_end(t))
        gt_process_end_last();
}

/* The last of the thread's thread_local objects, before all keys; also in exit(3). */
static void local_destructor(void *arg)
{
    if (gt_self == arg && thread_end(arg))
        gt_process_end_last();
}

bool gt_thread_give_key(void)
{
    if (!gt_lock_within(&threads.key_lock, GT_RANK_KEY, GT_LOCK_PATIENCE_NS))
        return false;
    bool had = threads.has_key;
    threads.has_key = false;
    if (had)
        pthread_key_delete(threads.key);
    gt_unlock(&threads.key_lock);
    return had;
}

void gt_thread_init(void)
{
    threads.has_key = gt_real.pthread_key_create(&threads.key, key_destructor) == 0;
    pthread_attr_init(&threads.attr);
}

void gt_thread_main(void)
{
    struct gt_thread *t = main_thread;
    memset(t, 0, offsetof(struct gt_thread, trail));
    gt_writer_register(&t->w);
    atomic_store(&threads.last_g, 1);
    t->w.g.id = 1;
    t->inside = GT_INSIDE_FOR_GOOD; /* until recording starts */
    atomic_store(&threads.live, 1);
    adopt(t);
    set_key(t);
}

void gt_thread_main_begin(void)
{
    struct gt_thread *t = main_thread;
    t->w.last = gt_clock_now(); /* adopt came before the clock */
    gt_sampler_thread_begin(t, false);
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_running(&t->w);
        gt_ev_procs_change(&t->w, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), NULL);
        gt_writer_unpin(&t->w);
    }
    t->w.may_lose = true;
    gt_thread_leave(t);
}

void gt_thread_main_leave(void)
{
    if (threads.has_key)
        pthread_setspecific(threads.key, NULL);
    end_goroutine(main_thread);
}

bool gt_thread_others(void)
{
    enum { OWN_LINKS = 2, FIRST = 1 };
    struct stat tasks;
    if (gt_stat("/proc/self/task", &tasks) == 0)
        return tasks.st_nlink > OWN_LINKS + FIRST;
    return !gt_libc_single_threaded(false);
}

/*
 * A signal handler has forked, and goes back to the parent's call, or to the middle of our code:
 * what that does there is of the parent's trace, and comes to nothing.
 */
static void disown_parents(struct gt_thread *t)
{
    if ((!t->inside && !t->frame) || !gt_writer_gen(&t->w))
        return;
    t->frame = 0;
    gt_era_pin_all(); /* it may have found something there */
    gt_writer_disown(&t->w);
    struct gt_thread *fresh = t == main_thread ? gt_arena_alloc(&threads.arena, sizeof *t) : NULL;
    if (fresh)
        main_thread = fresh;
}

#ifdef GT_DEBUG
bool gt_thread_is_interrupted(struct gt_thread *t)
{
    return t->inside == GT_INSIDE_FOR_GOOD || t->stuck || t->w.jumped || gt_capture_in_handler(t);
}
#endif

/* Who attaches to it will meet it, or it is known from its next call on. */
static void forget_caller(void)
{
    if (threads.has_key)
        pthread_setspecific(threads.key, NULL);
    gt_self = NULL;
}

void gt_thread_after_fork(void)
{
    if (gt_self && gt_self != &gt_nobody) {
        gt_origin_forked_by(gt_self->w.m, gt_fork_began());
        gt_owner_forked(gt_self->w.m);
        disown_parents(gt_self);
    }
    threads.free = (struct gt_freelist){0};
    threads.cloned = NULL;
    threads.key_lock = (struct gt_lock){0};
    if (main_thread->regions.serial)
        main_thread->regions.open = main_thread->regions.serial = 0;
    if (gt_attach_is_free())
        forget_caller();
    else
        gt_thread_main();
}

/* pthread_create ----------------------------------------------------------------------------- */

/* Ends in a jump, so that the stack below the program's routine is as without us. */
static void *trampoline(void *arg)
{
    struct gt_thread *t = arg;
    void *(*start)(void *) = t->start;
    void *start_arg = t->arg;
    thread_begin(t);
    return start(start_arg);
}

static struct gt_thread *create_event(enum gt_hook hook, struct gt_thread *t,
                                      void *(*start)(void *), void *arg)
{
    struct gt_thread *child = thread_alloc();
    if (!child)
        return NULL;
    child->start = start;
    child->arg = arg;
    uintptr_t python = gt_capture_python(t);
    if (!python || !gt_python_name_made(python, child->name))
        child->name[0] = 0;
    struct gt_stack *routine = gt_capture_routine(gt_routine_of(start, arg));
    struct gt_stack *stack = gt_capture(t, hook);
    if (!gt_writer_pin(&t->w)) {
        thread_free(child);
        return NULL;
    }
    gt_ev_go_create(&t->w, &child->w.g, routine, stack);
    gt_writer_unpin(&t->w);
    atomic_fetch_add(&threads.live, 1);
    return child;
}

/* The thread to be made; NULL: not known from its creation. attr NULL: the default attributes. */
static struct gt_thread *create_begin(enum gt_hook hook, const pthread_attr_t *attr,
                                      void *(*start)(void *), void *arg)
{
    gt_process_start_early();
    gt_process_second_thread();
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return NULL;
    struct gt_thread *child = create_event(hook, t, start, arg);
    if (child)
        pthread_attr_getstacksize(attr ? attr : &threads.attr, &child->stack_bytes);
    gt_thread_leave(t);
    return child;
}

/* In the trace it stays a goroutine that was created and never ran. */
static void create_failed(struct gt_thread *child)
{
    gt_ev_go_forget(&child->w.g);
    thread_free(child);
    atomic_fetch_sub(&threads.live, 1);
}

GT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                             void *arg)
{
    struct gt_thread *child = create_begin(GT_HOOK_pthread_create, attr, start, arg);
    if (!child)
        return gt_real.pthread_create(thread, attr, start, arg);
    int r = gt_real.pthread_create(thread, attr, trampoline, child);
    if (r != 0)
        create_failed(child);
    return r;
}

/* libc keeps the int as the low word of a pointer: the same routine serves both. */
static int c11_trampoline(void *arg)
{
    return (int)(intptr_t)trampoline(arg);
}

GT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
    struct gt_thread *child =
        create_begin(GT_HOOK_thrd_create, NULL, (void *(*)(void *))(void (*)(void))start, arg);
    if (!child)
        return gt_real.thrd_create(thread, start, arg);
    int r = gt_real.thrd_create(thread, c11_trampoline, child);
    if (r != thrd_success)
        create_failed(child);
    return r;
}

/* pthread_join and relatives ----------------------------------------------------------------- */

GT_EXPORT int pthread_tryjoin_np(pthread_t thread, void **result)
{
    return gt_real.pthread_tryjoin_np(thread, result);
}

/* A thread that has ended is joined without a wait, hence without an event. */

#define JOIN(name, parameters, arguments, when)                                           \
    GT_EXPORT int name parameters                                                         \
    {                                                                                     \
        int r = gt_real.pthread_tryjoin_np(thread, result);                               \
        if (r != EBUSY)                                                                   \
            return r;                                                                     \
        struct gt_timeout end = when;                                                     \
        GT_WAIT(wait) =                                                                   \
            gt_wait_begin_lock(GT_HOOK_##name, GT_LOCK_JOIN, (const void *)thread, &end); \
        return gt_wait_result(&wait, gt_real.name arguments, ETIMEDOUT, &end);            \
    }

JOIN(pthread_join, (pthread_t thread, void **result), (thread, result), gt_timeout_after(0))
JOIN(pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *until),
     (thread, result, until), gt_timeout_at(CLOCK_REALTIME, until))
JOIN(pthread_clockjoin_np,
     (pthread_t thread, void **result, clockid_t clock, const struct timespec *until),
     (thread, result, clock, until), gt_timeout_at(clock, until))

/* A thrd_t is a pthread_t, its result the pointer's low word (glibc's nptl/thrd_join.c). */
GT_EXPORT int thrd_join(thrd_t thread, int *result)
{
    void *word;
    int r = gt_real.pthread_tryjoin_np((pthread_t)thread, &word);
    if (r == 0 && result)
        *result = (int)(intptr_t)word;
    if (r == 0)
        return thrd_success;
    if (r != EBUSY)
        return gt_real.thrd_join(thread, result);
    struct gt_timeout never = gt_timeout_after(0);
    GT_WAIT(wait) =
        gt_wait_begin_lock(GT_HOOK_thrd_join, GT_LOCK_JOIN, (const void *)thread, &never);
    return gt_real.thrd_join(thread, result);
}

/* Names -------------------------------------------------------------------------------------- */

/* The kernel keeps 15 characters; so does the label. */
static void label(const char *name)
{
    char text[16];
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    strncpy(text, name, sizeof text - 1);
    text[sizeof text - 1] = 0;
    write_label(t, text);
    gt_thread_leave(t);
    gt_process_check_queue();
}

/* Before glibc 2.34 pthread_setname_np calls prctl such that it comes to our hook. */
static __thread bool is_naming __attribute__((tls_model("initial-exec")));

/* A label belongs to the goroutine that runs: naming another thread leaves no event. */
GT_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    is_naming = true;
    int r = gt_real.pthread_setname_np(thread, name);
    is_naming = false;
    if (r == 0 && pthread_equal(thread, pthread_self()))
        label(name);
    return r;
}

/* Variadic in the headers, five words in the kernel, which is all that libc's does with them. */
GT_EXPORT int prctl(int option, ...)
{
    va_list ap;
    va_start(ap, option);
    unsigned long a = va_arg(ap, unsigned long), b = va_arg(ap, unsigned long);
    unsigned long c = va_arg(ap, unsigned long), d = va_arg(ap, unsigned long);
    va_end(ap);
    if (option == PR_SET_SECCOMP)
        gt_seccomp_begins_prctl(a, (const void *)b);
    int r = (int)gt_syscall(SYS_prctl, option, a, b, c, d);
    if (r == 0 && option == PR_SET_NAME && !is_naming)
        label((const char *)a);
    return r;
}
