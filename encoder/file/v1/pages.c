/* See pages.h. */
#include "pages.h"

#include "encoder/base/sparse.h"
#include "encoder/base/varint.h"
#include "encoder/file/output.h"

#include <string.h>

#define P_SLOTS (65536u + 1)
#define LENGTH_FOLLOWS (3u << 6) /* in an event's first byte, for three arguments or more */
#define PAD_MIN 8u
#define PAD_MAX 1000u /* readers take 1000 frames */
#define HEADER_MAX (1 + 3 * GT_VARINT_MAX)
#define PLAIN_MAX (2 + (2 + GT_V1_ARGS_MAX) * GT_VARINT_MAX)
#define EVENT_MAX (PLAIN_MAX + GT_VARINT_MAX + GT_STRING_MAX)
#define STOP_MAX 4u /* type, time difference 0, no stack; in 1.5 the event's number */

struct event {
    enum gt_v1_type type;
    uint32_t p;
    uint64_t seq, ts;
    uint64_t arg[GT_V1_ARGS_MAX];
};

/*
 * In 1.5 each event takes three numbers: its own, and two to stop the goroutine there and start it
 * again.
 */
enum { SEQS = 3 };

/* The goroutine that runs on a P. */
struct run {
    struct gt_merge_g *g; /* NULL: nothing */
    bool stopped;         /* stopped at the end of an earlier page */
    uint64_t seq, ts;     /* of the event that stopped it */
};

/* The events of one P within the page. */
struct segment {
    uint32_t p;
    uint16_t first, last; /* events */
    uint64_t seq, ts;     /* of the last event */
    uint8_t header_size;
    uint8_t header[HEADER_MAX];
};

struct record {
    uint16_t at, size, next;
};

enum { NONE = 0xffff, RECORDS = GT_V1_PAGE / 2, SEGMENTS = GT_V1_PAGE / 4 };

static struct {
    uint8_t bytes[GT_V1_PAGE]; /* the events and records, in order of arrival */
    uint8_t page[GT_V1_PAGE];  /* the page as it is written */
    struct record record[RECORDS];
    struct segment segment[SEGMENTS];
    uint32_t records, segments;
    uint32_t used;                    /* of bytes */
    uint32_t total;                   /* the most bytes that the page can come to */
    uint16_t loose_first, loose_last; /* records of no P */
    uint64_t seq;
    uint32_t serial; /* the page's number, over all files */
    bool first;      /* the page begins with the file's header */
    uint32_t serial_of[P_SLOTS];
    uint16_t segment_of[P_SLOTS]; /* valid if serial_of is the page's */
    struct run run[P_SLOTS];
    uint32_t ps; /* entries of run in use */
    gt_v1_start_fn *start;
    struct event held[GT_V1_HELD_MAX];
    uint32_t holds;
} pages GT_SPARSE_LARGE;

static uint32_t header_size(void)
{
    return pages.first ? GT_HEADER_BYTES + (gt_v1_global_order(gt_format) ? 4 : 3) : 0;
}

static void begin_page(void)
{
    pages.records = pages.segments = pages.used = 0;
    pages.loose_first = pages.loose_last = NONE;
    pages.total = header_size();
    pages.serial++;
}

void gt_v1_pages_open(gt_v1_start_fn *start)
{
    memset(pages.run, 0, pages.ps * sizeof *pages.run);
    pages.ps = pages.holds = 0;
    pages.start = start;
    pages.seq = 0;
    pages.first = true;
    begin_page();
}

static uint8_t *put_batch(uint8_t *q, uint32_t p, uint64_t seq, uint64_t ts)
{
    *q++ = GT_V1_BATCH | 1 << 6;
    q = gt_varint_put(q, p);
    if (gt_v1_global_order(gt_format))
        q = gt_varint_put(q, seq);
    return gt_varint_put(q, ts);
}

/* Puts the file's header, and a batch for records that come before any event. */
static uint8_t *put_file_header(uint8_t *q)
{
    memset(q, 0, GT_HEADER_BYTES);
    strcpy((char *)q, gt_format->header);
    return put_batch(q + GT_HEADER_BYTES, 0, 0, 0);
}

/*
 * Puts `gap` bytes that readers skip: stacks with the id 0, which means "none". Their frames are
 * zeros; longer varints before the frames make them fit.
 */
static uint8_t *put_padding(uint8_t *q, uint32_t gap)
{
    uint32_t width = gt_v1_global_order(gt_format) ? 1 : 4; /* arguments a frame */
    while (gap) {
        uint32_t size = gap <= PAD_MAX            ? gap
                        : gap - PAD_MAX < PAD_MIN ? PAD_MAX - PAD_MIN
                                                  : PAD_MAX;
        uint32_t spare = size - PAD_MIN;
        *q++ = GT_V1_STACK | LENGTH_FOLLOWS;
        q = gt_varint_put_padded(q, size - 4, 3);
        q = gt_varint_put_padded(q, 0, 1 + (int)(spare % width));
        q = gt_varint_put_padded(q, spare / width, 3);
        memset(q, 0, spare / width * width);
        q += spare / width * width;
        gap -= size;
    }
    return q;
}

static uint8_t *put_chain(uint8_t *q, uint16_t first)
{
    for (uint16_t i = first; i != NONE; i = pages.record[i].next) {
        memcpy(q, pages.bytes + pages.record[i].at, pages.record[i].size);
        q += pages.record[i].size;
    }
    return q;
}

/* Whether the page has room for `size` bytes, and for padding after them. */
static bool fits(uint32_t size)
{
    return pages.total + size + PAD_MIN <= GT_V1_PAGE;
}

static void append(const void *bytes, uint32_t size, uint16_t *first, uint16_t *last)
{
    uint16_t i = (uint16_t)pages.records++;
    memcpy(pages.bytes + pages.used, bytes, size);
    pages.record[i] = (struct record){(uint16_t)pages.used, (uint16_t)size, NONE};
    if (*first == NONE)
        *first = i;
    else
        pages.record[*last].next = i;
    *last = i;
    pages.used += size;
    pages.total += size;
}

static uint32_t encode(uint8_t *out, const struct event *e, const struct segment *s,
                       const void *tail, size_t tail_size)
{
    uint8_t body[EVENT_MAX], *q = body, n = 0;
    if (gt_v1_global_order(gt_format))
        q = gt_varint_put(q, e->seq - s->seq);
    q = gt_varint_put(q, e->ts - s->ts);
    for (int i = 0; i < GT_V1_ARGS_MAX && gt_v1_events[e->type].arg[i]; i++) {
        if (gt_v1_events[e->type].arg[i] <= gt_format->minor) {
            q = gt_varint_put(q, e->arg[i]);
            n++;
        }
    }
    uint8_t *p = out;
    *p++ = (uint8_t)(e->type | (n < 3 ? n : 3u) << 6);
    if (n >= 3)
        p = gt_varint_put(p, (uint64_t)(q - body));
    memcpy(p, body, (size_t)(q - body));
    p += q - body;
    if (tail) {
        p = gt_varint_put(p, tail_size);
        memcpy(p, tail, tail_size);
        p += tail_size;
    }
    return (uint32_t)(p - out);
}

static void append_event(struct segment *s, const struct event *e)
{
    uint8_t bytes[PLAIN_MAX];
    append(bytes, encode(bytes, e, s, NULL, 0), &s->first, &s->last);
    s->seq = e->seq;
    s->ts = e->ts;
}

/* Stops the goroutines that run on the Ps of the page, in the room that was kept for that. */
static void stop_running(void)
{
    for (uint32_t i = 0; i < pages.segments; i++) {
        struct segment *s = &pages.segment[i];
        struct run *r = &pages.run[s->p];
        if (!r->g || r->stopped)
            continue;
        append_event(s, &(struct event){.type = GT_V1_GO_PREEMPT, .seq = s->seq + 1, .ts = s->ts});
        *r = (struct run){r->g, true, s->seq, s->ts};
    }
}

void gt_v1_pages_flush(void)
{
    uint8_t *q = pages.page;
    if (pages.total == header_size())
        return;
    stop_running();
    if (pages.first)
        q = put_file_header(q);
    for (uint32_t i = 0; i < pages.segments; i++) {
        const struct segment *s = &pages.segment[i];
        memcpy(q, s->header, s->header_size);
        q = put_chain(q + s->header_size, s->first);
    }
    q = put_chain(q, pages.loose_first);
    put_padding(q, (uint32_t)(pages.page + GT_V1_PAGE - q));
    gt_output_write(pages.page, GT_V1_PAGE);
    pages.first = false;
    begin_page();
}

void gt_v1_pages_record(const void *record, size_t size)
{
    if (!fits((uint32_t)size))
        gt_v1_pages_flush();
    append(record, (uint32_t)size, &pages.loose_first, &pages.loose_last);
}

/*
 * The segment of e's P. A fresh segment begins with e, or with the event that stopped the P's
 * goroutine.
 */
static struct segment *segment_of(const struct event *e, bool *fresh)
{
    const struct run *r = &pages.run[e->p];
    *fresh = pages.serial_of[e->p] != pages.serial;
    struct segment *s = &pages.segment[*fresh ? pages.segments : pages.segment_of[e->p]];
    if (*fresh) {
        *s = (struct segment){.p = e->p, .first = NONE, .last = NONE, .seq = e->seq, .ts = e->ts};
        if (r->stopped) {
            s->seq = r->seq + 1;
            s->ts = r->ts;
        }
        s->header_size = (uint8_t)(put_batch(s->header, e->p, s->seq, s->ts) - s->header);
    }
    return s;
}

static void begin_segment(struct segment *s)
{
    struct run *r = &pages.run[s->p];
    pages.serial_of[s->p] = pages.serial;
    pages.segment_of[s->p] = (uint16_t)pages.segments++;
    pages.total += s->header_size + STOP_MAX;
    if (r->stopped) {
        struct event start = {.seq = s->seq, .ts = s->ts};
        r->stopped = false;
        start.type = pages.start(r->g, s->p, start.arg);
        append_event(s, &start);
    }
}

static void put_event(const struct event *e, const void *tail, size_t tail_size)
{
    uint8_t bytes[EVENT_MAX];
    for (;;) {
        bool fresh;
        struct segment *s = segment_of(e, &fresh);
        uint32_t size = encode(bytes, e, s, tail, tail_size);
        if (!fits(size + (fresh ? s->header_size + STOP_MAX + PLAIN_MAX : 0))) {
            gt_v1_pages_flush();
            continue; /* in a new page differences count from another event */
        }
        if (fresh)
            begin_segment(s);
        append(bytes, size, &s->first, &s->last);
        s->seq = e->seq;
        s->ts = e->ts;
        return;
    }
}

static struct event next_event(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args)
{
    struct event e = {.type = type, .p = p, .seq = pages.seq, .ts = ts};
    memcpy(e.arg, args, sizeof e.arg);
    pages.seq += SEQS;
    return e;
}

void gt_v1_pages_event(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args,
                       const void *tail, size_t tail_size)
{
    struct event e = next_event(type, p, ts, args);
    put_event(&e, tail, tail_size);
}

void gt_v1_pages_running(uint32_t p, struct gt_merge_g *g)
{
    pages.run[p] = (struct run){.g = g};
    if (pages.ps <= p)
        pages.ps = p + 1;
}

void gt_v1_pages_ran(uint64_t ts)
{
    for (uint32_t p = 0; p < pages.ps; p++) {
        if (!pages.run[p].g)
            continue;
        struct event e = next_event(GT_V1_GO_PREEMPT, p, ts, (const uint64_t[GT_V1_ARGS_MAX]){0});
        put_event(&e, NULL, 0);
        pages.run[p] = (struct run){pages.run[p].g, true, e.seq, ts};
    }
}

void gt_v1_pages_go_on(void)
{
    pages.first = false;
    begin_page();
}

void gt_v1_pages_stopped(uint32_t p, uint64_t seq, uint64_t ts)
{
    struct run *r = &pages.run[p];
    *r = (struct run){r->g, r->g, seq, ts};
}

void gt_v1_pages_counted(uint64_t seq)
{
    pages.seq = seq + SEQS > pages.seq ? seq + SEQS : pages.seq;
}

void gt_v1_pages_hold(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args)
{
    if (pages.holds < GT_V1_HELD_MAX)
        pages.held[pages.holds++] = next_event(type, p, ts, args);
}

void gt_v1_pages_release(void)
{
    if (!fits(HEADER_MAX + STOP_MAX + (pages.holds + 1) * PLAIN_MAX))
        gt_v1_pages_flush();
    for (uint32_t i = 0; i < pages.holds; i++)
        put_event(&pages.held[i], NULL, 0);
    pages.holds = 0;
}

uint64_t gt_v1_pages_next_seq(void)
{
    return pages.seq;
}
