/* See room.h. */
#include "room.h"

#include "move.h"
#include "states.h"

#include "encoder/base/urgent.h"
#include "encoder/base/varint.h"

#include <string.h>

bool gt_writer_waits(const struct gt_writer *w)
{
    int saved = errno;
    bool waits = !w->may_lose || !gt_urgent();
    errno = saved;
    return waits;
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

/* Replaces a full buffer, or gets a first one. false: none is available now. */
static bool change_buffer(struct gt_writer *w, uint32_t gen, bool force)
{
    if (gt_gen_is_mute(gen))
        return gt_writer_start_over(w);
    bool grows =
        w->buf && w->buf->small; /* each thread may have one large buffer beyond the limit */
    struct gt_buf *fresh =
        w->buf ? gt_buffers_get_begun(force || grows) : gt_buffers_get_first(force);
    if (!fresh)
        return false;
    gt_writer_retire(w, gen);
    gt_writer_install(w, fresh, gen);
    return true;
}

/*
 * Makes room for an event: in the batch as it is, by another batch in the same buffer, or by
 * another buffer; with force even beyond the limit. false: no buffer is available now.
 */
static bool make_room(struct gt_writer *w, uint32_t gen, bool force)
{
    return w->end - w->pos >= GT_EVENT_ROOM || cut_buffer(w) || change_buffer(w, gen, force);
}

/*
 * Waits for the drain side to free a buffer: a thread cannot go on without one, as nothing may be
 * lost silently. The thread is not busy meanwhile, because the drain side could be waiting for
 * that. false: the thread has waited long enough or must not wait, or recording ended.
 */
static bool wait_for_room(struct gt_writer *w, uint64_t *since)
{
    gt_writer_unpin(w);
    return gt_writer_waits(w) && gt_buffers_wait(since) &&
           atomic_load_explicit(&gt_gen.current, memory_order_relaxed) != 0;
}

static bool enter(struct gt_writer *w, bool at_once)
{
    uint64_t waiting_since = 0;
    for (;;) {
        uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
        if (gen == 0) {
            gt_writer_unpin(w);
            return false;
        }
        if (atomic_load_explicit(&w->gen, memory_order_acquire) != gen) {
            gt_writer_unpin(w); /* rule 2: not busy while switching */
            if (!gt_move_self(w))
                return false;
        } else if (make_room(w, gen, at_once)) {
            gt_call_show(w); /* rule 5 */
            return true;
        } else if (at_once || !wait_for_room(w, &waiting_since)) {
            gt_writer_unpin(w);
            return false;
        }
        gt_debug_pin(w);
        atomic_store_explicit(&w->busy, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* rule 1, once more */
    }
}

/* Counts what w's thread could not write as lost, unless recording is over. Returns false. */
static bool lose(const struct gt_writer *w)
{
    if (atomic_load_explicit(&gt_gen.current, memory_order_relaxed) != 0 && !gt_writer_gone(w))
        gt_lost();
    return false;
}

bool gt_writer_pin_slow(struct gt_writer *w, bool at_once)
{
    return enter(w, at_once) || lose(w);
}

/* Room for two texts: a type byte, an id, a length and the text each. */
#define TEXTS_ROOM (2 * (1 + 2 * GT_VARINT_MAX + GT_STRING_MAX))

_Static_assert(sizeof(struct gt_buf) + 1 + TEXTS_ROOM <= 4096, "a buffer that is begun has a page");

/* Makes room for texts. false: no buffer is available now. A mute generation empties its own. */
static bool make_room_for_texts(struct gt_writer *w, uint32_t gen)
{
    struct gt_buf *had = w->texts.buf, *buf = had;
    if (had && gt_buffers_have_room(had, had->data + had->used, TEXTS_ROOM))
        return true;
    if (!(had && gt_gen_is_mute(gen)) && !(buf = gt_buffers_get_begun(false)))
        return false;
    if (buf != had)
        gt_writer_retire_texts(w, gen);
    gt_texts_begin(buf, gen, w->m, w->last);
    memset(w->texts.recent, 0, sizeof w->texts.recent);
    w->texts.buf = buf;
    return true;
}

bool gt_writer_pin_texts(struct gt_writer *w)
{
    uint64_t since = 0;
    while (gt_writer_pin(w)) {
        if (make_room_for_texts(w, gt_writer_gen(w)))
            return true;
        if (!wait_for_room(w, &since))
            return lose(w);
    }
    return false;
}
