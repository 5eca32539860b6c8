/* See frames.h. */
#include "frames.h"

#include "encoder/thread/strings.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/debug.h"
#include "encoder/base/era.h"
#include "encoder/base/sparse.h"

#include <string.h>

/*
 * Readers key frames by PC, and take the first frame of a PC. So every inlined frame needs a PC of
 * its own. It comes from a range that no code can have. So does the PC of a frame of a later
 * module-map epoch, if its address may have belonged to another library before. Outside of all
 * modules code comes and goes: there frames are resolved again for each stretch of time.
 */

#define INLINES_MAX 32

struct resolved {
    struct resolved *next;
    uint64_t pc;
    uint32_t epoch; /* an epoch in which the PC has this code */
    uint32_t n;
    uint32_t time; /* passing code: when it was last known to be there; else 0 */
    struct gt_named_frame frame[];
};

/*
 * The first frames lie together: a short run has no more, and each page that it touches takes
 * time.
 */
enum { FIRST = 512, BUCKETS = 16384 };

static struct {
    const struct gt_frame_names *names;
    bool later;
    struct resolved *first[FIRST], *bucket[BUCKETS];
    size_t n;
    uint64_t last_synthetic;
    uint32_t time; /* counts calls of gt_frames_of_time */
    struct gt_arena arena;
} symbols GT_SPARSE;

void gt_frames_init(const struct gt_frame_names *names, bool later)
{
    symbols.names = names;
    symbols.later = later;
}

bool gt_frames_named_later(void)
{
    return symbols.later;
}

void gt_frames_of_time(uint64_t begin_ns, uint64_t end_ns)
{
    GT_ASSERT_DRAIN_SIDE();
    symbols.time++;
    if (symbols.names->of_time)
        symbols.names->of_time(begin_ns, end_ns);
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

/* Finds the frames of pc in an epoch. As in stacks.c the newest entry comes first. */
static struct resolved *find(struct resolved *r, uint64_t pc, uint32_t epoch)
{
    enum { TIMES = 8 };
    bool (*same)(uint64_t, uint32_t, uint32_t) = symbols.names->same;
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

/* Finds code that was at an address before, and is there again. */
static struct resolved *find_again(struct resolved *r, uint64_t pc, const struct gt_frame *found)
{
    while (r && !(r->time && r->pc == pc && r->frame[0].pc == found->pc))
        r = r->next;
    if (r)
        r->time = symbols.time;
    return r;
}

/* The bucket with all entries of pc. */
static struct resolved **bucket_of(uint64_t pc)
{
    uint64_t hash = pc * 0x9e3779b97f4a7c15u >> 32;
    struct resolved **first = &symbols.first[hash % FIRST], *r = *first;
    while (symbols.n >= FIRST && r && r->pc != pc)
        r = r->next;
    return symbols.n < FIRST || r ? first : &symbols.bucket[hash % BUCKETS];
}

/* A return address belongs to the call before it: readers and other tools expect that PC. */
static uint64_t pc_of(const struct gt_stack *s, uint32_t index)
{
    return index == 0 ? s->pcs[0] : s->pcs[index] - 1;
}

static struct resolved *resolve(const struct gt_stack *s, uint32_t index)
{
    struct gt_frame found[INLINES_MAX];
    uint64_t pc = pc_of(s, index);
    struct resolved **bucket = bucket_of(pc), *r = find(*bucket, pc, gt_stack_epoch(s));
    if (r)
        return r;
    int n = symbols.names->resolve(s, index, found, INLINES_MAX);
    r = found[0].passing ? find_again(*bucket, pc, found) : NULL;
    if (r)
        return r;
    r = keep(found, n, pc, gt_stack_epoch(s));
    if (r) {
        r->next = *bucket;
        __atomic_store_n(bucket, r, __ATOMIC_RELEASE); /* a forked child sees a whole entry */
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

/* An address that is wanted in two epochs waits for gt_frames_of in the second one. */
void gt_frames_want(struct gt_memo *wanted, const struct gt_stack *s)
{
    GT_ASSERT_DRAIN_SIDE();
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t pc = pc_of(s, i), *slot = NULL;
        if (!find(*bucket_of(pc), pc, gt_stack_epoch(s)))
            slot = gt_memo_at(wanted, pc);
        if (slot && !*slot)
            *slot = (uint64_t)(uintptr_t)s;
    }
}

static uint32_t index_of(const struct gt_stack *s, uint64_t pc)
{
    uint32_t i = 0;
    while (pc_of(s, i) != pc)
        i++;
    return i;
}

void gt_frames_look_up(struct gt_memo *wanted, bool (*goes_on)(void))
{
    GT_ASSERT_DRAIN_SIDE();
    struct gt_pair *pairs = wanted->slots;
    size_t n = 0;
    for (size_t i = 0; i < wanted->capacity; i++) {
        if (pairs[i].value)
            pairs[n++] = pairs[i];
    }
    gt_sort(pairs, n);
    for (size_t i = 0; i < n && goes_on(); i++) {
        const struct gt_stack *s = (const struct gt_stack *)(uintptr_t)pairs[i].value;
        resolve(s, index_of(s, pairs[i].key));
    }
    gt_memo_free(wanted);
}

/* The buckets are emptied first, because a fork may come between. */
void gt_frames_forget(void)
{
    GT_ASSERT_DRAIN_SIDE();
    memset(symbols.first, 0, sizeof symbols.first);
    memset(symbols.bucket, 0, sizeof symbols.bucket);
    symbols.n = 0;
    gt_arena_free(&symbols.arena);
}
