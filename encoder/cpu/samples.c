/* See samples.h. */
#include "samples.h"

#include "encoder/thread/buffers.h"
#include "encoder/thread/stacks.h"

#include "encoder/base/arena.h"
#include "encoder/base/push.h"

#include <string.h>

#define RING_WORDS (1u << 13)
#define RING_WORDS_MAX (1u << 23)

/* A record: this many words, then the pcs. */
enum { HEAD = sizeof(struct gt_sample) / sizeof(uint64_t) };

static _Atomic(struct gt_sample_ring *) rings; /* push only */
static _Atomic uint64_t lost;
_Atomic bool gt_samples_crowded;

static struct {
    struct gt_vector memory; /* of struct gt_taken_sample */
    size_t n;
} taken;

static struct gt_sample_ring *new_ring(uint32_t size)
{
    struct gt_sample_ring *ring = gt_pages_alloc(sizeof *ring + size * sizeof *ring->words);
    if (!ring)
        return NULL;
    ring->size = size;
    GT_PUSH(&rings, ring, &ring->next);
    return ring;
}

struct gt_sample_ring *gt_samples_ring(void)
{
    return new_ring(RING_WORDS);
}

uint64_t gt_samples_lost(void)
{
    return atomic_load(&lost);
}

static void put_words(struct gt_sample_ring *ring, uint32_t at, const uint64_t *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ring->words[(at + i) & (ring->size - 1)] = words[i];
}

/* false: the ring is full. */
static bool put(struct gt_sample_ring *ring, const struct gt_sample *sample, const uint64_t *pcs)
{
    uint64_t words[HEAD] = {0};
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    /* acquire: the drain side has read what was at these places. Pairs with its release. */
    uint32_t used = head - atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint32_t size = HEAD + sample->n;
    if (ring->size - used < size)
        return false;
    memcpy(words, sample, sizeof *sample);
    put_words(ring, head, words, HEAD);
    put_words(ring, head + HEAD, pcs, sample->n);
    /* release: pairs with the drain side's acquire. */
    atomic_store_explicit(&ring->head, head + size, memory_order_release);
    if (used < ring->size / 4 && used + size >= ring->size / 4) {
        atomic_store(&gt_samples_crowded, true);
        gt_buffers_kick();
    }
    return true;
}

struct gt_sample_ring *gt_samples_put(struct gt_sample_ring *ring, const struct gt_sample *sample)
{
    if (put(ring, sample, ring->pcs))
        return ring;
    struct gt_sample_ring *next = ring->size < RING_WORDS_MAX ? new_ring(2 * ring->size) : NULL;
    if (next && put(next, sample, ring->pcs))
        return next;
    gt_samples_lose(sample->times);
    return ring;
}

/* Drain side ---------------------------------------------------------------------------------- */

static struct gt_taken_sample *samples(void)
{
    return taken.memory.at;
}

static uint32_t (*cpus)(void);

void gt_samples_set_cpus(uint32_t (*count)(void))
{
    cpus = count;
}

void gt_samples_lose(uint64_t n)
{
    atomic_fetch_add(&lost, n);
}

void gt_samples_take(const struct gt_sample *s, const uint64_t *pcs)
{
    if (!gt_vector_reserve(&taken.memory, (taken.n + 1) * sizeof *samples())) {
        gt_samples_lose(s->times);
        return;
    }
    samples()[taken.n++] = (struct gt_taken_sample){
        .ts = s->ts,
        .g = s->g,
        .m = s->m,
        .p = cpus && cpus() ? s->cpu : s->p,
        .times = s->times,
        .stack = s->n ? gt_stacks_get(pcs, s->n, s->epoch) : NULL,
    };
}

static void empty(struct gt_sample_ring *ring)
{
    uint64_t words[HEAD], pcs[GT_FRAMES_MAX];
    struct gt_sample s;
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    while (tail != atomic_load_explicit(&ring->head, memory_order_acquire)) {
        for (uint32_t i = 0; i < HEAD; i++)
            words[i] = ring->words[tail++ & (ring->size - 1)];
        memcpy(&s, words, sizeof s);
        for (uint32_t i = 0; i < s.n; i++)
            pcs[i] = ring->words[tail++ & (ring->size - 1)];
        atomic_store_explicit(&ring->tail, tail, memory_order_release);
        gt_samples_take(&s, pcs);
    }
}

void gt_samples_collect(void)
{
    atomic_store(&gt_samples_crowded, false);
    for (struct gt_sample_ring *ring = atomic_load(&rings); ring; ring = ring->next)
        empty(ring);
}

size_t gt_samples_memory(void)
{
    return taken.n * sizeof *samples();
}

size_t gt_samples_use(uint32_t gen, uint64_t until)
{
    size_t n = 0;
    for (size_t i = 0; i < taken.n; i++) {
        if (samples()[i].ts < until) {
            gt_stack_use(samples()[i].stack, gen);
            n++;
        }
    }
    return n;
}

void gt_samples_move(uint64_t until, struct gt_taken_sample *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < taken.n; i++) {
        if (samples()[i].ts >= until)
            samples()[kept++] = samples()[i];
        else if (out)
            *out++ = samples()[i];
    }
    taken.n = kept;
}

void gt_samples_renew(void)
{
    for (size_t i = 0; i < taken.n; i++)
        samples()[i].stack = gt_stack_renewed(samples()[i].stack);
}

void gt_samples_forget(void)
{
    gt_samples_collect();
    taken.n = 0;
}

void gt_samples_tell(const struct gt_taken_sample *s, size_t n,
                     void (*fn)(const struct gt_taken_sample *s))
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i].times; k++)
            fn(&s[i]);
}

void gt_samples_each(uint64_t until, void (*fn)(const struct gt_taken_sample *s))
{
    for (size_t i = 0; i < taken.n; i++) {
        if (samples()[i].ts < until)
            gt_samples_tell(&samples()[i], 1, fn);
    }
    gt_samples_move(until, NULL);
}

void gt_samples_after_fork(void)
{
    atomic_store(&rings, NULL);
    atomic_store(&lost, 0);
    atomic_store(&gt_samples_crowded, false);
    taken.n = 0;
}
