/*
 * Unsigned LEB128, the only integer encoding in Go's trace formats.
 * Pure functions on caller-owned memory; callable from anywhere.
 */
#pragma once

#include <stdint.h>

#define GT_VARINT_MAX 10 /* bytes of the longest 64-bit value */

/* Appends v at p (room for GT_VARINT_MAX bytes) and returns the end. */
static inline uint8_t *gt_varint_put(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)v | 0x80;
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/*
 * Writes v in exactly `width` bytes, padded with continuation bytes: a field whose value is known
 * only later keeps its place. Go's binary.ReadUvarint accepts padding up to 10 bytes.
 */
static inline uint8_t *gt_varint_put_padded(uint8_t *p, uint64_t v, int width)
{
    for (int i = 0; i < width - 1; i++) {
        *p++ = (uint8_t)v | 0x80;
        v >>= 7;
    }
    *p++ = (uint8_t)v & 0x7f;
    return p;
}

/* Reads a value at *p, no further than `end`, and moves *p behind it. */
static inline uint64_t gt_varint_get(const uint8_t **p, const uint8_t *end)
{
    uint64_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return v;
}
