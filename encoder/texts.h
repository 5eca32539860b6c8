/*
 * Strings that the program gives: names and messages of annotations. Each may be new and never come
 * again, so that none is kept: a writer puts them into a buffer of its own, a batch of strings of
 * its generation, and forgets them with that. The same text has an id in each of them.
 */
#ifndef GT_TEXTS_H
#define GT_TEXTS_H

#include "buffers.h"

struct gt_writer;

/* Ids from here on; below are those of strings.h. */
#define GT_TEXT_FIRST (1ull << 32)

#define GT_TEXTS_RECENT 16u

/* Of a writer; zeros to begin with. */
struct gt_texts {
    struct gt_buf *buf;
    struct gt_recent_text {
        const char *text; /* in buf; NULL: none */
        uint32_t len;
        uint64_t id;
    } recent[GT_TEXTS_RECENT]; /* by hash */
};

/* As gt_writer_pin, and there is room for two texts. */
bool gt_texts_enter(struct gt_writer *w);

/* How much of a text goes into the trace: GT_STRING_MAX bytes, but no part of a UTF-8 character. */
uint32_t gt_texts_length(const char *text);

/* The id of a text of that length in the pinned generation; 0 for an empty one. */
uint64_t gt_texts_put(struct gt_writer *w, const char *text, uint32_t len);

/*
 * The same for a text that got `id` before, perhaps in an earlier generation: readers of v1 files,
 * where ids are for ever, tell by the id whether a region ends with the name it began with.
 */
uint64_t gt_texts_put_again(struct gt_writer *w, uint64_t id, const char *text, uint32_t len);

/* Hands over the buffer, of generation gen; by whoever may do that to w's events. */
void gt_texts_retire(struct gt_writer *w, uint32_t gen);

/* A number for a text that is written elsewhere. Any thread. */
uint64_t gt_texts_new_id(void);

/* Later ones are beyond this one, which another process has given. */
void gt_texts_adopt_id(uint64_t id);

/* For who fills a buffer of his own: begins it; appends a text, for which there is room. */
void gt_texts_begin(struct gt_buf *buf, uint32_t gen, uint32_t m, uint64_t ts);
struct gt_recent_text gt_texts_append(struct gt_buf *buf, const char *text, uint32_t len);

/* Drain side ---------------------------------------------------------------------------------- */

/* Whether this is such a buffer; all others are events. */
static inline bool gt_texts_in(const struct gt_buf *buf)
{
    return buf->used && buf->data[0] == GT_EV_STRINGS;
}

/* Every text in such a buffer. */
typedef void gt_text_fn(void *arg, uint64_t id, const char *text, uint32_t len);
void gt_texts_of(const struct gt_buf *buf, gt_text_fn *fn, void *arg);

/*
 * Makes the texts in these buffers, a generation's, known to gt_texts_find; until the next call.
 * NULL forgets. Without memory there are none.
 */
void gt_texts_index(const struct gt_buf *bufs);

/* A text, and a mark for the caller's use. NULL: not known. */
struct gt_text_found {
    const char *text;
    uint32_t len;
    bool written;
};
struct gt_text_found *gt_texts_find(uint64_t id);

#endif
