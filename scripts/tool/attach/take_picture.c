/* See take_picture.h. */
#include "take_picture.h"

#include "choose.h"

#include "encoder/base/path.h"
#include "encoder/format/format.h"
#include "encoder/read/need.h"
#include "preload/shared/leaves.h"
#include "preload/shared/lock_kind.h"

#include <string.h>

/* How hooks write each kind of wait. leaf, timed: the function to show if the stack does not say,
 * without and with a timeout. */
static const struct row {
    uint8_t reason, kind;
    uint32_t leaf, timed;
} rows[] = {
    [GT_WAIT_MUTEX] = {GT_REASON_SYNC, GT_LOCK_MUTEX, GT_HOOK_pthread_mutex_lock,
                       GT_HOOK_pthread_mutex_timedlock},
    [GT_WAIT_RWLOCK] = {GT_REASON_SYNC, GT_LOCK_RWLOCK, GT_HOOK_NONE, GT_HOOK_NONE},
    [GT_WAIT_COND] = {GT_REASON_COND, GT_LOCK_COND, GT_HOOK_pthread_cond_wait,
                      GT_HOOK_pthread_cond_timedwait},
    [GT_WAIT_SEMAPHORE] = {GT_REASON_SYNC, GT_LOCK_SEM, GT_HOOK_sem_wait, GT_HOOK_sem_timedwait},
    [GT_WAIT_BARRIER] = {GT_REASON_SYNC, GT_LOCK_NONE, GT_HOOK_pthread_barrier_wait,
                         GT_HOOK_pthread_barrier_wait},
    [GT_WAIT_ONCE] = {GT_REASON_SYNC, GT_LOCK_NONE, GT_HOOK_pthread_once, GT_HOOK_pthread_once},
    [GT_WAIT_JOIN] = {GT_REASON_SYNC, GT_LOCK_JOIN, GT_HOOK_pthread_join,
                      GT_HOOK_pthread_timedjoin_np},
    [GT_WAIT_STDIO] = {GT_REASON_SYNC, GT_LOCK_OTHER, GT_RAW_FUTEX_WAIT, GT_RAW_FUTEX_WAIT},
    [GT_WAIT_FUTURE] = {GT_REASON_SYNC, GT_LOCK_OTHER, GT_RAW_FUTEX_WAIT, GT_RAW_FUTEX_WAIT},
    [GT_WAIT_GIL] = {GT_REASON_COND, GT_LOCK_COND, GT_HOOK_pthread_cond_wait,
                     GT_HOOK_pthread_cond_timedwait},
    [GT_WAIT_FUTEX] = {GT_REASON_SYNC, GT_LOCK_OTHER, GT_RAW_FUTEX_WAIT, GT_RAW_FUTEX_WAIT},
    [GT_WAIT_POLL] = {GT_REASON_NETWORK, GT_LOCK_NONE, GT_HOOK_NONE, GT_HOOK_NONE},
    [GT_WAIT_SLEEP] = {GT_REASON_SLEEP, GT_LOCK_NONE, GT_HOOK_NONE, GT_HOOK_NONE},
    [GT_WAIT_CALL] = {GT_REASON_NONE, GT_LOCK_NONE, GT_HOOK_NONE, GT_HOOK_NONE},
};

static bool is_libc(const struct gt_place *f)
{
    return strncmp(gt_path_name(f->module), "libc.so", 7) == 0;
}

static bool has(const struct gt_still_thread *t, const char *part)
{
    for (size_t i = 0; i < t->frames && is_libc(&t->frame[i]); i++) {
        if (strstr(t->frame[i].function, part))
            return true;
    }
    return false;
}

/* The pthread_t of the thread that is joined; 0: not known. */
static uint64_t joined(const struct gt_still *still, const struct gt_thread_wait *wait)
{
    const struct gt_still_thread *task =
        wait->owned == GT_OWNER_THREAD ? gt_still_task(still, wait->owner) : NULL;
    return task ? gt_registers_thread(&task->registers) : 0;
}

/* The lock's address as hooks have it: for writers of a rwlock it is one more (sync_rwlock.c). */
static uint64_t lock_of(const struct gt_still *still, const struct gt_still_thread *t)
{
    switch (t->wait.kind) {
    case GT_WAIT_JOIN: return joined(still, &t->wait);
    case GT_WAIT_RWLOCK: return t->wait.address + has(t, "wrlock");
    default: return t->wait.address;
    }
}

static bool is_on_socket(const struct gt_thread_wait *wait)
{
    return wait->kind == GT_WAIT_DESCRIPTOR && wait->fds &&
           strncmp(wait->fd[0].what, "socket", 6) == 0;
}

static void describe(struct gt_pictured *p, const struct gt_still *still,
                     const struct gt_still_thread *t)
{
    bool listed = (size_t)t->wait.kind < sizeof rows / sizeof *rows;
    const struct row *row = &rows[listed ? t->wait.kind : GT_WAIT_CALL];
    p->reason = is_on_socket(&t->wait) ? GT_REASON_NETWORK : row->reason;
    p->kind = row->kind;
    p->leaf = t->wait.timed ? row->timed : row->leaf;
    p->timed = t->wait.timed;
    p->lock = lock_of(still, t);
}

/* Adds the frames, with return addresses: the pc of a frame is the call's, one less. */
static void add_frames(struct gt_pictured *p, const struct gt_still_thread *t)
{
    bool of_libc = true;
    p->routine = UINT32_MAX;
    for (size_t i = 0; i < t->frames && p->frames < GT_FRAMES_MAX; i++) {
        const struct gt_place *f = &t->frame[i];
        if (f->inlined)
            continue;
        of_libc = of_libc && is_libc(f);
        p->of_libc += of_libc;
        if (!is_libc(f) && strcmp(f->function, "_start") != 0)
            p->routine = p->frames;
        p->more[p->frames] = f->pc + (p->frames > 0);
        p->frames++;
    }
    if (t->unknown || t->cut)
        p->routine = UINT32_MAX;
}

static void add_words(struct gt_pictured *p, const struct gt_memory_piece *stack,
                      const struct gt_still_thread *t)
{
    uint64_t *out = p->more + p->frames, word;
    for (size_t i = 0; stack && i < stack->size / sizeof word && p->words < GT_FRAMES_MAX; i++) {
        memcpy(&word, stack->bytes + i * sizeof word, sizeof word);
        if (!gt_choose_returns(t, word))
            continue;
        out[2 * p->words] = stack->at + i * sizeof word;
        out[2 * p->words++ + 1] = word;
    }
}

/* Whether no other thread shares its thread-local variables, as after a bare clone(2). */
static bool has_own_variables(const struct gt_still *still, const struct gt_still_thread *t)
{
    size_t same = 0;
    if (t->by_call && !gt_registers_thread(&t->registers))
        return false; /* not known */
    for (size_t i = 0; i < still->tasks; i++)
        same +=
            gt_registers_thread(&still->task[i].registers) == gt_registers_thread(&t->registers);
    return same == 1;
}

static void add(struct gt_pictured *p, const struct gt_still *still,
                const struct gt_still_thread *t)
{
    *p = (struct gt_pictured){.tid = (uint32_t)t->own, .self = gt_registers_thread(&t->registers)};
    p->call.number = t->call.number;
    memcpy(p->call.argument, t->call.argument, sizeof p->call.argument);
    p->call.sp = gt_registers_sp(&t->registers);
    p->call.pc = gt_registers_pc(&t->registers);
    describe(p, still, t);
    add_frames(p, t);
    add_words(p, gt_choose_stack(still, t), t);
    p->bytes = (uint32_t)(sizeof *p + (p->frames + 2 * (size_t)p->words) * sizeof *p->more);
}

struct gt_picture *gt_attach_picture(const struct gt_still *still, size_t room, size_t *size)
{
    enum { MOST = sizeof(struct gt_pictured) + 3 * GT_FRAMES_MAX * sizeof(uint64_t) };
    struct gt_picture *picture = gt_need(malloc(room));
    *picture = (struct gt_picture){.leaves = gt_real_names()};
    *size = sizeof *picture;
    for (size_t i = 0; i < still->tasks && room - *size >= MOST; i++) {
        struct gt_pictured *p = (struct gt_pictured *)((uint8_t *)picture + *size);
        if (!still->task[i].arrived || !has_own_variables(still, &still->task[i]))
            continue;
        add(p, still, &still->task[i]);
        *size += p->bytes;
        picture->n++;
    }
    return picture;
}
