/* See seek.h. */
#include "seek.h"

#include "batches.h"

#include <string.h>

/* CHAIN batches in a row are no accident: they are batches. */
enum { CHAIN = 12, FIRST = 256, LONGEST = GT_BATCH_MAX + 64 };

struct search {
    const struct gt_trace *trace;
    const uint8_t *end;
    double ns_per_unit;
    uint64_t start; /* in units of the trace's clock */
};

/* Whether a writer can have made the batch: it is not empty, and not too long. */
static bool is_sound(const struct gt_batch *b)
{
    return b->kind == GT_EV_END_OF_GENERATION ||
           (b->gen && gt_bytes_left(&b->data) && gt_bytes_left(&b->data) <= GT_BATCH_MAX &&
            (*b->data.p == GT_EV_STACKS || *b->data.p == GT_EV_STRINGS ||
             *b->data.p == GT_EV_CPU_SAMPLES || *b->data.p == GT_EV_SYNC ||
             (*b->data.p >= GT_EV_FREQUENCY && *b->data.p < GT_EVENTS_END)));
}

static bool begins_chain(const struct search *s, const uint8_t *at)
{
    struct gt_bytes bytes = {at, s->end, false};
    struct gt_batch b;
    uint64_t gen = 0;
    for (int i = 0; i < CHAIN && gt_bytes_left(&bytes); i++) {
        if (!gt_batch_next(&bytes, &b) || !is_sound(&b) || (b.gen && b.gen < gen) ||
            (gen && b.gen > gen + 1))
            return false;
        gen = b.gen ? b.gen : gen;
    }
    return gen;
}

/* The first batch at or after `at`; NULL: there is none. */
static const uint8_t *first_batch(const struct search *s, const uint8_t *at)
{
    for (const uint8_t *last = at + 2 * LONGEST; at < s->end && at < last; at++) {
        if (*at == GT_EV_EVENT_BATCH && begins_chain(s, at))
            return at;
    }
    return NULL;
}

static uint64_t ns_of(const struct search *s, uint64_t ts)
{
    return ts > s->start ? (uint64_t)((double)(ts - s->start) * s->ns_per_unit) : 0;
}

/* The generation of the first batch at or after *at, which becomes its place; 0: there is none. */
static uint64_t gen_at(const struct search *s, const uint8_t **at)
{
    struct gt_batch b;
    *at = first_batch(s, *at);
    struct gt_bytes bytes = {*at, s->end, false};
    return *at && gt_batch_next(&bytes, &b) ? b.gen : 0;
}

/*
 * The time of a batch's first event. The time of the batch itself may be 0, if it is a thread's
 * first.
 */
static uint64_t time_of(const struct gt_batch *b)
{
    struct gt_bytes data = b->data;
    gt_get_byte(&data);
    return b->ts + gt_get_varint(&data);
}

/*
 * Reads which generation begins at `at`, and when: at the earliest time in its first batches. Some
 * of them are from its beginning. false: it has no event.
 */
static bool read_beginning(const struct search *s, const uint8_t *at, struct gt_place_in_file *p)
{
    struct gt_bytes bytes = {at, s->end, false};
    struct gt_batch b;
    uint64_t ts = 0;
    for (int i = 0; i < FIRST && gt_batch_next(&bytes, &b); i++) {
        if (b.kind == GT_EV_END_OF_GENERATION || (i && b.gen != p->gen))
            break;
        p->gen = b.gen;
        if (b.kind == GT_EV_EVENT_BATCH)
            ts = !ts || time_of(&b) < ts ? time_of(&b) : ts;
    }
    p->start = at;
    p->ns = ns_of(s, ts);
    return ts;
}

/*
 * Where the first generation after `gen` begins. `low` is before that place; `high` is in such a
 * generation.
 */
static const uint8_t *boundary(const struct search *s, const uint8_t *low, const uint8_t *high,
                               uint64_t gen)
{
    while (high - low > LONGEST) {
        const uint8_t *middle = low + (high - low) / 2, *at = middle;
        uint64_t is = gen_at(s, &at);
        if (is > gen || !is || at >= high)
            high = middle;
        else
            low = at;
    }
    struct gt_bytes bytes = {low, s->end, false};
    struct gt_batch b;
    while (gt_batch_next(&bytes, &b)) {
        if (b.gen > gen)
            return bytes.p - b.size;
    }
    return NULL;
}

static bool begin(struct search *s, const struct gt_trace *trace, struct gt_place_in_file *first)
{
    *s = (struct search){trace, trace->base + trace->size, 1, 0};
    struct gt_bytes bytes = {trace->base + GT_HEADER_BYTES, s->end, false};
    const uint8_t *end = gt_generation_end(bytes, trace->format);
    struct gt_batch b;
    if (!end)
        return false;
    bytes.end = end;
    while (gt_batch_next(&bytes, &b)) {
        if (b.kind == GT_EV_EVENT_BATCH && (!s->start || b.ts < s->start))
            s->start = b.ts;
        struct gt_bytes data = b.data;
        if (b.kind == GT_EV_SYNC)
            gt_get_byte(&data);
        if ((b.kind == GT_EV_FREQUENCY || b.kind == GT_EV_SYNC) &&
            gt_get_byte(&data) == GT_EV_FREQUENCY) {
            uint64_t hz = gt_get_varint(&data);
            s->ns_per_unit = hz ? 1e9 / (double)hz : 1;
        }
        first->gen = b.gen ? b.gen : first->gen;
    }
    first->start = trace->base + GT_HEADER_BYTES;
    first->ns = 0;
    return true;
}

/*
 * Finds the generation of the first batch at or after `at`. false: it does not begin later than
 * *low.
 */
static bool generation_at(const struct search *s, const struct gt_place_in_file *low,
                          const uint8_t *at, struct gt_place_in_file *place)
{
    const uint8_t *batch = at;
    uint64_t gen = gen_at(s, &batch);
    if (!gen || gen <= low->gen)
        return false;
    const uint8_t *start = boundary(s, low->start, batch + 1, gen - 1);
    return start && read_beginning(s, start, place);
}

/*
 * Goes on to the last generation that begins by `ns`. Several small ones may be left where halving
 * ends.
 */
static void walk(const struct search *s, uint64_t ns, struct gt_place_in_file *place)
{
    struct gt_place_in_file next;
    for (;;) {
        struct gt_bytes bytes = {place->start, s->end, false};
        const uint8_t *end = gt_generation_end(bytes, s->trace->format);
        bytes.p = end;
        if (!end || !gt_generation_end(bytes, s->trace->format) || !read_beginning(s, end, &next) ||
            next.ns > ns)
            return;
        *place = next;
    }
}

bool gt_seek(const struct gt_trace *trace, uint64_t ns, struct gt_place_in_file *place)
{
    struct search s;
    struct gt_place_in_file found;
    if (!begin(&s, trace, place))
        return false;
    const uint8_t *high = s.end;
    while (high - place->start > LONGEST) {
        const uint8_t *middle = place->start + (high - place->start) / 2;
        if (generation_at(&s, place, middle, &found) && found.ns <= ns)
            *place = found;
        else
            high = middle;
    }
    walk(&s, ns, place);
    return true;
}

bool gt_seek_offset(const struct gt_trace *trace, size_t offset, struct gt_place_in_file *place)
{
    struct search s;
    struct gt_place_in_file low = {0};
    if (!begin(&s, trace, &low) || offset >= trace->size)
        return false;
    const uint8_t *at = trace->base + offset;
    uint64_t gen = offset <= GT_HEADER_BYTES ? 0 : gen_at(&s, &at);
    if (offset <= GT_HEADER_BYTES) {
        *place = low;
        return true;
    }
    struct gt_bytes bytes = {at, s.end, false};
    struct gt_batch b;
    while (gen && gt_batch_next(&bytes, &b)) {
        if (b.gen > gen)
            return read_beginning(&s, bytes.p - b.size, place);
    }
    return false;
}
