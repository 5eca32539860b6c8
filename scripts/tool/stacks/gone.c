/*
 * Threads of a process that was killed, out of its black box: what each did when it wrote last, and
 * the stack of that; of one that ran nothing but that.
 */
#include "recent.h"
#include "still.h"

#include "encoder/read/need.h"

#include <stdio.h>
#include <string.h>

/* "": it gave itself none. Names of threads are no longer, but that of a whole process may be. */
static void set_name(char to[17], const char *name, const char *otherwise)
{
    snprintf(to, 17, "%.16s", *name ? name : otherwise);
}

static void set_stack(struct gt_task *task, const struct gt_callers *stack)
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

static void add_task(struct gt_still *still, const struct gt_thread_state *t)
{
    bool waits = t->state == GT_G_WAITING || t->state == GT_G_SYSCALL;
    struct gt_task *task = GT_MORE(still->task, still->tasks);
    task->tid = task->own = (pid_t)t->thread;
    task->state = waits ? GT_WAITS : GT_RUNS;
    set_name(task->name, t->name, still->name);
    if (waits && t->stack)
        set_stack(task, t->stack);
}

void gt_gone_open(struct gt_still *still, const char *path, unsigned last)
{
    const struct gt_threads *threads = gt_recent_read_box(path, last);
    const struct gt_origin *origin = &threads->trace->origin;
    char program[sizeof origin->program + 1] = "";
    memcpy(program, origin->program, sizeof origin->program);
    still->core = path;
    still->pid = (pid_t)origin->pid;
    set_name(still->name, program, "");
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (!t->ended && t->thread != GT_NO_THREAD)
            add_task(still, t);
    }
}
