/* Reads the bytes of a trace. Bytes beyond the end read as zeros and set `bad`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gt_bytes {
    const uint8_t *p, *end;
    bool bad;
};

static inline size_t gt_bytes_left(const struct gt_bytes *b)
{
    return (size_t)(b->end - b->p);
}

/* Most varints have one byte. */
static inline uint64_t gt_get_varint(struct gt_bytes *b)
{
    uint64_t v = 0;
    if (b->p < b->end && *b->p < 0x80)
        return *b->p++;
    for (unsigned shift = 0; b->p < b->end && shift < 64; shift += 7) {
        uint8_t byte = *b->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (shift == 63 && byte > 1)
            break; /* it has more than 64 bits */
        if (byte < 0x80)
            return v;
    }
    b->bad = true;
    return 0;
}

/* Whether these bytes come next; if so, skips them. */
static inline bool gt_bytes_begin(struct gt_bytes *b, const void *with, size_t n)
{
    bool begins = gt_bytes_left(b) >= n && memcmp(b->p, with, n) == 0;
    b->p += begins ? n : 0;
    return begins;
}

static inline uint8_t gt_get_byte(struct gt_bytes *b)
{
    if (b->p < b->end)
        return *b->p++;
    b->bad = true;
    return 0;
}

/* Takes the next n bytes as a struct gt_bytes of their own. */
static inline struct gt_bytes gt_get_part(struct gt_bytes *b, uint64_t n)
{
    struct gt_bytes part = {b->p, b->p, false};
    if (n > gt_bytes_left(b)) {
        b->bad = part.bad = true;
        b->p = b->end;
        return part;
    }
    part.end = b->p += n;
    return part;
}
