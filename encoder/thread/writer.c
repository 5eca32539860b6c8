/* See writer.h. */
#include "writer.h"

#include "encoder/base/urgent.h"

#include <sys/mman.h>

struct gt_generation gt_gen;

bool gt_gen_stays(void)
{
    return madvise(&gt_gen, sizeof gt_gen, MADV_WIPEONFORK) == 0;
}

bool gt_writer_waits(const struct gt_writer *w)
{
    int saved = errno;
    bool waits = !w->may_lose || !gt_urgent();
    errno = saved;
    return waits;
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
    if (buf->used)
        gt_buffers_push(buf);
    else
        gt_buffers_put(buf);
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

bool gt_writer_wait_for_room(struct gt_writer *w, uint64_t *since)
{
    gt_writer_unpin(w);
    return gt_writer_waits(w) && gt_buffers_wait(since) &&
           atomic_load_explicit(&gt_gen.current, memory_order_relaxed) != 0;
}

/*
 * Begins another batch in the same buffer. false: the buffer is full, or there is none. A thread
 * that is cancelled here, or jumps, leaves no cut that counts but is not complete.
 */
static bool cut_buffer(struct gt_writer *w)
{
    struct gt_buf *buf = w->buf;
    if (!buf || buf->cuts == GT_CUTS_MAX || !gt_buffers_have_room(buf, w->pos, GT_PIECE))
        return false;
    buf->cut[buf->cuts] = (struct gt_cut){.at = (uint32_t)(w->pos - buf->data), .ts = w->last};
    __atomic_store_n(&buf->cuts, buf->cuts + 1, __ATOMIC_RELEASE);
    w->end = w->pos + GT_PIECE;
    w->piece = w->events;
    return true;
}

/* For a mute generation: forgets what was written in it so far. */
static bool start_over(struct gt_writer *w)
{
    w->pos = w->nowhere;
    w->shown = &w->nowhere_pos;
    w->end = w->nowhere + sizeof w->nowhere;
    w->piece = w->events;
    return true;
}

/* Replaces a full buffer, or gets a first one. false: none is available now. */
static bool refresh_buffer(struct gt_writer *w, bool force)
{
    if (gt_gen_is_mute(gt_writer_gen(w)))
        return start_over(w);
    bool grows =
        w->buf && w->buf->small; /* each thread may have one large buffer beyond the limit */
    struct gt_buf *fresh =
        w->buf ? gt_buffers_get_begun(force || grows) : gt_buffers_get_first(force);
    if (!fresh)
        return false;
    gt_writer_retire(w, gt_writer_gen(w));
    gt_writer_install(w, fresh, gt_writer_gen(w));
    return true;
}

bool gt_writer_refresh(struct gt_writer *w, bool force)
{
    return w->end - w->pos >= GT_EVENT_ROOM || cut_buffer(w) || refresh_buffer(w, force);
}

bool gt_writer_make_room(struct gt_writer *w, uint32_t gen, ptrdiff_t bytes)
{
    if (gt_gen_is_mute(gen))
        return start_over(w);
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
