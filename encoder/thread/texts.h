/*
 * Strings that the program gives: names and messages of annotations. Each may be new and never come
 * again, so no table keeps them. A writer puts them into a buffer of its own, a batch of strings of
 * its generation, and forgets them with that buffer. A text has another id in each buffer.
 */
#pragma once

#include "buffers.h"

#include "encoder/format/format.h"

struct gt_writer;

#define GT_TEXTS_RECENT 16u

/* What a writer keeps: the buffer for the next text, and the last ones. Zero-initialised. */
struct gt_texts {
    struct gt_buf *buf;
    struct gt_recent_text {
        const char *text; /* in buf; NULL: none */
        uint32_t len;
        uint64_t id;
    } recent[GT_TEXTS_RECENT]; /* by hash */
};

/* How many bytes of a text go into the trace: up to GT_STRING_MAX, in whole UTF-8 characters. */
uint32_t gt_texts_length(const char *text);

/*
 * The id of a text of `len` bytes in the generation that gt_writer_pin_texts has pinned; 0 for an
 * empty one.
 */
uint64_t gt_texts_put(struct gt_writer *w, const char *text, uint32_t len);

/*
 * The id of a text that got `id` before, perhaps in an earlier generation. In v1 files ids are for
 * ever: readers tell by the id whether a region ends with the name it began with. So `id` is kept.
 */
uint64_t gt_texts_put_again(struct gt_writer *w, uint64_t id, const char *text, uint32_t len);

/* A new id for a text that is written elsewhere. Any thread. */
uint64_t gt_texts_new_id(void);

/* Makes later ids greater than this one, which another process has given. */
void gt_texts_adopt_id(uint64_t id);

/* For a caller with a buffer of its own: begins it; appends a text, for which there is room. */
void gt_texts_begin(struct gt_buf *buf, uint32_t gen, uint32_t m, uint64_t ts);
struct gt_recent_text gt_texts_append(struct gt_buf *buf, const char *text, uint32_t len);

/* Drain side ---------------------------------------------------------------------------------- */

/* Whether the buffer has texts; all others have events. */
static inline bool gt_texts_in(const struct gt_buf *buf)
{
    return buf->used && buf->data[0] == GT_EV_STRINGS;
}

/* Calls fn for every text in such a buffer. */
typedef void gt_text_fn(void *arg, uint64_t id, const char *text, uint32_t len);
void gt_texts_of(const struct gt_buf *buf, gt_text_fn *fn, void *arg);

/*
 * Makes the texts in the buffers of a generation known to gt_texts_find, until the next call. NULL
 * forgets them. Without memory no text is known.
 */
void gt_texts_index(const struct gt_buf *bufs);

/* A text, and a mark for the caller's use. NULL: the text is not known. */
struct gt_text_found {
    const char *text;
    uint32_t len;
    bool written;
};
struct gt_text_found *gt_texts_find(uint64_t id);
