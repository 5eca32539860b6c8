/* See births.h. */
#include "births.h"

#include "fork.h"
#include "process_end.h"

#include "encoder/base/arena.h"
#include "encoder/base/libc.h"
#include "encoder/base/push.h"
#include "encoder/base/sparse.h"
#include "encoder/format/origin.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "preload/bind/real.h"
#include "preload/heap/heap.h"
#include "preload/process/attach_state.h"
#include "preload/registry/owner.h"
#include "preload/thread/capture.h"
#include "preload/thread/sampler.h"
#include "preload/waits/wait.h"

#include <sys/stat.h>

_Atomic bool gt_keys_have_destructors;

static struct {
    struct gt_freelist free;
    _Atomic(struct gt_thread *) cloned; /* list: threads without thread-local variables */
    struct gt_arena arena;
    _Atomic uint64_t last_g;
    _Atomic uint32_t live;   /* threads in the trace that have not ended; some not yet begun */
    struct gt_lock key_lock; /* of has_key and key */
    bool has_key;            /* `key` is ours: its destructor notices the end of a thread */
    pthread_key_t key;
} threads = {
    .arena = {.chunk_bytes = 16 * sizeof(struct gt_thread), .align = _Alignof(struct gt_thread)}};

static struct gt_thread first_thread GT_SPARSE, *main_thread = &first_thread;

/* Structs ------------------------------------------------------------------------------------ */

static struct gt_thread *thread_alloc(void)
{
    struct gt_thread *t = gt_freelist_pop(&threads.free);
    if (t) {
        t->regions.open = 0;
        memset(&t->holds, 0, offsetof(struct gt_holds, hold));
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
    return t;
}

static void thread_free(struct gt_thread *t)
{
    gt_freelist_push(&threads.free, &t->free);
}

struct gt_thread *gt_thread_new(void)
{
    struct gt_thread *t = thread_alloc();
    if (t)
        atomic_fetch_add(&threads.live, 1);
    return t;
}

void gt_thread_drop(struct gt_thread *t)
{
    thread_free(t);
    atomic_fetch_sub(&threads.live, 1);
}

#define STACK_WINDOW (256u << 10)

/* Notes the stack on which the caller runs: addresses near it need no further check. */
static void note_stack(struct gt_thread *t)
{
    t->stack_lo = (uintptr_t)__builtin_frame_address(0) - STACK_WINDOW / 2;
    t->stack_size = STACK_WINDOW;
}

/* Makes t the value of our key in the calling thread. false: the program has our key. */
static bool set_key(struct gt_thread *t)
{
    bool locked = gt_lock_within(&threads.key_lock, GT_RANK_KEY, GT_LOCK_PATIENCE_NS);
    bool set = locked && threads.has_key && pthread_setspecific(threads.key, t) == 0;
    if (locked)
        gt_unlock(&threads.key_lock);
    return set;
}

/* Makes t the struct of the calling thread. */
static void settle(struct gt_thread *t)
{
    note_stack(t);
    gt_trail_begin(&t->trail, t->stack_bytes);
    t->self = pthread_self();
    gt_self = t;
}

/* Makes t the struct of the calling thread, whose TID and time it notes. */
static void adopt(struct gt_thread *t, uint32_t tid)
{
    t->w.m = tid;
    t->w.last = gt_clock_now();
    settle(t);
}

static uint32_t number_by_kernel(void)
{
    return (uint32_t)gt_syscall(SYS_gettid);
}

/*
 * The number of the caller, a thread that pthread_create has made, without a system call: the
 * number of its clock contains it.
 */
static uint32_t number_by_libc(void)
{
    clockid_t clock;
    bool known = pthread_getcpuclockid(pthread_self(), &clock) == 0;
    return known ? gt_clock_thread(clock) : number_by_kernel();
}

/* Beginning and end -------------------------------------------------------------------------- */

/* Whether the thread was cancelled or left by longjmp while it wrote an event: further events could
 * contradict that one. */
static bool is_torn(struct gt_thread *t)
{
    bool torn = gt_writer_busy(&t->w);
    if (t->inside && !t->stuck)
        atomic_store(&gt_any_jumped, true);
    if (torn)
        gt_writer_jumped(&t->w);
    /* release: the thread's events before this are whole. Pairs with the drain side's acquire. */
    atomic_store_explicit(&t->w.torn, torn, memory_order_release);
    return torn;
}

/* Ends the thread's goroutine. The thread is no longer traced, or traced as another goroutine. */
static void end_goroutine(struct gt_thread *t)
{
    bool torn = is_torn(t);
    t->inside = 1;
    t->w.may_lose = false;
    gt_sampler_thread_end(t);
    bool forgotten; /* no wait is registered that cancellation or longjmp has left */
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
    t->inside = 0; /* no thread uses t any more: see is_inside of process_start.c */
    if (t != main_thread && forgotten && !torn && !gt_writer_gone(&t->w))
        thread_free(t);
}

static void local_destructor(void *arg);

/* Makes sure that we notice the end of t's thread. Called at its beginning, where it may allocate.
 */
static void await_end(struct gt_thread *t)
{
    if (!set_key(t))
        __cxa_thread_atexit_impl(local_destructor, t, &__dso_handle);
}

void gt_thread_label(struct gt_thread *t, const char *name)
{
    struct gt_string *s = gt_strings_intern(name);
    if (!s)
        gt_lost();
    if (s && t->w.g.state == GT_G_RUNNING && gt_writer_pin(&t->w)) {
        gt_ev_go_label(&t->w, s);
        gt_writer_unpin(&t->w);
    }
}

void gt_thread_begin(struct gt_thread *t)
{
    /* A signal handler may have run in this thread before and made the thread appear. */
    struct gt_thread *early = __atomic_exchange_n(&gt_self, &gt_nobody, __ATOMIC_RELAXED);
    bool appeared = early && early != &gt_nobody;
    if (appeared) {
        end_goroutine(early);
        atomic_fetch_sub(&threads.live, 1);
    }
    t->inside = 1;
    adopt(t, number_by_libc());
    await_end(t);
    gt_sampler_thread_begin(t, !appeared); /* before the drain side can meet the thread */
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_start(&t->w);
        gt_writer_unpin(&t->w);
    }
    if (*t->name)
        gt_thread_label(t, t->name);
    t->w.may_lose = true;
    gt_thread_leave(t);
}

/* From here on t's thread, the caller, writes for itself. */
static void follow(struct gt_thread *t)
{
    set_key(t);
    gt_sampler_thread_begin(t, false);
}

static void settle_and_follow(struct gt_thread *t)
{
    settle(t);
    follow(t);
}

/*
 * Makes the thread of t appear, whose creation was not seen. t: NULL: no memory. become: makes the
 * caller that thread, whose stack then says the routine; NULL: it is another thread.
 */
static struct gt_thread *appear(struct gt_thread *t, uint32_t tid,
                                void (*become)(struct gt_thread *t), struct gt_stack *routine)
{
    if (!t)
        return NULL;
    t->inside = become != NULL;
    t->w.m = tid;
    t->w.last = gt_clock_now();
    if (become) {
        become(t);
        routine = gt_capture_bottom(t);
    }
    if (gt_writer_pin(&t->w)) {
        gt_ev_thread_appear(&t->w, routine);
        gt_writer_unpin(&t->w);
    }
    t->w.may_lose = become != NULL;
    return t;
}

struct gt_thread *gt_thread_appear(void)
{
    return appear(gt_thread_new(), number_by_kernel(), settle_and_follow, NULL);
}

struct gt_thread *gt_thread_meet(uint32_t tid, pthread_t self, struct gt_stack *routine,
                                 struct gt_string *label)
{
    struct gt_thread *t = gt_thread_new();
    if (t) {
        t->self = self;
        t->w.label = label;
    }
    return appear(t, tid, NULL, routine);
}

void gt_thread_become(struct gt_thread *t)
{
    t->inside = 1;
    settle(t);
}

void gt_thread_became(struct gt_thread *t)
{
    follow(t);
    t->w.may_lose = true;
}

void gt_thread_forget_self(void)
{
    gt_self->inside = 0;
    gt_self = NULL;
}

/* t's memory is never freed. The CPU time that the thread had used is not known. */
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

static void list_cloned(struct gt_thread *t)
{
    gt_trail_begin(&t->trail, 0);
    /* release: pairs with find_cloned */
    GT_PUSH(&threads.cloned, t, &t->next);
}

/* Makes a thread without libc state of its own appear. Nothing reports its end: it falls silent. */
static struct gt_thread *clone_appear(uint32_t tid)
{
    struct gt_thread *t = appear(thread_alloc(), tid, list_cloned, NULL);
    if (t)
        t->inside = 0;
    return t;
}

struct gt_thread *gt_thread_elsewhere(struct gt_thread *t)
{
    uint32_t tid = number_by_kernel();
    gt_fork_check();
    if (tid == t->w.m) {
        note_stack(t);
        return t;
    }
    struct gt_thread *cloned = find_cloned(tid);
    return cloned ? cloned : clone_appear(tid);
}

/* Writes the end of t's thread. Whether it was the last thread. */
static bool thread_end(struct gt_thread *t)
{
    gt_wake_all(GT_HOOK_pthread_join, (const void *)t->self);
    end_goroutine(t);
    return atomic_fetch_sub(&threads.live, 1) == 1;
}

void gt_thread_exit(void)
{
    struct gt_thread *t = gt_self;
    gt_wait_note_jump(); /* leaves the call that a signal handler of the thread interrupted */
    if (gt_recording() && t && t != &gt_nobody && t->w.m == number_by_kernel() && thread_end(t))
        gt_process_end(true);
}

/*
 * Ends the thread in the last of glibc's rounds over the keys. All rounds come after the
 * destructors of thread_local objects, and the last one after all but the most stubborn destructors
 * of other keys. A round takes libc 500 instructions, so without other destructors the first one
 * will do.
 */
static void key_destructor(void *arg)
{
    struct gt_thread *t = arg;
    if (gt_self != t)
        return;
    bool again = gt_keys_have_destructors && ++t->exit_round < PTHREAD_DESTRUCTOR_ITERATIONS;
    if ((!again || !set_key(t)) && thread_end(t))
        gt_process_end(true);
}

/* Runs after the destructors of all other thread_local objects of the thread, and before those of
 * keys. exit(3) runs it, too. */
static void local_destructor(void *arg)
{
    if (gt_self == arg && thread_end(arg))
        gt_process_end(true);
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
    threads.has_key = gt_libc.pthread_key_create(&threads.key, key_destructor) == 0;
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
    adopt(t, number_by_kernel());
    set_key(t);
}

void gt_thread_main_begin(void)
{
    struct gt_thread *t = main_thread;
    t->w.last = gt_clock_now(); /* adopt ran before the clock was set up */
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
 * Detaches t's writer from the parent's trace if a signal handler has forked. The handler returns
 * to a call that began in the parent, or to the middle of our code. That code works on the parent's
 * trace, and in the child its events must be dropped.
 */
static void disown_parents(struct gt_thread *t)
{
    if ((!t->inside && !t->frame) || !gt_writer_gen(&t->w))
        return;
    t->frame = 0;
    gt_era_pin_all(); /* the interrupted code may hold pointers into any era */
    gt_writer_disown(&t->w);
    struct gt_thread *fresh = t == main_thread ? gt_arena_alloc(&threads.arena, sizeof *t) : NULL;
    if (fresh)
        main_thread = fresh;
}

/* Makes the calling thread unknown, until `gotrace attach` meets it or its next call makes it
 * appear. */
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
