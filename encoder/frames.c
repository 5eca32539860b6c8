/* See frames.h. */
#include "frames.h"

#include "strings.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/debug.h"
#include "encoder/base/era.h"
#include "encoder/base/sparse.h"

#include <string.h>

/*
 * Readers key frames by PC, the first one wins: every inlined frame needs a PC of its own. Those
 * come from a range no code can have; so do frames of later module-map epochs of which it is not
 * known whether their addresses belonged to another library before. Outside of all modules code
 * comes and goes: what is there is asked for again for each stretch of time.
 */

#define INLINES_MAX 32

struct resolved {
    struct resolved *next;
    uint64_t pc;
    uint32_t epoch; /* any in which the PC is of the same code */
    uint32_t n;
    uint32_t time; /* of a passing one: it was last known to be there; else 0 */
    struct gt_named_frame frame[];
};

/* The first ones lie together: a short run has no more, and each page that it touches costs it. */
enum { FIRST = 512, BUCKETS = 16384 };

static struct {
    const struct gt_drain_config *config;
    struct resolved *first[FIRST], *bucket[BUCKETS];
    size_t n;
    uint64_t last_synthetic;
    uint32_t time; /* counts what gt_frames_of_time was told */
    struct gt_arena arena;
} symbols GT_SPARSE;

void gt_frames_init(const struct gt_drain_config *config)
{
    symbols.config = config;
}

bool gt_frames_named_later(void)
{
    return symbols.config->names_later;
}

void gt_frames_of_time(uint64_t begin_ns, uint64_t end_ns)
{
    GT_ASSERT_DRAIN_SIDE();
    symbols.time++;
    if (symbols.config->of_time)
        symbols.config->of_time(begin_ns, end_ns);
}

static struct resolved *keep(const struct gt_frame *found, int n, uint64_t pc, uint32_t epoch)
{
    size_t size = sizeof(struct resolved) + (size_t)n * sizeof(struct gt_named_frame);
    struct resolved *r = gt_arena_alloc(&symbols.arena, size);
    if (!r)
        return NULL;
    gt_era_count(size);
    r->pc = pc;
    r->epoch = epoch;
    r->n = (uint32_t)n;
    r->time = found[0].passing ? symbols.time : 0;
    for (int i = 0; i < n; i++) {
        uint64_t real = i < n - 1 ? 0 : found[i].pc || epoch > 1 ? found[i].pc : pc;
        r->frame[i] = (struct gt_named_frame){
            .pc = real ? real : GT_ARCH_USER_END + ++symbols.last_synthetic,
            .func = gt_strings_intern(found[i].func),
            .file = gt_strings_intern(found[i].file),
            .module = found[i].module ? gt_strings_intern(found[i].module) : NULL,
            .line = found[i].line,
        };
        if (!r->frame[i].func || !r->frame[i].file)
            return NULL;
    }
    return r;
}

/* As stacks.c has it for stacks: the newest comes first. */
static struct resolved *find(struct resolved *r, uint64_t pc, uint32_t epoch)
{
    enum { TIMES = 8 };
    bool (*same)(uint64_t, uint32_t, uint32_t) = symbols.config->same;
    for (int others = 0; r && others < TIMES; r = r->next) {
        if (r->pc != pc || (r->time && r->time != symbols.time))
            continue;
        if (r->epoch != epoch && others++ == 0 && same && same(pc, r->epoch, epoch))
            r->epoch = epoch;
        if (r->epoch == epoch)
            return r;
    }
    return NULL;
}

/* What was at an address before, and is again. */
static struct resolved *find_again(struct resolved *r, uint64_t pc, const struct gt_frame *found)
{
    while (r && !(r->time && r->pc == pc && r->frame[0].pc == found->pc))
        r = r->next;
    if (r)
        r->time = symbols.time;
    return r;
}

/* Where all of that address are. */
static struct resolved **bucket_of(uint64_t pc)
{
    uint64_t hash = pc * 0x9e3779b97f4a7c15u >> 32;
    struct resolved **first = &symbols.first[hash % FIRST], *r = *first;
    while (symbols.n >= FIRST && r && r->pc != pc)
        r = r->next;
    return symbols.n < FIRST || r ? first : &symbols.bucket[hash % BUCKETS];
}

static struct resolved *resolve(const struct gt_stack *s, uint32_t index)
{
    struct gt_frame found[INLINES_MAX];
    /* A return address belongs to the call before it: readers and other tools expect that PC. */
    uint64_t pc = index == 0 ? s->pcs[0] : s->pcs[index] - 1;
    struct resolved **bucket = bucket_of(pc), *r = find(*bucket, pc, gt_stack_epoch(s));
    if (r)
        return r;
    int n = symbols.config->resolve(s, index, found, INLINES_MAX);
    r = found[0].passing ? find_again(*bucket, pc, found) : NULL;
    if (r)
        return r;
    r = keep(found, n, pc, gt_stack_epoch(s));
    if (r) {
        r->next = *bucket;
        __atomic_store_n(bucket, r, __ATOMIC_RELEASE); /* a forked child has all of it */
        symbols.n++;
    }
    return r;
}

uint32_t gt_frames_of(const struct gt_stack *s, struct gt_named_frame *out[GT_FRAMES_MAX])
{
    GT_ASSERT_DRAIN_SIDE();
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct resolved *r = resolve(s, i);
        for (uint32_t k = 0; r && k < r->n && n < GT_FRAMES_MAX; k++)
            out[n++] = &r->frame[k];
    }
    return n;
}

void gt_frames_look_ahead(const struct gt_stack *s, bool (*has_time)(void))
{
    GT_ASSERT_DRAIN_SIDE();
    for (uint32_t i = 0; i < s->n && has_time(); i++)
        resolve(s, i);
}

/* The buckets first: a fork may come between. */
void gt_frames_forget(void)
{
    GT_ASSERT_DRAIN_SIDE();
    memset(symbols.first, 0, sizeof symbols.first);
    memset(symbols.bucket, 0, sizeof symbols.bucket);
    symbols.n = 0;
    gt_arena_free(&symbols.arena);
}
