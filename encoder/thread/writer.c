/* See writer.h. */
#include "writer.h"

#include <sys/mman.h>

struct gt_generation gt_gen;

static _Atomic(struct gt_writer *) newest; /* push only */

void gt_writer_register(struct gt_writer *w)
{
    w->next = atomic_load_explicit(&newest, memory_order_relaxed);
    /* release: gt_switch_all, walking from here, sees an initialized writer. */
    while (!atomic_compare_exchange_weak_explicit(&newest, &w->next, w, memory_order_seq_cst,
                                                  memory_order_relaxed))
        ;
}

struct gt_writer *gt_writer_newest(void)
{
    return atomic_load(&newest);
}

bool gt_gen_stays(void)
{
    return madvise(&gt_gen, sizeof gt_gen, MADV_WIPEONFORK) == 0;
}

void gt_writer_release(struct gt_writer *w)
{
    w->buf = NULL;
    w->pos = w->end = NULL;
    w->shown = &w->nowhere_pos;
}

void gt_writer_retire(struct gt_writer *w, uint32_t gen)
{
    struct gt_buf *buf = w->buf;
    uint8_t *pos = w->pos;
    gt_writer_release(w);
    if (!buf)
        return;
    buf->used = (uint32_t)(pos - buf->data);
    buf->gen = gen;
    buf->m = w->m;
    gt_buffers_push(buf);
}

void gt_writer_retire_texts(struct gt_writer *w, uint32_t gen)
{
    struct gt_buf *buf = w->texts.buf;
    if (!buf)
        return;
    buf->gen = gen;
    w->texts.buf = NULL;
    if (gt_gen_is_mute(gen))
        buf->used = 0; /* forgets them */
    gt_buffers_push(buf);
}

_Static_assert(sizeof(struct gt_buf) + GT_PIECE <= 4096, "a buffer that is begun has a page");
_Static_assert(sizeof(struct gt_buf) + 2 * GT_EVENT_ROOM <= GT_BUF_SMALL, "a few events' room");

void gt_writer_install(struct gt_writer *w, struct gt_buf *buf, uint32_t gen)
{
    uint64_t from = atomic_load_explicit(&gt_gen.from, memory_order_relaxed);
    /* A generation's last events are written when `from` is that of the next one. */
    bool ends = gen && gen != atomic_load_explicit(&gt_gen.current, memory_order_relaxed);
    w->last = w->last < from && !ends ? from : w->last;
    w->buf = buf;
    buf->pos = w->pos = buf->data;
    w->shown = &buf->pos;
    /* `last`, not the time now: the next events may be rewaits, from earlier. */
    gt_buffers_claim(buf, gen, w->m, w->last);
    w->end = buf->small ? (uint8_t *)buf + GT_BUF_SMALL : buf->data + GT_PIECE;
    w->piece = w->events;
}

bool gt_writer_start_over(struct gt_writer *w)
{
    w->pos = w->nowhere;
    w->shown = &w->nowhere_pos;
    w->end = w->nowhere + sizeof w->nowhere;
    w->piece = w->events;
    return true;
}

bool gt_writer_make_room(struct gt_writer *w, uint32_t gen, ptrdiff_t bytes)
{
    if (gt_gen_is_mute(gen))
        return gt_writer_start_over(w);
    if (w->buf && gt_buffers_have_room(w->buf, w->pos, bytes))
        return true;
    gt_writer_retire(w, gen);
    struct gt_buf *fresh = gt_buffers_get(true);
    if (fresh)
        gt_writer_install(w, fresh, gen);
    return fresh;
}

/* What could not be recorded ------------------------------------------------------------------ */

static _Atomic uint64_t lost;

void gt_lost(void)
{
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
}

uint64_t gt_lost_count(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}

void gt_writer_after_fork(void)
{
    atomic_store(&newest, NULL);
    lost = 0;
    gt_any_jumped = false;
    gt_standing = 0;
}

void gt_writer_disown(struct gt_writer *w)
{
    atomic_store_explicit(&w->gen, GT_GEN_GONE, memory_order_relaxed);
    if (w->p)
        gt_procs_set_aside(w->p); /* the interrupted code may change w->p, too */
}
