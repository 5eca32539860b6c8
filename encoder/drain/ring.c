/* See ring.h. */
#include "ring.h"

#include "encoder/base/arena.h"
#include "encoder/base/box.h"
#include "encoder/base/debug.h"

#include <string.h>

static struct {
    struct gt_kept *first, *last;
    struct gt_kept *boxed; /* the first of the newest ones, all in the black box; or NULL */
    _Atomic size_t bytes;
    uint64_t limit, ns;
} ring;

size_t gt_ring_memory(void)
{
    return atomic_load_explicit(&ring.bytes, memory_order_relaxed);
}

void gt_ring_open(uint64_t bytes, uint64_t ns)
{
    GT_ASSERT_DRAIN_SIDE();
    gt_ring_clear();
    ring.limit = bytes;
    ring.ns = ns;
}

const struct gt_kept *gt_ring_newest(size_t bytes)
{
    const struct gt_kept *k = ring.first;
    for (size_t all = ring.bytes; k && k->next && all > bytes; k = k->next)
        all -= k->bytes;
    return k;
}

uint32_t gt_ring_first_era(void)
{
    uint32_t least = UINT32_MAX;
    for (const struct gt_kept *k = ring.first; k; k = k->next)
        least = k->era < least ? k->era : least;
    return least;
}

static void set_boxed(struct gt_kept *k)
{
    ring.boxed = k;
    gt_box_set_root(GT_BOX_KEPT, k);
}

/* Appends k, which is complete: from here on it can be found in the box. */
static void append(struct gt_kept *k)
{
    struct gt_kept *last = ring.last;
    bool has_it = gt_box_has(k), goes_on = has_it && ring.boxed;
    __atomic_store_n(last ? &last->next : &ring.first, k, __ATOMIC_RELEASE);
    ring.last = k;
    ring.bytes += k->bytes;
    if (!goes_on)
        set_boxed(has_it ? k : NULL);
}

static void forget_oldest(void)
{
    struct gt_kept *k = ring.first;
    if (k == ring.boxed)
        set_boxed(k->next); /* before k is gone */
    ring.first = k->next;
    ring.last = ring.first ? ring.last : NULL;
    ring.bytes -= k->bytes;
    gt_pages_free(k, k->bytes);
}

void gt_ring_clear(void)
{
    while (ring.first)
        forget_oldest();
    ring.last = NULL; /* the parent may have been in the middle of a change */
    ring.bytes = 0;
    gt_era_release(UINT32_MAX);
}

void gt_ring_leave(void)
{
    ring.first = ring.last = ring.boxed = NULL;
}

/*
 * Makes room for `bytes` more; and forgets the generations that ended more than ring.ns before
 * `now`.
 */
static void make_room(size_t bytes, uint64_t now)
{
    while (ring.first && (ring.bytes + bytes + gt_era_past_bytes() > ring.limit ||
                          (ring.ns && ring.first->end_ns + ring.ns < now))) {
        forget_oldest();
        gt_era_release(gt_ring_first_era());
    }
}

void gt_ring_trim(void)
{
    GT_ASSERT_DRAIN_SIDE();
    make_room(0, ring.last ? ring.last->end_ns : 0);
}

/*
 * Allocates memory in the black box, or as pages of its own without one. If the disk is full,
 * forgets the oldest generations in the box: the ring holds no more than the box has space for.
 */
static struct gt_kept *get_pages(size_t bytes)
{
    struct gt_kept *k;
    while (!(k = gt_box_alloc_kept(bytes)) && ring.boxed)
        forget_oldest();
    if (k)
        return k;
    gt_box_count_outside(bytes);
    return gt_pages_alloc(bytes);
}

/* Copying ------------------------------------------------------------------------------------ */

static size_t copy_size(const struct gt_buf *buf)
{
    size_t n = 0;
    for (; buf; buf = buf->next)
        n += (sizeof *buf + buf->used + 15) & ~(size_t)15;
    return n;
}

/* Copies a list to *place, which moves on; returns the first copy. */
static struct gt_buf *copy_list(char **place, uint32_t gen, const struct gt_buf *buf)
{
    struct gt_buf *first = NULL, **link = &first;
    for (; buf; buf = buf->next) {
        struct gt_buf *copy = (struct gt_buf *)*place;
        *place += copy_size(&(struct gt_buf){.used = buf->used});
        memcpy(copy, buf, sizeof *buf + buf->used);
        copy->next = NULL;
        copy->gen = gen;  /* a completed buffer has none */
        copy->pos = NULL; /* no thread writes there any more */
        *link = copy;
        link = &copy->next;
    }
    return first;
}

/* Counts the stack, and puts it into the array if there is one. */
static void put_stack(void *arg, struct gt_stack *s)
{
    struct gt_kept *k = arg;
    if (k->stacks)
        k->stacks[k->n_stacks] = s;
    k->n_stacks++;
    k->era = s->era < k->era ? s->era : k->era;
}

static void put_string(void *arg, struct gt_string *s)
{
    struct gt_kept *k = arg;
    if (k->strings)
        k->strings[k->n_strings] = s;
    k->n_strings++;
    if (s->era) /* not a reason */
        k->era = s->era < k->era ? s->era : k->era;
}

bool gt_ring_keep(const struct gt_kept *kept, const struct gt_buf *early,
                  const struct gt_buf *plain, uint64_t until)
{
    uint32_t samples = (uint32_t)gt_samples_use(kept->gen, until);
    struct gt_kept all = {0};
    gt_stacks_each(kept->gen, put_stack, &all);
    gt_strings_each(kept->gen, put_string, &all);
    size_t bytes = sizeof *kept + (all.n_stacks + all.n_strings) * sizeof(void *) +
                   samples * sizeof *kept->samples + 16 + copy_size(early) + copy_size(plain);
    bytes = (bytes + 4095) & ~(size_t)4095;
    make_room(bytes, kept->end_ns);
    struct gt_kept *k = bytes > ring.limit ? NULL : get_pages(bytes);
    if (!k)
        return false;
    *k = *kept;
    k->next = NULL;
    k->bytes = bytes;
    k->n_stacks = k->n_strings = 0;
    k->era = UINT32_MAX;
    k->stacks = (struct gt_stack **)(k + 1);
    k->strings = (struct gt_string **)(k->stacks + all.n_stacks);
    gt_stacks_each(kept->gen, put_stack, k);
    gt_strings_each(kept->gen, put_string, k);
    k->samples = (struct gt_taken_sample *)(k->strings + all.n_strings);
    k->n_samples = samples;
    gt_samples_move(until, k->samples);
    char *place = (char *)(((uintptr_t)(k->samples + samples) + 15) & ~(uintptr_t)15);
    k->early = copy_list(&place, k->gen, early);
    k->plain = copy_list(&place, k->gen, plain);
    append(k);
    return true;
}
