/*
 * See texts.h: a writer's room for texts. Stands apart from texts.c because it pins the writer: a
 * writer that is pinned late hands its texts over, by that file.
 */
#include "texts.h"

#include "writer.h"

#include <string.h>

/* Room for two texts: a type byte, an id, a length and the text each. */
#define ROOM (2 * (1 + 2 * GT_VARINT_MAX + GT_STRING_MAX))

_Static_assert(sizeof(struct gt_buf) + 1 + ROOM <= 4096, "a buffer that is begun has a page");

/* Gives w an empty buffer; pinned. false: none is available. A mute generation empties its own. */
static bool refresh(struct gt_writer *w)
{
    uint32_t gen = gt_writer_gen(w);
    struct gt_buf *buf = gt_gen_is_mute(gen) ? w->texts.buf : NULL;
    if (!buf && !(buf = gt_buffers_get_begun(false)))
        return false;
    if (buf != w->texts.buf)
        gt_texts_retire(w, gen);
    gt_texts_begin(buf, gen, w->m, w->last);
    memset(w->texts.recent, 0, sizeof w->texts.recent);
    w->texts.buf = buf;
    return true;
}

bool gt_texts_enter(struct gt_writer *w)
{
    uint64_t since = 0;
    while (gt_writer_pin(w)) {
        struct gt_buf *buf = w->texts.buf;
        if ((buf && gt_buffers_have_room(buf, buf->data + buf->used, ROOM)) || refresh(w))
            return true;
        gt_writer_unpin(w); /* the drain side may wait for that, as in gt_writer_wait_for_room */
        if (!gt_writer_waits(w) || !gt_buffers_wait(&since)) {
            gt_lost();
            return false;
        }
    }
    return false;
}
