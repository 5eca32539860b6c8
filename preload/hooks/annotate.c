/* The functions of gotrace.h: tasks, regions, logs. */
#include "annotate.h"

#include "encoder/base/sparse.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/texts.h"
#include "preload/bind/exported.h"
#include "preload/control/process_relief.h"
#include "preload/thread/capture.h"
#include "preload/thread/thread.h"

/*
 * The viewer shows a task that ends twice without its name. So the ends of the last million tasks
 * are remembered.
 */
#define WINDOW (1u << 20)

static struct {
    _Atomic uint64_t last;
    uint64_t inherited; /* tasks up to this one are the parent process's */
    _Atomic uint32_t ended[WINDOW / 32];
} tasks GT_SPARSE;

void gt_annotate_after_fork(void)
{
    uint64_t last = atomic_load(&tasks.last);
    if (last)
        tasks.inherited = last;
}

/* The task, or 0 if this process has no such task: readers would show it without a name. */
static uint64_t task_of(gotrace_task task)
{
    return task > tasks.inherited && task <= atomic_load_explicit(&tasks.last, memory_order_relaxed)
               ? task
               : 0;
}

static _Atomic uint32_t *word_of(uint64_t task)
{
    return &tasks.ended[task % WINDOW / 32];
}

static uint64_t new_task(void)
{
    uint64_t task = atomic_fetch_add_explicit(&tasks.last, 1, memory_order_relaxed) + 1;
    atomic_fetch_and_explicit(word_of(task), ~(1u << task % 32), memory_order_relaxed);
    return task;
}

/* Whether the caller is the first to end the task. */
static bool claim_end(uint64_t task)
{
    if (atomic_load_explicit(&tasks.last, memory_order_relaxed) - task >= WINDOW)
        return true;
    uint32_t bit = 1u << task % 32;
    return !(atomic_fetch_or_explicit(word_of(task), bit, memory_order_relaxed) & bit);
}

/* The calling thread, now inside the guard; NULL: nothing is recorded. */
static struct gt_thread *enter(int *saved)
{
    *saved = errno;
    return gt_thread_enter();
}

static void leave(struct gt_thread *t, int saved)
{
    gt_thread_leave(t);
    gt_process_check_queue();
    errno = saved;
}

static uint64_t put(struct gt_thread *t, const char *text)
{
    return text ? gt_texts_put(&t->w, text, gt_texts_length(text)) : 0;
}

/* Tasks and logs ----------------------------------------------------------------------------- */

static gotrace_task begin_task(struct gt_thread *t, gotrace_task parent, const char *name)
{
    struct gt_stack *stack = gt_capture_caller(t);
    if (!gt_writer_pin_texts(&t->w))
        return 0;
    uint64_t task = new_task();
    uint64_t args[] = {task, task_of(parent), put(t, name)};
    bool written = gt_ev_user(&t->w, GT_EV_USER_TASK_BEGIN, args, stack);
    gt_writer_unpin(&t->w);
    return written ? task : 0;
}

gotrace_task gotrace_task_begin(gotrace_task parent, const char *name)
{
    int saved;
    struct gt_thread *t = enter(&saved);
    if (!t)
        return 0;
    gotrace_task task = begin_task(t, parent, name);
    leave(t, saved);
    return task;
}

void gotrace_task_end(gotrace_task task)
{
    int saved;
    struct gt_thread *t = task_of(task) ? enter(&saved) : NULL;
    if (!t)
        return;
    struct gt_stack *stack = gt_capture_caller(t);
    if (gt_writer_pin(&t->w)) {
        if (t->w.g.state == GT_G_RUNNING && claim_end(task))
            gt_ev_user(&t->w, GT_EV_USER_TASK_END, &task, stack);
        gt_writer_unpin(&t->w);
    }
    leave(t, saved);
}

void gotrace_log(gotrace_task task, const char *category, const char *message)
{
    int saved;
    struct gt_thread *t = enter(&saved);
    if (!t)
        return;
    struct gt_stack *stack = gt_capture_caller(t);
    if (gt_writer_pin_texts(&t->w)) {
        uint64_t args[] = {task_of(task), put(t, category), put(t, message)};
        gt_ev_user(&t->w, GT_EV_USER_LOG, args, stack);
        gt_writer_unpin(&t->w);
    }
    leave(t, saved);
}

/* Regions ------------------------------------------------------------------------------------ */

static bool write_begin(struct gt_thread *t, struct gt_region *r)
{
    struct gt_stack *stack = gt_capture_caller(t);
    if (!gt_writer_pin_texts(&t->w))
        return false;
    r->name_id = gt_texts_put(&t->w, t->regions.names + r->name, r->name_end - r->name);
    uint64_t args[] = {r->task, r->name_id};
    bool written = gt_ev_user(&t->w, GT_EV_USER_REGION_BEGIN, args, stack);
    gt_writer_unpin(&t->w);
    return written;
}

static bool write_end(struct gt_thread *t, const struct gt_region *r)
{
    struct gt_stack *stack = gt_capture_caller(t);
    if (!gt_writer_pin_texts(&t->w))
        return false;
    uint64_t name =
        gt_texts_put_again(&t->w, r->name_id, t->regions.names + r->name, r->name_end - r->name);
    uint64_t args[] = {r->task, name};
    bool written = gt_ev_user(&t->w, GT_EV_USER_REGION_END, args, stack);
    gt_writer_unpin(&t->w);
    return written;
}

/*
 * Writes the ends of regions that have ended, innermost first. Ends that cannot be written now, in
 * a signal handler in the middle of a wait, are left for later.
 */
static void close_ended(struct gt_thread *t)
{
    struct gt_regions *rs = &t->regions;
    while (rs->open && rs->region[rs->open - 1].ended && write_end(t, &rs->region[rs->open - 1]))
        rs->open--;
}

/* NULL: there is no room for the region. */
static struct gt_region *push(struct gt_regions *rs, uint64_t g, uint64_t task, const char *name)
{
    enum { REGIONS = sizeof rs->region / sizeof *rs->region };
    uint32_t at = rs->open ? rs->region[rs->open - 1].name_end : 0;
    uint32_t len = name ? gt_texts_length(name) : 0;
    if (rs->open == REGIONS || sizeof rs->names - at < len)
        return NULL;
    memcpy(rs->names + at, name, len);
    if (!rs->serial) /* so that handles from before a fork do not match */
        rs->serial = (uint32_t)gt_clock_now();
    struct gt_region *r = &rs->region[rs->open++];
    *r = (struct gt_region){
        .id = g << 32 | ++rs->serial, .task = task, .name = at, .name_end = at + len};
    return r;
}

static gotrace_region begin_region(struct gt_thread *t, gotrace_task task, const char *name)
{
    close_ended(t);
    struct gt_region *r = push(&t->regions, t->w.g.id, task_of(task), name);
    if (!r)
        return 0;
    if (write_begin(t, r))
        return r->id;
    t->regions.open--;
    return 0;
}

uint64_t gt_region_begin(uint64_t task, const char *name)
{
    int saved;
    struct gt_thread *t = enter(&saved);
    if (!t)
        return 0;
    gotrace_region region = begin_region(t, task, name);
    leave(t, saved);
    return region;
}

gotrace_region gotrace_region_begin(gotrace_task task, const char *name)
{
    return gt_region_begin(task, name);
}

void gt_region_end(uint64_t region)
{
    int saved;
    struct gt_thread *t = region ? enter(&saved) : NULL;
    if (!t)
        return;
    struct gt_regions *rs = &t->regions;
    uint32_t i = rs->open;
    while (i && rs->region[i - 1].id != region)
        i--;
    for (uint32_t k = i ? i - 1 : rs->open; k < rs->open; k++)
        rs->region[k].ended = true;
    close_ended(t);
    leave(t, saved);
}

void gotrace_region_end(gotrace_region region)
{
    gt_region_end(region);
}
