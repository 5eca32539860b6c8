/*
 * Deflate (RFC 1951) backwards, in pieces: output up to where it is asked for, input as it comes.
 * Twice as fast as zlib's, which stays within any buffer; this one reads and writes eight bytes at
 * a time where there is room.
 */
#ifndef GT_INFLATE_H
#define GT_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GT_INFLATE_SLACK = 16, /* readable bytes behind the input, whatever they are */
    GT_INFLATE_LENGTH_BITS = 11,
    GT_INFLATE_DISTANCE_BITS = 8,
    /* Entries that codes of up to 15 bits need at most, as zlib's enough.c counts them. */
    GT_INFLATE_LENGTH_ENTRIES = 2342,
    GT_INFLATE_DISTANCE_ENTRIES = 402,
};

struct gt_bits {
    const uint8_t *in, *end; /* the caller's: what is left of the input at hand */
    bool more;               /* the caller's: there is input behind that */
    unsigned n;              /* of the bits that have been taken from it and not used */
    uint64_t bits;
};

struct gt_inflate {
    struct gt_bits input;
    uint8_t *out, *start,
        *end;        /* the next byte, the first, and behind the last one of the output */
    uint32_t stored; /* bytes left of a stored block */
    bool last;       /* block */
    enum { GT_INFLATE_HEAD, GT_INFLATE_STORED, GT_INFLATE_CODED, GT_INFLATE_DONE } state;
    uint32_t length[GT_INFLATE_LENGTH_ENTRIES], distance[GT_INFLATE_DISTANCE_ENTRIES];
};

enum gt_inflated {
    GT_INFLATED,       /* out has reached what was asked for, or the end of the data */
    GT_INFLATE_HUNGRY, /* more input is needed: keep what is left of it */
    GT_INFLATE_DAMAGED,
};

/* Goes on until out has reached upto, if not somewhat further. */
enum gt_inflated gt_inflate(struct gt_inflate *s, const uint8_t *upto);

#endif
