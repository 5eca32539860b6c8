/*
 * What a writer keeps of the strings that its program gave (texts.h): the buffer for the next one,
 * and the last ones.
 */
#pragma once

#include <stdint.h>

struct gt_buf;

#define GT_TEXTS_RECENT 16u

/* Part of a writer. Zero-initialised. */
struct gt_texts {
    struct gt_buf *buf;
    struct gt_recent_text {
        const char *text; /* in buf; NULL: none */
        uint32_t len;
        uint64_t id;
    } recent[GT_TEXTS_RECENT]; /* by hash */
};
