/* See contention.h. */
#include "contention.h"

#include "owner.h"
#include "registry.h"

#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/hash.h"
#include "encoder/base/log.h"
#include "encoder/base/path.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/file/frames.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/writer.h"
#include "preload/process/process_names.h"

#include <stdio.h>
#include <string.h>

/*
 * An entry for each lock and stack. Its first waiter claims the entry by storing the key, and fills
 * in the rest; `n` comes last. The entry keeps the PCs of its innermost frames itself: the stack
 * may be given back (era.h). Waits for which there is no entry are `left_out`.
 */
enum { PLACES = 256, PROBES = 8, FRAMES = 12 };
static struct place {
    _Atomic uint64_t key, units;
    _Atomic uint32_t n; /* frames; 0: the entry is being filled in */
    uint64_t all;       /* drain side: units, and the waits that have not ended */
    uint32_t sum;       /* drain side: where all is added to */
    uint32_t epoch;
    const void *lock;
    uint64_t pcs[FRAMES];
} places[PLACES] GT_SPARSE;

static _Atomic bool used;                /* there are entries; else their memory stays untouched */
static _Atomic uint64_t left_out, began; /* units; when the recording began */

/* Of the recording that ended last; the drain side's until then. */
static struct {
    uint64_t ns;
    char phrase[GT_CONTENTION_PHRASE];
} longest GT_SPARSE;

static void fill_in(struct place *p, const void *lock, const struct gt_stack *stack)
{
    uint32_t n = stack->n < FRAMES ? stack->n : FRAMES;
    memcpy(p->pcs, stack->pcs, n * sizeof *p->pcs);
    p->epoch = gt_stack_epoch(stack);
    p->lock = lock;
    atomic_store_explicit(&p->n, n, memory_order_release); /* pairs with add_up's acquire */
    atomic_store_explicit(&used, true, memory_order_relaxed);
}

static struct place *place_of(const void *lock, const struct gt_stack *stack)
{
    uint64_t key = gt_hash_mix(stack->hash, (uintptr_t)lock) | 1;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct place *p = &places[((key >> 32) + i) % PLACES];
        uint64_t its = atomic_load_explicit(&p->key, memory_order_relaxed);
        if (!its && atomic_compare_exchange_strong(&p->key, &its, key)) {
            fill_in(p, lock, stack);
            return p;
        }
        if (its == key)
            return p;
    }
    return NULL;
}

/* The part of a wait that is in the recording. */
static uint64_t units_of(uint64_t since, uint64_t until)
{
    uint64_t begin = atomic_load_explicit(&began, memory_order_relaxed);
    begin = since > begin ? since : begin;
    return until > begin ? until - begin : 0;
}

void gt_contention_add(const void *lock, const struct gt_stack *stack, uint64_t since,
                       uint64_t until)
{
    struct place *p = stack ? place_of(lock, stack) : NULL;
    atomic_fetch_add_explicit(p ? &p->units : &left_out, units_of(since, until),
                              memory_order_relaxed);
}

void gt_contention_begin(void)
{
    atomic_store(&began, gt_clock_now());
    if (!atomic_load(&used))
        return;
    longest.ns = 0;
    atomic_store(&left_out, 0);
    for (uint32_t i = 0; i < PLACES; i++)
        atomic_store_explicit(&places[i].units, 0, memory_order_relaxed);
}

static bool begins(const struct gt_named_frame *f, const char *path)
{
    return !strncmp(f->file->text, path, strlen(path));
}

/* A line of Python: of a file, or of "<string>". Not of Python's own library. */
static bool is_python(const struct gt_named_frame *f)
{
    enum { SUFFIX = 3 };
    uint32_t n = f->file->len;
    bool script = n > SUFFIX && !strcmp(f->file->text + n - SUFFIX, ".py");
    return f->line && (begins(f, "<") || (script && !begins(f, "/usr/lib/")));
}

/* Neither in a header of the system's nor in a library's source that a package has. */
static bool is_programs(const struct gt_named_frame *f)
{
    return f->line && f->file->len && !begins(f, "/usr/include/") && !begins(f, "/usr/lib/") &&
           !begins(f, "/rustc/");
}

/* The innermost of the n frames that is as wanted; NULL: there is none. */
static const struct gt_named_frame *innermost(struct gt_named_frame *const frames[], uint32_t n,
                                              bool (*is_wanted)(const struct gt_named_frame *))
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_wanted(frames[i]))
            return frames[i];
    }
    return NULL;
}

/* The innermost frame with a line of the program, which may be the interpreter's. */
static const struct gt_named_frame *frame_of(const struct place *p, uint32_t n)
{
    _Alignas(struct gt_stack) char memory[sizeof(struct gt_stack) + sizeof p->pcs];
    struct gt_named_frame *frames[GT_FRAMES_MAX];
    struct gt_stack *stack = (struct gt_stack *)memory;
    *stack = (struct gt_stack){.n = n, .epoch = p->epoch};
    memcpy(stack->pcs, p->pcs, n * sizeof *p->pcs);
    n = gt_frames_of(stack, frames);
    const struct gt_named_frame *in_python = innermost(frames, n, is_python);
    return in_python ? in_python : innermost(frames, n, is_programs);
}

/* The waits at one line: of many stacks, for one or more locks. Drain side. */
static struct sum {
    const struct gt_named_frame *at; /* NULL: a place without a name */
    uint64_t units;                  /* 0: the end of the sums */
} sums[PLACES + 1] GT_SPARSE;

static bool is_same_place(const struct gt_named_frame *a, const struct gt_named_frame *b)
{
    return a && b && a->line == b->line && a->func == b->func && a->file == b->file;
}

static void add_up(struct place *p)
{
    uint32_t n = atomic_load_explicit(&p->n, memory_order_acquire);
    p->all = n ? p->all : 0;
    const struct gt_named_frame *at = p->all ? frame_of(p, n) : NULL;
    struct sum *sum = sums;
    if (!p->all)
        return;
    while (sum->units && !is_same_place(sum->at, at))
        sum++;
    sum->at = at;
    sum->units += p->all;
    p->sum = (uint32_t)(sum - sums);
}

/* Drain side: when the recording ended, and what is left out of all waits. */
static uint64_t ended, not_placed;

/* The registry is locked: the waiter is still in its wait. */
static void add_unended(const struct gt_waiter *waiter)
{
    const struct gt_stack *stack = waiter->g->wait_stack;
    if (!gt_contention_counts(waiter->kind) || waiter->again)
        return;
    struct place *p = stack ? place_of(gt_lock_at(waiter->addr), stack) : NULL;
    *(p ? &p->all : &not_placed) += units_of(waiter->since, ended);
}

/* Units are read first: a wait that ends meanwhile is not counted twice. */
static void add_all(void)
{
    for (uint32_t i = 0; i < PLACES && atomic_load(&used); i++)
        places[i].all = atomic_load_explicit(&places[i].units, memory_order_relaxed);
    not_placed = atomic_load(&left_out);
    ended = gt_clock_now();
    gt_registry_each(add_unended);
}

enum { SMALL_PART = 20 }; /* a twentieth */

static bool is_of(const struct place *p, const struct sum *sum)
{
    return p->all && sums + p->sum == sum;
}

/* The lock with nearly all of the waits, as one of its places; NULL: there is none. */
static const struct place *lock_of(const struct sum *sum)
{
    for (const struct place *p = places; p < places + PLACES; p++) {
        uint64_t its = 0;
        for (const struct place *q = p; is_of(p, sum) && q < places + PLACES; q++)
            its += is_of(q, sum) && q->lock == p->lock ? q->all : 0;
        if (its > sum->units - sum->units / SMALL_PART)
            return p;
    }
    return NULL;
}

static const char *name_of(const struct sum *sum)
{
    const struct place *p = lock_of(sum);
    const char *name = p ? gt_names_lock((uintptr_t)p->lock, p->epoch, false) : "locks";
    return strncmp(name, "0x", 2) ? name : "a lock";
}

enum { NAME_TEXT = 64 };

/* Adds a name without what is in its brackets: "Pool<…>::commit(…)". */
static void add_folded(struct gt_strbuf *to, const char *name)
{
    static const char sign[] = "operator";
    unsigned depth = 0;
    for (const char *c = name; *c; c++) {
        size_t n = strncmp(c, sign, sizeof sign - 1) ? 0 : sizeof sign - 1;
        n += n ? strspn(c + n, "<>-=") : 0; /* operator<, operator->: no brackets */
        bool opens = !n && (*c == '<' || *c == '('), closes = !n && (*c == '>' || *c == ')');
        depth -= closes && depth;
        if (!depth)
            gt_strbuf_add_n(to, c, n ? n : 1);
        if (opens && !depth++ && c[1] != ')')
            gt_strbuf_add(to, "…");
        c += n ? n - 1 : 0;
    }
}

/* Makes a name short: without what is in its brackets, and then without its beginning. */
static const char *shorten(char to[NAME_TEXT], const char *name)
{
    char folded[512];
    struct gt_strbuf text = gt_strbuf_start(folded, sizeof folded);
    if (strlen(name) < NAME_TEXT)
        return name;
    add_folded(&text, name);
    const char *rest = folded;
    if (text.pos - folded >= NAME_TEXT)
        rest = text.pos - (NAME_TEXT - sizeof "…");
    while ((*rest & 0xc0) == 0x80) /* within a character */
        rest++;
    snprintf(to, NAME_TEXT, "%s%s", rest > folded ? "…" : "", rest);
    return to;
}

static void describe(const struct sum *sum)
{
    char lock[NAME_TEXT], func[NAME_TEXT], file[NAME_TEXT];
    longest.ns = (uint64_t)((double)sum->units * 1e9 / (double)gt_clock_hz());
    snprintf(longest.phrase, sizeof longest.phrase,
             "threads waited %.3f s in all for %s in %s (%s:%u)", (double)longest.ns / 1e9,
             shorten(lock, name_of(sum)), shorten(func, sum->at->func->text),
             shorten(file, gt_path_name(sum->at->file->text)), sum->at->line);
}

/* Nothing is said if the longest waits may be elsewhere: at a place without a name, or left out. */
void gt_contention_sum_up(void)
{
    GT_ASSERT_DRAIN_SIDE();
    struct sum *most = sums;
    if (gt_frames_named_later() || !gt_log_is_read())
        return;
    add_all();
    if (!atomic_load(&used))
        return;
    longest.ns = 0;
    memset(sums, 0, sizeof sums);
    for (uint32_t i = 0; i < PLACES; i++)
        add_up(&places[i]);
    for (struct sum *sum = sums; sum->units; sum++)
        most = sum->units > most->units ? sum : most;
    if (most->at && not_placed < most->units / SMALL_PART)
        describe(most);
}

const char *gt_contention_phrase(uint64_t recording_ns)
{
    return atomic_load(&used) && longest.ns && longest.ns >= recording_ns / SMALL_PART
               ? longest.phrase
               : "";
}
