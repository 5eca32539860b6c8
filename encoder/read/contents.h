/*
 * Strings and stacks by contents, kept for the whole trace. The ids in a file have a meaning only
 * within a generation.
 */
#pragma once

#include "encoder/base/memo.h"

#include <stddef.h>
#include <stdint.h>

struct gt_where {
    uint64_t pc;
    const char *func, *file; /* interned: equal texts are equal pointers */
    uint64_t line;
};

/* A stack. */
struct gt_callers {
    struct gt_callers *same_hash;
    uint32_t number; /* counts from 1 */
    uint32_t n;
    struct gt_where frame[]; /* leaf first */
};

struct gt_contents {
    struct gt_memo texts, stacks; /* by hash */
    uint32_t stack_count;
};

const char *gt_contents_text(struct gt_contents *c, const void *text, size_t size);

/* Interns a text that will be printed: as UTF-8, without control characters. */
const char *gt_contents_name(struct gt_contents *c, const void *text, size_t size);

/* Frees all strings and stacks that were returned. */
void gt_contents_free(struct gt_contents *c);

const struct gt_callers *gt_contents_stack(struct gt_contents *c, const struct gt_where *frames,
                                           uint32_t n);
