/* See v1_pages.h. */
#include "v1_pages.h"

#include "output.h"
#include "varint.h"

#include <string.h>

#define P_SLOTS (65536u + 1)
#define LENGTH_FOLLOWS (3u << 6) /* in an event's first byte, for three arguments or more */
#define PAD_MIN 8u
#define PAD_MAX 1000u /* readers take 1000 frames */
#define HEADER_MAX (1 + 3 * GT_VARINT_MAX)
#define EVENT_MAX (2 + (2 + GT_V1_ARGS_MAX) * GT_VARINT_MAX + GT_VARINT_MAX + GT_STRING_MAX)

/* What happened on one P within the page. */
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
    uint8_t bytes[GT_V1_PAGE]; /* of events and records, as they come */
    uint8_t page[GT_V1_PAGE];  /* put together */
    struct record record[RECORDS];
    struct segment segment[SEGMENTS];
    uint32_t records, segments;
    uint32_t used;                    /* of bytes */
    uint32_t total;                   /* what the page comes to */
    uint16_t loose_first, loose_last; /* records of no P */
    uint64_t seq;
    uint32_t serial; /* of the page, in all files */
    bool first;      /* the page begins with the file's header */
    uint32_t serial_of[P_SLOTS];
    uint16_t segment_of[P_SLOTS]; /* valid if serial_of is the page's */
} pages;

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

void gt_v1_pages_open(void)
{
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

/* The file's header, and a batch to which records may belong that come before any event. */
static uint8_t *put_file_header(uint8_t *q)
{
    memset(q, 0, GT_HEADER_BYTES);
    strcpy((char *)q, gt_format->header);
    q = put_batch(q + GT_HEADER_BYTES, 0, 0, 0);
    return q;
}

/*
 * `gap` bytes that readers skip: stacks with the id 0, which means "none". Their arguments are
 * zeros, the numbers before them stretched to fit.
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

void gt_v1_pages_flush(void)
{
    uint8_t *q = pages.page;
    if (pages.total == header_size())
        return;
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

/* Whether the page still has room, and afterwards none or enough for padding. */
static bool fits(uint32_t size)
{
    uint32_t total = pages.total + size;
    return total == GT_V1_PAGE || total + PAD_MIN <= GT_V1_PAGE;
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

void gt_v1_pages_record(const void *record, size_t size)
{
    if (!fits((uint32_t)size))
        gt_v1_pages_flush();
    append(record, (uint32_t)size, &pages.loose_first, &pages.loose_last);
}

/* The segment of P p, which begins with an event at ts if need be. */
static struct segment *segment_of(uint32_t p, uint64_t ts, bool *fresh)
{
    *fresh = pages.serial_of[p] != pages.serial;
    struct segment *s = &pages.segment[*fresh ? pages.segments : pages.segment_of[p]];
    if (*fresh) {
        *s = (struct segment){.p = p, .first = NONE, .last = NONE, .seq = pages.seq, .ts = ts};
        s->header_size = (uint8_t)(put_batch(s->header, p, pages.seq, ts) - s->header);
    }
    return s;
}

static uint32_t encode(uint8_t *out, enum gt_v1_type type, uint64_t dseq, uint64_t dts,
                       const uint64_t *args, const void *tail, size_t tail_size)
{
    uint8_t body[EVENT_MAX], *q = body, n = 0;
    if (gt_v1_global_order(gt_format))
        q = gt_varint_put(q, dseq);
    q = gt_varint_put(q, dts);
    for (int i = 0; i < GT_V1_ARGS_MAX && gt_v1_events[type].arg[i]; i++) {
        if (gt_v1_events[type].arg[i] <= gt_format->minor) {
            q = gt_varint_put(q, args[i]);
            n++;
        }
    }
    uint8_t *p = out;
    *p++ = (uint8_t)(type | (n < 3 ? n : 3u) << 6);
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

void gt_v1_pages_event(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args,
                       const void *tail, size_t tail_size)
{
    uint8_t bytes[EVENT_MAX];
    for (;;) {
        bool fresh;
        struct segment *s = segment_of(p, ts, &fresh);
        uint32_t size = encode(bytes, type, pages.seq - s->seq, ts - s->ts, args, tail, tail_size);
        if (!fits(size + (fresh ? s->header_size : 0))) {
            gt_v1_pages_flush();
            continue; /* in a new page the differences are others */
        }
        if (fresh) {
            pages.serial_of[p] = pages.serial;
            pages.segment_of[p] = (uint16_t)pages.segments++;
            pages.total += s->header_size;
        }
        append(bytes, size, &s->first, &s->last);
        s->seq = pages.seq++;
        s->ts = ts;
        return;
    }
}

uint64_t gt_v1_pages_next_seq(void)
{
    return pages.seq;
}
