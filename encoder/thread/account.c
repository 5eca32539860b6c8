/* See account.h. */
#include "account.h"

#include "writer.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/push.h"

#include <string.h>

/* A thread's account; reused for another thread. */
struct gt_account {
    struct gt_free free;
    struct gt_account *next;
    /*
     * The goroutine, with ENDED once its thread has ended; 0: the account is free. The owner writes
     * it until the end, then the drain side does. By it the drain side knows that all that it has
     * read belongs to one thread.
     */
    _Atomic uint64_t g;
    _Atomic uint64_t begin; /* trace time */
    _Atomic uint32_t tid, p;
    _Atomic(struct gt_writer *) writer;
    /* What the thread had used at `begin`. */
    _Atomic unsigned known;
    _Atomic uint64_t before[GT_USED_NUMBERS];
    _Atomic uint64_t moved; /* when it left the generation before */
    uint64_t end;           /* valid with ENDED, like the next two */
    uint32_t end_gen;       /* in which the thread has ended */
    struct gt_usage last;
    /* The drain side's: the numbers that the trace has already, their goroutine and time. */
    struct {
        uint32_t recording;
        uint64_t g, at;
        struct gt_usage usage;
        bool behind; /* the switches were left out */
    } told;
    uint64_t seen; /* the goroutine that gt_account_each_new has shown */
};

#define ENDED (UINT64_C(1) << 63)

/* As many as threads can be in the trace at a time, with those that the drain side has to read. */
enum { ACCOUNTS_MAX = 1 << 16 };

static struct {
    gt_usage_fn *read;
    gt_halts_fn *halts;
    bool (*threaded)(void);
    const struct gt_account_cpus *cpus; /* NULL: no one listens */
    struct gt_arena arena;
    struct gt_freelist free;
    _Atomic(struct gt_account *) all; /* push only */
    _Atomic uint32_t n;
    _Atomic bool missed; /* a thread got no account; whether it still lives is not known */
    _Atomic bool ending; /* the last look of a recording is due */
} accounts;

void gt_account_init(gt_usage_fn *read, gt_halts_fn *halts, bool (*threaded)(void))
{
    accounts.read = read;
    accounts.halts = halts;
    accounts.threaded = threaded;
}

void gt_account_set_cpus(const struct gt_account_cpus *cpus)
{
    accounts.cpus = cpus;
}

static uint32_t cpus(void)
{
    return accounts.cpus ? accounts.cpus->count() : 0;
}

/* The owner ---------------------------------------------------------------------------------- */

static struct gt_account *make(void)
{
    if (atomic_fetch_add(&accounts.n, 1) >= ACCOUNTS_MAX) {
        atomic_fetch_sub(&accounts.n, 1);
        return NULL;
    }
    struct gt_account *a = gt_arena_alloc(&accounts.arena, sizeof *a);
    if (!a) {
        atomic_fetch_sub(&accounts.n, 1);
        return NULL;
    }
    GT_PUSH(&accounts.all, a, &a->next);
    return a;
}

static struct gt_usage used_before(const struct gt_writer *w, enum gt_account_begin how)
{
    struct gt_usage usage = {.known = how == GT_ACCOUNT_BORN ? GT_KNOWN_ALL : 0};
    if (gt_gen_is_mute(gt_writer_gen(w)))
        return usage; /* the drain side looks when a recording begins */
    if (how == GT_ACCOUNT_MET)
        accounts.read(0, GT_KNOWN_CPU | GT_KNOWN_SWITCHES, &usage);
    else if (how == GT_ACCOUNT_ALONE)
        accounts.read(w->m, GT_KNOWN_ALL, &usage);
    return usage;
}

void gt_account_begin(struct gt_writer *w, enum gt_account_begin how)
{
    if (!accounts.read)
        return;
    struct gt_account *a = gt_freelist_pop(&accounts.free);
    a = a ? a : make();
    w->account = a;
    if (!a) {
        atomic_store_explicit(&accounts.missed, true, memory_order_relaxed);
        return;
    }
    struct gt_usage before = used_before(w, how);
    atomic_thread_fence(memory_order_release); /* pairs with is_still's: g is 0 before */
    atomic_store_explicit(&a->tid, w->m, memory_order_relaxed);
    atomic_store_explicit(&a->p, w->p->id, memory_order_relaxed);
    atomic_store_explicit(&a->writer, w, memory_order_relaxed);
    atomic_store_explicit(&a->begin, w->last, memory_order_relaxed);
    atomic_store_explicit(&a->moved, 0, memory_order_relaxed);
    atomic_store_explicit(&a->known, before.known, memory_order_relaxed);
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        atomic_store_explicit(&a->before[i], before.of[i], memory_order_relaxed);
    atomic_store_explicit(&a->g, w->g.id, memory_order_release);
}

static void give_back(struct gt_account *a)
{
    atomic_store_explicit(&a->g, 0, memory_order_relaxed);
    gt_freelist_push(&accounts.free, &a->free);
}

void gt_account_end(struct gt_writer *w)
{
    struct gt_account *a = w->account;
    w->account = NULL;
    if (!a || atomic_load_explicit(&a->g, memory_order_relaxed) != w->g.id)
        return; /* the drain side took the thread for one that had ended */
    if (gt_gen_is_mute(gt_writer_gen(w)) && !atomic_load(&accounts.ending)) {
        give_back(a);
        return;
    }
    accounts.read(0, GT_KNOWN_CPU | GT_KNOWN_SWITCHES, &a->last);
    a->end = gt_clock_now();
    a->end_gen = gt_writer_gen(w);
    atomic_store_explicit(&a->g, w->g.id | ENDED, memory_order_release);
}

void gt_account_move(struct gt_writer *w)
{
    if (w->account)
        atomic_store_explicit(&w->account->moved, gt_clock_now(), memory_order_relaxed);
}

/* The drain side ----------------------------------------------------------------------------- */

/*
 * What reading costs (open, read and close of each file), in looks at a thread's clock, each some
 * 0.4 us. A second's budget is 0.1 % of a CPU, enough for 120 running threads. At a recording's two
 * ends no thread can be left for another time: there the budget is 0.1 s, enough for 3,600 threads.
 * Of further threads only the clock is read.
 */
enum {
    COST_CLOCK = 1,
    COST_QUEUE = 16,
    COST_SWITCHES = 56,
    COSTS_IN_A_SECOND = 2048,
    COSTS_AT_THE_ENDS = 256 << 10,
    SWITCHES_IN_A_SECOND = 8, /* threads, if the budget is too small for all */
};

static struct {
    uint32_t recording, round; /* of this recording, and of collections in it */
    uint64_t begin;            /* trace time */
    uint64_t cpu;              /* of our own thread, in the trace already */
    struct gt_halts_count had; /* in the trace already */
    uint64_t late_ns;          /* not in the trace yet */
    uint64_t last_ns;          /* of the last collection */
    struct gt_account *turn;   /* where the next one begins */
    uint32_t live;             /* threads that the last collection met */
    /* Of the collection under way: */
    uint64_t since; /* trace time */
    int64_t costs;
    bool all, last;  /* see gt_account_collect; all: the first one, too */
    bool incomplete; /* a thread was not looked at */
    unsigned stride; /* switches are read for one of so many threads */
    uint32_t gen;
    struct gt_buf *buf;
    uint8_t text[GT_STRING_MAX];
    uint32_t used; /* of text */
} side;

enum { HEAD = sizeof GT_ACCOUNT - 1 };
enum { NO_M = 0 }; /* texts of the program have a thread */

/* Rows --------------------------------------------------------------------------------------- */

static bool has_room(uint32_t text)
{
    return side.buf && GT_BUF_ROOM - side.buf->used >= 1 + 2 * GT_VARINT_MAX + text;
}

static void push(void)
{
    if (side.buf)
        gt_buffers_push(side.buf);
    side.buf = NULL;
}

static void refresh(void)
{
    push();
    side.buf = gt_buffers_get(true);
    if (side.buf)
        gt_texts_begin(side.buf, side.gen, NO_M, gt_clock_now());
}

static void end_text(void)
{
    if (side.used > HEAD) {
        if (!has_room(side.used))
            refresh();
        if (side.buf)
            gt_texts_append(side.buf, (const char *)side.text, side.used);
    }
    memcpy(side.text, GT_ACCOUNT, HEAD);
    side.used = HEAD;
}

static void put(const struct gt_account_row *row)
{
    if (side.used + GT_ACCOUNT_ROW_MAX > sizeof side.text)
        end_text();
    side.used = (uint32_t)(gt_account_row_put(side.text + side.used, row) - side.text);
}

void gt_account_each(const struct gt_buf *bufs, gt_text_fn *fn)
{
    for (; bufs; bufs = bufs->next) {
        if (gt_texts_in(bufs) && bufs->m == NO_M)
            gt_texts_of(bufs, fn, NULL);
    }
}

/* What the trace has ------------------------------------------------------------------------- */

/* A count's growth. The kernel's counts do not go back; clocks of several CPUs may, by a little. */
static uint64_t more(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static bool is_told(const struct gt_account *a, uint64_t g)
{
    return a->told.recording == side.recording && a->told.g == g;
}

/*
 * Begins the rows of g. The rows of a thread that existed before the recording begin with the
 * recording, and its numbers at that time are not known.
 */
static void begin_telling(struct gt_account *a, uint64_t g)
{
    uint64_t begin = atomic_load_explicit(&a->begin, memory_order_relaxed);
    bool later = begin >= side.begin;
    if (is_told(a, g))
        return;
    a->told.recording = side.recording;
    a->told.g = g;
    a->told.at = later ? begin : side.begin;
    a->told.behind = false;
    a->told.usage.known = later ? atomic_load_explicit(&a->known, memory_order_relaxed) : 0;
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        a->told.usage.of[i] = atomic_load_explicit(&a->before[i], memory_order_relaxed);
}

static void tell(struct gt_account *a, uint64_t at, const struct gt_usage *now)
{
    struct gt_usage *told = &a->told.usage, used = {.known = told->known & now->known};
    used.known |= now->known & GT_KNOWN_RUNS;
    uint64_t any = 0;
    for (int i = 0; i < GT_USED_NUMBERS; i++) {
        if (used.known & gt_used_bit(i))
            any |= used.of[i] = more(now->of[i], told->of[i]);
        if (now->known & gt_used_bit(i))
            told->of[i] = now->of[i];
    }
    told->known |= now->known & GT_KNOWN_ALL;
    if (any)
        put(&(struct gt_account_row){
            .g = a->told.g, .at = at, .length = more(at, a->told.at), .used = used});
    a->told.at = at;
}

/* Reading ------------------------------------------------------------------------------------ */

/* Says that the goroutine's use from here on is not known. */
static void put_no_more(uint64_t g, uint64_t at)
{
    put(&(struct gt_account_row){.g = g, .at = at, .used.known = GT_KNOWN_NO_MORE});
}

/* See gt_account_birth. */
static bool birth_of(const struct gt_account *a, uint64_t *at, uint64_t *cpu_ns)
{
    *at = atomic_load_explicit(&a->begin, memory_order_relaxed);
    *cpu_ns = atomic_load_explicit(&a->before[GT_USED_CPU], memory_order_relaxed);
    bool known = atomic_load_explicit(&a->known, memory_order_relaxed) & GT_KNOWN_CPU;
    return known && *at >= side.begin;
}

static void tell_cpus_of_end(const struct gt_account *a, uint64_t g)
{
    uint64_t birth, used;
    if (accounts.cpus && birth_of(a, &birth, &used) && (a->last.known & GT_KNOWN_CPU))
        accounts.cpus->ended(atomic_load_explicit(&a->tid, memory_order_relaxed), g, birth, a->end,
                             more(a->last.of[GT_USED_CPU], used));
}

static void end(struct gt_account *a, uint64_t g)
{
    tell_cpus_of_end(a, g);
    begin_telling(a, g);
    tell(a, a->end, &a->last);
    if (!(a->last.known & GT_KNOWN_CPU))
        put_no_more(g, a->end);
    give_back(a);
}

/* Whether the account is still g's: then all that was read before this belongs to one thread. */
static bool is_still(const struct gt_account *a, uint64_t g)
{
    atomic_thread_fence(memory_order_acquire); /* pairs with gt_account_begin's */
    return atomic_load_explicit(&a->g, memory_order_relaxed) == g;
}

/*
 * Reads what a thread has used. A clock that has not moved says that the thread has not run, so
 * that no other number has changed. When the budget is spent, only the clock is read.
 */
static bool read_usage(const struct gt_account *a, uint64_t g, uint32_t tid, struct gt_usage *usage)
{
    bool told = is_told(a, g), dear = side.costs > 0;
    side.costs -= COST_CLOCK;
    if ((told || !dear) && !accounts.read(tid, GT_KNOWN_CPU, usage))
        return false;
    bool ran = !usage->known || usage->of[GT_USED_CPU] != a->told.usage.of[GT_USED_CPU];
    if (!dear || (told && !ran && !(side.all && a->told.behind)))
        return true;
    bool switches = (side.live + side.round) % side.stride == 0;
    side.costs -= COST_QUEUE + (switches ? COST_SWITCHES : 0);
    return accounts.read(tid, GT_KNOWN_CPU | GT_KNOWN_QUEUE | (switches ? GT_KNOWN_SWITCHES : 0),
                         usage);
}

static void take(struct gt_account *a, uint64_t g, uint64_t at, const struct gt_usage *usage)
{
    begin_telling(a, g);
    if (!(usage->known & GT_KNOWN_CPU)) { /* the kernel does not tell, or not now */
        side.incomplete = true;
        return;
    }
    if (usage->known & (GT_KNOWN_QUEUE | GT_KNOWN_SWITCHES))
        a->told.behind = !(usage->known & GT_KNOWN_SWITCHES);
    if (is_still(a, g))
        tell(a, at, usage);
}

static void look_at_live(struct gt_account *a, uint64_t g)
{
    struct gt_usage usage = {0};
    uint32_t tid = atomic_load_explicit(&a->tid, memory_order_relaxed);
    if (!is_still(a, g))
        return;
    bool exists = read_usage(a, g, tid, &usage);
    uint64_t at = gt_clock_now();
    if (!is_still(a, g)) /* the thread has ended, and its own numbers say more */
        return;
    if (exists) {
        take(a, g, at, &usage);
    } else { /* it has ended by the bare system call */
        put_no_more(g, at);
        give_back(a);
    }
}

static void look_at(struct gt_account *a)
{
    uint64_t g = atomic_load_explicit(&a->g, memory_order_acquire); /* pairs with its owner's */
    if (g & ENDED) {
        if (side.last || a->end_gen <= side.gen)
            end(a, g & ~ENDED);
        return;
    }
    if (!g)
        return;
    side.live++;
    if (side.costs > 0 || side.all)
        look_at_live(a, g);
    else if (!side.turn)
        side.turn = a;
}

/* The CPU time of the drain side, where it is a thread of its own. */
static uint64_t own_cpu(void)
{
    struct gt_usage usage = {0};
    if (accounts.read && accounts.threaded())
        accounts.read(0, GT_KNOWN_CPU, &usage);
    return usage.of[GT_USED_CPU];
}

void gt_account_note_late(uint64_t ns)
{
    enum { LEAST_NS = 100000000 }; /* as no wake-up on a busy machine is */
    side.late_ns += ns >= LEAST_NS ? ns : 0;
}

/*
 * What kept the process from running since the last call. Our thread is late, too, when it waits
 * for a CPU, which the kernel counts apart. A stopped or frozen thread is in no run queue.
 */
static struct gt_halts halts_since(void)
{
    struct gt_halts_count now = {0}, had = side.had;
    if (accounts.halts && accounts.threaded())
        accounts.halts(&now);
    bool same = now.group == had.group;
    uint64_t late = more(side.late_ns, more(now.queue_ns, had.queue_ns));
    side.had = now;
    side.late_ns = 0;
    return (struct gt_halts){
        .throttled = same ? more(now.throttled, had.throttled) : 0,
        .throttled_ns = same ? more(now.throttled_ns, had.throttled_ns) : 0,
        .stopped_ns = late,
    };
}

/* Says that all threads were looked at. The trace of an idle program does not grow for that. */
static void put_own(void)
{
    struct gt_usage used = {.known = GT_KNOWN_CPU | (cpus() ? GT_KNOWN_CPUS : 0)};
    if (side.turn || side.incomplete || atomic_load(&accounts.missed) ||
        !(side.all || side.buf || side.used > HEAD || side.late_ns))
        return;
    struct gt_halts halts = halts_since();
    used.known |= halts.throttled || halts.throttled_ns || halts.stopped_ns ? GT_KNOWN_HALTS : 0;
    uint64_t at = gt_clock_now(), cpu = own_cpu();
    used.of[GT_USED_CPU] = more(cpu, side.cpu);
    side.cpu = cpu;
    put(&(struct gt_account_row){
        .at = at, .length = more(at, side.since), .used = used, .cpus = cpus(), .halts = halts});
}

void gt_account_open(void)
{
    GT_ASSERT_DRAIN_SIDE();
    side.recording++;
    side.round = 0;
    side.begin = gt_clock_now();
    side.turn = NULL;
    side.cpu = own_cpu();
    halts_since();
}

static void begin_round(uint32_t gen, enum gt_account_look look)
{
    const uint64_t second = 1000000000;
    uint64_t now = gt_clock_monotonic_raw(), ns = now - side.last_ns;
    ns = ns < second ? ns : second;
    bool all = look != GT_ACCOUNT_TURNS || side.round == 0;
    side.last = look == GT_ACCOUNT_LAST;
    side.round++;
    side.last_ns = now;
    side.gen = gen;
    side.all = all;
    side.incomplete = false;
    side.since = gt_clock_now();
    side.costs = all ? COSTS_AT_THE_ENDS : (int64_t)(COSTS_IN_A_SECOND * ns / second) + 1;
    bool enough = side.costs > (int64_t)side.live * (COST_CLOCK + COST_QUEUE + COST_SWITCHES);
    side.stride =
        all || enough ? 1 : (uint32_t)(side.live * second / (SWITCHES_IN_A_SECOND * ns + 1)) + 1;
    side.live = 0;
}

void gt_account_collect(uint32_t gen, enum gt_account_look look)
{
    GT_ASSERT_DRAIN_SIDE();
    struct gt_account *head = atomic_load_explicit(&accounts.all, memory_order_acquire);
    struct gt_account *first = side.turn ? side.turn : head, *a = first;
    if (!head)
        return;
    begin_round(gen, look);
    side.turn = NULL;
    end_text();
    do {
        look_at(a);
        a = a->next ? a->next : head;
    } while (a != first);
    put_own();
    end_text();
    push();
    atomic_store(&accounts.ending, false);
}

void gt_account_expect_last(void)
{
    atomic_store(&accounts.ending, true);
}

/* Threads, for a watcher ----------------------------------------------------------------------- */

void gt_account_each_new(void (*fn)(const struct gt_thread_view *thread))
{
    struct gt_account *a = atomic_load_explicit(&accounts.all, memory_order_acquire);
    for (; a; a = a->next) {
        uint64_t g = atomic_load_explicit(&a->g, memory_order_acquire);
        struct gt_thread_view view = {a, atomic_load_explicit(&a->writer, memory_order_relaxed), g,
                                      atomic_load_explicit(&a->tid, memory_order_relaxed),
                                      atomic_load_explicit(&a->p, memory_order_relaxed)};
        if (!g || (g & ENDED) || a->seen == g || !is_still(a, g))
            continue;
        a->seen = g;
        fn(&view);
    }
}

bool gt_account_birth(const struct gt_thread_view *thread, uint64_t *at, uint64_t *cpu_ns)
{
    return birth_of(thread->account, at, cpu_ns) && is_still(thread->account, thread->g);
}

void gt_account_forget_seen(void)
{
    for (struct gt_account *a = atomic_load(&accounts.all); a; a = a->next)
        a->seen = 0;
}

bool gt_account_is_over(const struct gt_thread_view *thread)
{
    return atomic_load_explicit(&thread->account->g, memory_order_acquire) != thread->g;
}

uint64_t gt_account_stream_end(const struct gt_thread_view *thread)
{
    const struct gt_account *a = thread->account;
    uint64_t moved = atomic_load_explicit(&a->moved, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    uint64_t g = atomic_load_explicit(&a->g, memory_order_relaxed);
    return (g & ~ENDED) == thread->g ? moved : UINT64_MAX;
}

/* The parent's accounts stay where they are: touching them would copy them. */
void gt_account_after_fork(void)
{
    uint32_t recording = side.recording;
    memset(&side, 0, sizeof side); /* its buffer is the parent's */
    side.recording = recording;
    accounts.free = (struct gt_freelist){0};
    accounts.arena = (struct gt_arena){.chunk = NULL};
    atomic_store(&accounts.all, NULL);
    atomic_store(&accounts.n, 0);
    atomic_store(&accounts.missed, false);
    atomic_store(&accounts.ending, false);
}
