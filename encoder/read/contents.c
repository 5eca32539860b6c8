/* See contents.h. */
#include "contents.h"

#include "need.h"

#include "encoder/base/hash.h"
#include "encoder/base/printable.h"
#include "encoder/base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct text {
    struct text *same_hash;
    size_t size;
    char bytes[];
};

const char *gt_contents_text(struct gt_contents *c, const void *bytes, size_t size)
{
    uint64_t hash = size, word;
    if (!size)
        return "";
    for (size_t i = 0; i < size; i += sizeof word) {
        word = 0;
        memcpy(&word, (const char *)bytes + i, size - i < sizeof word ? size - i : sizeof word);
        hash = gt_hash_mix(hash, word);
    }
    uint64_t *slot = gt_need(gt_memo_at(&c->texts, hash));
    for (struct text *t = (void *)(uintptr_t)*slot; t; t = t->same_hash) {
        if (t->size == size && memcmp(t->bytes, bytes, size) == 0)
            return t->bytes;
    }
    struct text *t = gt_need(malloc(sizeof *t + size + 1));
    *t = (struct text){.same_hash = (void *)(uintptr_t)*slot, .size = size};
    memcpy(t->bytes, bytes, size);
    t->bytes[size] = 0;
    *slot = (uintptr_t)t;
    return t->bytes;
}

/* Copies a text as UTF-8 to a buffer three times its size; returns the copy's size. */
static size_t put_text(char *to, const char *text, size_t size)
{
    char *end = to;
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = gt_utf8_character(text + i, size - i);
        end = mempcpy(end, n ? text + i : GT_UTF8_UNKNOWN, n ? n : sizeof GT_UTF8_UNKNOWN - 1);
    }
    return (size_t)(end - to);
}

const char *gt_contents_name(struct gt_contents *c, const void *bytes, size_t size)
{
    char *copy = gt_need(malloc(3 * size + 1));
    size_t n = put_text(copy, bytes, size);
    gt_make_printable(copy, n);
    const char *name = gt_contents_text(c, copy, n);
    free(copy);
    return name;
}

const struct gt_callers *gt_contents_stack(struct gt_contents *c, const struct gt_where *frames,
                                           uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        hash = gt_hash_mix(hash, frames[i].pc);
        hash = gt_hash_mix(hash, (uintptr_t)frames[i].func);
        hash = gt_hash_mix(hash, (uintptr_t)frames[i].file ^ frames[i].line << 48);
    }
    size_t size = n * sizeof *frames;
    uint64_t *slot = gt_need(gt_memo_at(&c->stacks, hash));
    for (struct gt_callers *s = (void *)(uintptr_t)*slot; s; s = s->same_hash) {
        if (s->n == n && memcmp(s->frame, frames, size) == 0)
            return s;
    }
    struct gt_callers *s = gt_need(malloc(sizeof *s + size));
    *s = (struct gt_callers){(void *)(uintptr_t)*slot, ++c->stack_count, n};
    memcpy(s->frame, frames, size);
    *slot = (uintptr_t)s;
    return s;
}

void gt_contents_free(struct gt_contents *c)
{
    for (size_t i = 0; i < c->texts.capacity; i++) {
        for (struct text *t = (void *)(uintptr_t)c->texts.slots[i].value, *next; t; t = next) {
            next = t->same_hash;
            free(t);
        }
    }
    for (size_t i = 0; i < c->stacks.capacity; i++) {
        for (struct gt_callers *s = (void *)(uintptr_t)c->stacks.slots[i].value, *next; s;
             s = next) {
            next = s->same_hash;
            free(s);
        }
    }
    gt_memo_free(&c->texts);
    gt_memo_free(&c->stacks);
    *c = (struct gt_contents){0};
}
