/*
 * The threads of a killed process, from its black box: what each did when it last wrote an event,
 * and the stack of that event. A thread that was running has no stack.
 */
#include "recent.h"
#include "still.h"

#include "encoder/read/need.h"

#include <stdio.h>
#include <string.h>

/* Sets a thread's name; if it has none, that of the process, which may be longer. */
static void set_name(char to[17], const char *name, const char *otherwise)
{
    snprintf(to, 17, "%.16s", *name ? name : otherwise);
}

static void set_stack(struct gt_still_thread *task, const struct gt_callers *stack)
{
    task->frame = gt_need(calloc(stack->n + 1, sizeof *task->frame));
    for (uint32_t i = 0; i < stack->n; i++) {
        const struct gt_where *w = &stack->frame[i];
        task->frame[task->frames++] = (struct gt_place){.pc = w->pc,
                                                        .function = w->func,
                                                        .file = w->file,
                                                        .module = "",
                                                        .line = (uint32_t)w->line};
    }
}

/* The kind of lock, by the name of the function that the thread called. */
static enum gt_wait_kind kind_of(const char *called)
{
    static const struct {
        const char *part;
        enum gt_wait_kind kind;
    } kinds[] = {{"_mutex_", GT_WAIT_MUTEX},    {"mtx_", GT_WAIT_MUTEX},
                 {"_rwlock_", GT_WAIT_RWLOCK},  {"_cond_", GT_WAIT_COND},
                 {"cnd_", GT_WAIT_COND},        {"sem_", GT_WAIT_SEMAPHORE},
                 {"_barrier_", GT_WAIT_BARRIER}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strstr(called, kinds[i].part))
            return kinds[i].kind;
    }
    return GT_WAIT_NONE;
}

/*
 * What the thread waits for, and its holder when the wait began. The holder holds it still if no
 * wait for it has ended since: an unlock would have ended one.
 */
static void set_wait(struct gt_thread_wait *wait, const struct gt_threads *threads,
                     const struct gt_thread_state *t)
{
    const char *called = t->stack && t->stack->n ? t->stack->frame[0].func : "";
    const struct gt_lock_state *lock = t->state == GT_G_WAITING ? t->wanted.lock : NULL;
    const struct gt_thread_state *holder = lock ? gt_threads_find(threads, t->wanted.holder) : NULL;
    enum gt_wait_kind kind = lock ? kind_of(called) : GT_WAIT_NONE;
    if (kind == GT_WAIT_NONE)
        return;
    wait->kind = kind;
    wait->call = "futex";
    wait->timed = strstr(called, "timed") || strstr(called, "clock");
    snprintf(wait->name, sizeof wait->name, "%s", lock->name);
    if (!holder || holder->ended || holder->thread == GT_NO_THREAD)
        return;
    wait->owned = GT_OWNER_THREAD;
    wait->owner = (pid_t)holder->thread;
    wait->certain = !wait->timed && gt_recent_given_up(lock) < t->since;
}

static void add_task(struct gt_still *still, const struct gt_threads *threads,
                     const struct gt_thread_state *t)
{
    bool waits = t->state == GT_G_WAITING || t->state == GT_G_SYSCALL;
    struct gt_still_thread *task = GT_ADD(still->task, still->tasks);
    task->tid = task->own = (pid_t)t->thread;
    task->state = waits ? GT_WAITS : GT_RUNS;
    set_name(task->name, t->name, still->name);
    if (waits && t->stack)
        set_stack(task, t->stack);
    set_wait(&task->wait, threads, t);
}

void gt_gone_open(struct gt_still *still, const char *path, unsigned last)
{
    const struct gt_threads *threads = gt_recent_read_box(path, last);
    const struct gt_origin *origin = &threads->trace->origin;
    char program[sizeof origin->program + 1] = "";
    memcpy(program, origin->program, sizeof origin->program);
    still->core = path;
    still->told = true;
    still->pid = (pid_t)origin->pid;
    set_name(still->name, program, "");
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (!t->ended && t->thread != GT_NO_THREAD)
            add_task(still, threads, t);
    }
}
