/* See kept.h. Reads what ring.c has put into the box, which may be damaged. */
#include "kept.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* The array at that address; NULL, with *n 0: not all of it is in the box. */
static const void *array_at(const struct gt_boxed *b, const void *address, uint32_t *n, size_t each)
{
    const void *array = gt_boxed_at(b, (uintptr_t)address, *n * each);
    *n = array ? *n : 0;
    return array;
}

static struct gt_stack *stack_of(const struct gt_boxed *b, const struct gt_stack *its)
{
    return (struct gt_stack *)(uintptr_t)gt_memo_find(&b->stacks, (uintptr_t)its);
}

static void adopt_stacks(const struct gt_boxed *b, struct gt_kept *k)
{
    uint32_t n = 0;
    struct gt_stack *const *its = array_at(b, k->stacks, &k->n_stacks, sizeof *its);
    k->stacks = gt_need(calloc(k->n_stacks + 1, sizeof *k->stacks));
    for (uint32_t i = 0; i < k->n_stacks; i++) {
        struct gt_stack *s = stack_of(b, its[i]);
        if (s)
            k->stacks[n++] = s;
    }
    k->n_stacks = n;
}

static void add_reason(void *arg, struct gt_string *s)
{
    struct gt_kept *k = arg;
    if (!s->era)
        k->strings[k->n_strings++] = s;
}

/* Reasons are in no box: each process has its own, which are added here. */
static void adopt_strings(const struct gt_boxed *b, struct gt_kept *k)
{
    uint32_t n = k->n_strings;
    struct gt_string *const *its = array_at(b, k->strings, &n, sizeof *its);
    k->strings = gt_need(calloc(n + GT_REASONS_END, sizeof *k->strings));
    k->n_strings = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t s = gt_memo_find(&b->strings, (uintptr_t)its[i]);
        if (s)
            k->strings[k->n_strings++] = (struct gt_string *)(uintptr_t)s;
    }
    gt_strings_each(k->gen, add_reason, k);
}

static void adopt_samples(const struct gt_boxed *b, struct gt_kept *k)
{
    enum { MORE_MAX = 1 << 20 }; /* the most that samples of a generation count beyond one each */
    uint32_t n = 0;
    const struct gt_taken_sample *its = array_at(b, k->samples, &k->n_samples, sizeof *its);
    uint64_t most = (uint64_t)k->n_samples + MORE_MAX;
    k->samples = gt_need(calloc(k->n_samples + 1, sizeof *its));
    for (uint32_t i = 0; i < k->n_samples; i++) {
        if (its[i].times > most)
            continue;
        most -= its[i].times;
        k->samples[n] = its[i];
        k->samples[n++].stack = stack_of(b, its[i].stack);
    }
    k->n_samples = n;
}

/* Copies the list of buffers, packed or plain, up to *room bytes, the size of the generation. */
static struct gt_buf *adopt_buffers(const struct gt_boxed *b, const struct gt_buf *first,
                                    bool packed, uint32_t gen, size_t *room,
                                    struct gt_boxed_sum *sum)
{
    struct gt_buf *all = NULL, **link = &all;
    const struct gt_buf *buf;
    for (uint64_t at = (uintptr_t)first; (buf = gt_boxed_at(b, at, sizeof *buf));
         at = (uintptr_t)buf->next) {
        size_t size = sizeof *buf + buf->used;
        bool fits = buf->gen == gen && !buf->pos && (buf->m == GT_BUF_PACKED) == packed;
        if (!fits || size > *room || !gt_boxed_at(b, at, size))
            break;
        *room -= size;
        *link = gt_boxed_copy(b, buf, sum);
        link = &(*link)->next;
        *link = NULL;
    }
    return all;
}

static void free_buffers(struct gt_buf *buf)
{
    for (struct gt_buf *next; buf; buf = next) {
        next = buf->next;
        free(buf);
    }
}

static void recover(const struct gt_boxed *b, struct gt_kept k, void (*fn)(const struct gt_kept *k),
                    struct gt_boxed_sum *sum)
{
    size_t room = k.bytes;
    adopt_stacks(b, &k);
    adopt_strings(b, &k);
    adopt_samples(b, &k);
    k.early = adopt_buffers(b, k.early, true, k.gen, &room, sum);
    k.plain = adopt_buffers(b, k.plain, false, k.gen, &room, sum);
    fn(&k);
    free(k.stacks);
    free(k.strings);
    free(k.samples);
    free_buffers(k.early);
    free_buffers(k.plain);
}

/* Generation numbers must follow each other, so the list ends even if its links are damaged. */
uint32_t gt_kept_recover(const struct gt_boxed *b, void (*fn)(const struct gt_kept *k),
                         struct gt_boxed_sum *sum)
{
    uint32_t last = 0;
    uint64_t address = b->box->root[GT_BOX_KEPT];
    size_t room = b->size;
    const struct gt_kept *k;
    while ((k = gt_boxed_at(b, address, sizeof *k)) && k->bytes <= room && k->gen &&
           (!last || k->gen == last + 1)) {
        last = k->gen;
        room -= k->bytes;
        recover(b, *k, fn, sum);
        address = (uintptr_t)k->next;
    }
    return last;
}
