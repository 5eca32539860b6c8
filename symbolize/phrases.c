/* See phrases.h. */
#include "phrases.h"

#include "functions.h"
#include "symbolize.h"

#include "encoder/base/hash.h"
#include "encoder/base/path.h"

#include <stdlib.h>

static const char *const words[GT_PHRASES] = {
    [GT_PHRASE_VARIABLE] = "gotrace-variable:",
    [GT_PHRASE_FUNCTION] = "gotrace-function:",
    [GT_PHRASE_PLACE] = "gotrace-place:",
};

/* The innermost frame whose function is no wrapper (gt_is_wrapper), else the outermost one. */
static struct gt_sym_frame frame_at(struct gt_symbolizer *s, uint64_t epoch, uint64_t address)
{
    enum { MAX = 32 };
    struct gt_sym_frame frames[MAX];
    int n = gt_symbolize(s, epoch, address, false, frames, MAX);
    int i = 0;
    while (i < n - 1 && gt_is_wrapper(frames[i].func))
        i++;
    return frames[i];
}

/*
 * The length to which a name is cut. It depends on the name alone: phrases for the same thing must
 * be equal in all texts, whatever stands before them.
 */
static size_t cut(const char *name, size_t n)
{
    enum { MOST = 384 };
    if (n <= MOST)
        return n;
    for (n = MOST; ((unsigned char)name[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

/* Appends a name. A hash replaces the rest of a long one. */
static void add_name(struct gt_strbuf *t, const char *name)
{
    size_t n = cut(name, strlen(name));
    uint64_t hash = 0;
    gt_strbuf_add_n(t, name, n);
    if (!name[n])
        return;
    for (const char *c = name + n; *c; c++)
        hash = gt_hash_mix(hash, (uint8_t)*c);
    gt_strbuf_add(t, "...");
    gt_strbuf_hex(t, hash >> 32);
}

static bool add_variable(struct gt_strbuf *t, struct gt_symbolizer *s, uint64_t epoch,
                         uint64_t address)
{
    uint64_t offset;
    const char *which, *name = gt_symbolize_variable(s, epoch, address, &offset, &which);
    if (!name)
        return false;
    add_name(t, name);
    if (offset) {
        gt_strbuf_add(t, "+");
        gt_strbuf_decimal(t, offset);
    }
    if (*which) {
        gt_strbuf_add(t, " (");
        gt_strbuf_add_item(t, which, strlen(which));
        gt_strbuf_add(t, ")");
    }
    return true;
}

/* Appends a function without parameters, as one item of a list. */
static void add_function(struct gt_strbuf *t, const struct gt_sym_frame *frame)
{
    gt_strbuf_add_item(t, frame->func, cut(frame->func, gt_without_parameters(frame->func)));
}

static void add_place(struct gt_strbuf *t, const struct gt_sym_frame *frame)
{
    add_function(t, frame);
    gt_strbuf_add(t, " (");
    if (frame->line) {
        gt_strbuf_add(t, gt_path_name(frame->file));
        gt_strbuf_add(t, ":");
        gt_strbuf_decimal(t, frame->line);
    }
    gt_strbuf_add(t, ")");
}

bool gt_phrase_add(struct gt_strbuf *t, struct gt_symbolizer *s, enum gt_phrase which,
                   uint64_t epoch, uint64_t address)
{
    if (which == GT_PHRASE_VARIABLE)
        return add_variable(t, s, epoch, address);
    struct gt_sym_frame frame = frame_at(s, epoch, address);
    (which == GT_PHRASE_PLACE ? add_place : add_function)(t, &frame);
    return true;
}

void gt_phrase_put_off(struct gt_strbuf *t, enum gt_phrase which, uint64_t shown)
{
    gt_strbuf_add(t, words[which]);
    gt_strbuf_hex(t, shown);
}

const char *gt_phrase_find(const char *text, enum gt_phrase *which, uint64_t *shown,
                           const char **end)
{
    const char *first = NULL;
    for (int i = 0; i < GT_PHRASES; i++) {
        const char *at = strstr(text, words[i]);
        if (!at || (first && at > first))
            continue;
        first = at;
        *which = (enum gt_phrase)i;
        *shown = strtoull(at + strlen(words[i]), (char **)(uintptr_t)end, 16);
    }
    return first;
}
