/* See top_locks.h. */
#include "top_locks.h"

#include "call_places.h"
#include "nameless.h"
#include "reading.h"
#include "roles.h"
#include "select.h"
#include "table.h"
#include "top_waiting.h"
#include "whole.h"

#include "encoder/base/hash.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a holder of the lock did during the waits. Threads with equal names share one entry. */
struct doing {
    const char *name;                   /* the thread's, or what held the lock instead */
    const struct gt_thread_state *only; /* NULL: several threads have that name */
    const char *place;                  /* the function that locked; "": not known */
    const char *what;                   /* NULL: not known */
    enum gt_kind kind;
    const struct gt_where *site;
    const struct gt_callers *stack; /* the first stack of the place */
    uint64_t ns;
};

struct row {
    const struct gt_lock_state *lock;
    const char *what; /* with by_lock NULL: all places */
    const struct gt_where *site;
    const struct gt_callers *first, *stack; /* of the first wait, and of the longest */
    uint64_t ns, count, longest, threads;
    struct doing *doing;
    size_t n;
};

static struct {
    struct row *row;
    size_t n;
    struct gt_memo by_key, threads; /* threads: that are counted in a row */
    uint64_t ns, count;
    size_t now; /* the row of the current wait */
    struct gt_wholes wholes;
} all;

static uint64_t mix_site(uint64_t hash, const struct gt_where *site)
{
    if (!site)
        return hash;
    return gt_hash_mix(gt_hash_mix(gt_hash_mix(hash, (uintptr_t)site->func), (uintptr_t)site->file),
                       site->line);
}

/* Finds the row of the same lock, call and place, or makes it. */
static struct row *row_of(const struct row *like, uint64_t *key)
{
    uint64_t lock = gt_hash_mix(0, (uintptr_t)like->lock);
    *key = mix_site(gt_hash_mix(lock, (uintptr_t)like->what), like->site);
    uint64_t *slot = gt_need(gt_memo_at(&all.by_key, *key));
    if (!*slot) {
        *GT_ADD(all.row, all.n) = *like;
        *slot = all.n;
    }
    all.now = *slot - 1;
    return &all.row[all.now];
}

static struct row *row_of_wait(const struct gt_span *span, bool by_lock)
{
    uint64_t key;
    struct row *row = row_of(&(struct row){.lock = span->wanted->lock,
                                           .what = by_lock ? NULL : gt_leaf_of(span->stack),
                                           .site = by_lock ? NULL : gt_site_of(span->stack),
                                           .first = span->stack},
                             &key);
    uint64_t *seen = gt_need(gt_memo_at(&all.threads, gt_hash_mix(key, span->thread->g)));
    row->threads += !*seen;
    *seen = 1;
    return row;
}

/* What the holder did ------------------------------------------------------------------------- */

static void add_doing(const struct doing *d)
{
    struct row *row = &all.row[all.now];
    uint64_t key = gt_hash_mix(gt_hash_mix(gt_hash_mix(all.now, (uintptr_t)d->name), d->kind + 1),
                               (uintptr_t)d->place);
    uint64_t *slot =
        gt_need(gt_memo_at(&all.by_key, gt_hash_mix(mix_site(key, d->site), (uintptr_t)d->what)));
    if (!*slot) {
        *GT_ADD(row->doing, row->n) = *d;
        *slot = row->n;
        row->doing[*slot - 1].ns = 0;
    }
    struct doing *it = &row->doing[*slot - 1];
    it->ns += d->ns;
    it->only = it->only == d->only ? d->only : NULL;
}

static const char *name_of(const struct gt_thread_state *t)
{
    const char *name = gt_name_or_routine(t);
    return *name ? name : "(no name)";
}

static void add_past(void *arg, const struct gt_past *past)
{
    const struct gt_hold_state *hold = arg;
    bool runs = past->kind == GT_RUNNING || past->kind == GT_SCHED;
    add_doing(&(struct doing){.name = name_of(hold->thread),
                              .only = hold->thread,
                              .place = hold->place,
                              .what = runs ? "" : gt_leaf_of(past->stack),
                              .kind = past->kind,
                              .site = runs ? NULL : gt_site_of(past->stack),
                              .stack = runs ? NULL : past->stack,
                              .ns = past->to - past->from});
}

struct blame {
    const struct gt_span *span;
    uint64_t told; /* ns of the wait with a known holder */
};

static void add_holder(void *arg, const struct gt_hold_state *hold)
{
    struct blame *blame = arg;
    uint64_t ns = hold->to - hold->from;
    uint64_t known = gt_threads_doing(hold->thread, hold->from, hold->to, add_past, (void *)hold);
    blame->told += ns;
    if (known < ns)
        add_doing(&(struct doing){.name = name_of(hold->thread),
                                  .only = hold->thread,
                                  .place = hold->place,
                                  .ns = ns - known});
}

/*
 * A waiter was being woken; or another thread held the lock for a moment too short to be recorded.
 */
static const char changing_hands[] = "(changing hands)";

/*
 * Adds the thread that gave the lock up to the waiter, and where: it was the last holder. Of a lock
 * that changes hands all the time these threads are a sample of its holders.
 */
static void add_releaser(const struct gt_span *span)
{
    add_doing(&(struct doing){.name = name_of(span->by),
                              .only = span->by,
                              .place = "",
                              .what = gt_leaf_of(span->waker),
                              .kind = GT_RUNNING,
                              .site = gt_site_of(span->waker),
                              .stack = span->waker,
                              .ns = span->ns});
}

/* Whether only the thread that has the lock can end the wait. */
static bool has_one_holder(const struct gt_span *span)
{
    return gt_is_for_token(span) || gt_role_of(gt_leaf_of(span->stack)) == GT_ROLE_OTHER;
}

/*
 * Adds the part of a wait without a recorded hold. If no part has one, the holder at its begin
 * still held the lock all the time.
 */
static void add_rest(const struct gt_threads *threads, const struct blame *blame)
{
    const struct gt_span *span = blame->span;
    const struct gt_thread_state *holder = gt_threads_find(threads, span->wanted->holder);
    bool unknown = !blame->told && !*span->wanted->who;
    if (blame->told >= span->ns)
        return;
    if (holder && !blame->told)
        add_holder(&(struct blame){0},
                   &(struct gt_hold_state){holder, span->from, span->from + span->ns, "", false});
    else if (unknown && span->by && span->waker && has_one_holder(span))
        add_releaser(span);
    else
        add_doing(&(struct doing){.place = "",
                                  .name = blame->told ? changing_hands : span->wanted->who,
                                  .ns = span->ns - blame->told});
}

/* Whether the waiter waits for a signal or a post, which no thread holds. */
static bool is_of_nobody(const struct gt_span *span)
{
    enum gt_role role = gt_role_of(gt_leaf_of(span->stack));
    return role == GT_ROLE_CONDITION || (role == GT_ROLE_SEMAPHORE && !gt_is_for_token(span));
}

void gt_top_locks_add(const struct gt_threads *threads, const struct gt_span *span, bool by_lock)
{
    if (!span->wanted || !*span->wanted->lock->name || is_of_nobody(span))
        return;
    struct row *row = row_of_wait(span, by_lock);
    struct blame blame = {.span = span};
    struct gt_whole *wait = gt_whole_of(&all.wholes, span->thread);
    bool further = gt_whole_add(wait, span);
    row->ns += span->ns;
    row->count += !further;
    if (wait->span.ns >= row->longest) {
        row->longest = wait->span.ns;
        row->stack = span->stack;
    }
    all.ns += span->ns;
    all.count += !further;
    gt_locks_holders(span->wanted->lock, span->from, span->from + span->ns, add_holder, &blame);
    add_rest(threads, &blame);
}

/* Locks on files ------------------------------------------------------------------------------ */

/* The last call of each thread that may have waited for a lock on a file. */
static struct {
    struct gt_span *span;
    size_t n;
    struct gt_memo of; /* by thread */
} calls;

void gt_top_locks_note_call(const struct gt_span *span)
{
    static const char *const names[] = {"flock", "fcntl", "lockf", NULL};
    enum { LEAST_NS = 10000 }; /* a shorter call did not wait */
    const char *call = gt_leaf_of(span->stack);
    if (span->kind != GT_SYSCALL || span->ns < LEAST_NS || !gt_begins_with(call, names) ||
        strcmp(call, "flockfile") == 0)
        return;
    uint64_t *slot = gt_need(gt_memo_at(&calls.of, span->thread->g));
    if (!*slot) {
        (void)GT_ADD(calls.span, calls.n);
        *slot = calls.n;
    }
    calls.span[*slot - 1] = *span;
}

void gt_top_locks_note_hold(const struct gt_threads *threads, const struct gt_lock_state *lock,
                            const struct gt_hold_state *hold, bool by_lock)
{
    enum { TAKEN_NS = 50000 }; /* from the end of the call to the recorded hold, at most */
    uint64_t slot = gt_memo_find(&calls.of, hold->thread->g);
    struct gt_span *span = slot ? &calls.span[slot - 1] : NULL;
    uint64_t off = TAKEN_NS + gt_locks_slack(hold->to - hold->from);
    struct gt_wanted wanted = {.lock = (struct gt_lock_state *)lock, .who = ""};
    if (!span || !span->ns || !gt_lock_is_of_file(lock) || hold->from < span->from ||
        hold->from > span->from + span->ns + off)
        return;
    struct gt_span wait = *span;
    wait.wanted = &wanted;
    wait.ns = hold->from - span->from < span->ns ? hold->from - span->from : span->ns;
    gt_top_locks_add(threads, &wait, by_lock);
    span->ns = 0; /* one call takes one lock */
}

/* Makes rows of the locks whose waits all were too brief for an event. */
static void add_brief_locks(const struct gt_trace *trace)
{
    uint64_t key;
    for (size_t i = 0; i < trace->n_brief; i++)
        row_of(&(struct row){.lock = trace->brief[i].lock}, &key);
}

/* Printing ----------------------------------------------------------------------------------- */

GT_ORDER(by_ns, struct row, GT_DOWN(ns) ?: GT_DOWN(lock->brief_ns))

GT_ORDER(by_doing_ns, struct doing, GT_DOWN(ns))

/* What differs in nothing but the function that locked. */
GT_ORDER(by_deed, struct doing,
        gt_compare_pointers(x->name, y->name) ?: gt_compare_pointers(x->what, y->what) ?:
        gt_compare_sites(x->site, y->site) ?: (int)x->kind - (int)y->kind)

/* Known functions first. */
static int by_deed_and_place(const void *a, const void *b)
{
    const struct doing *x = a, *y = b;
    int order = by_deed(x, y);
    return order ? order : !*x->place - !*y->place;
}

/*
 * Of a lock that no thread had waited for yet, the function that locked is not known. What its
 * holder did in one call is added to what it did there when that function was known, if it was only
 * one. Computing is no place that tells which function locked.
 */
static void join_placeless(struct row *row)
{
    struct doing *it = row->doing;
    size_t n = 0;
    if (row->n)
        qsort(it, row->n, sizeof *it, by_deed_and_place);
    for (size_t i = 0; i < row->n; i++) {
        bool joins = n && it[i].site && !*it[i].place && by_deed(&it[n - 1], &it[i]) == 0 &&
                     !(n > 1 && *it[n - 1].place && by_deed(&it[n - 2], &it[i]) == 0);
        if (!joins) {
            it[n++] = it[i];
            continue;
        }
        it[n - 1].ns += it[i].ns;
        it[n - 1].only = it[n - 1].only == it[i].only ? it[i].only : NULL;
    }
    row->n = n;
}

static void print_words(const struct doing *d)
{
    if (d->only)
        gt_print_thread(d->only);
    else if (*d->name)
        gt_print_function(d->name);
    else
        printf("unknown holder (gotrace top --wakers: what ended the waits)");
    if (*d->place)
        printf(", by %s", d->place);
    if (!d->what)
        return;
    printf(": ");
    if (*d->what)
        gt_print_place(d->what, d->site);
    else
        printf("%s", d->kind == GT_RUNNING ? "running" : "runnable, on no CPU");
}

static void print_doing(const struct doing *d, uint64_t of)
{
    gt_row_begin();
    gt_cell_text(NULL, "", gt_width(10, 8), NULL);
    gt_cell_share("ns", "share", 6, d->ns, of);
    gt_cell_words("   ");
    gt_cell_text(NULL, "holder, by the function that locked: what it did", 0, NULL);
    if (gt_row_is_text())
        print_words(d);
    gt_cell_thread("thread", NULL, d->only);
    gt_cell_text("name", NULL, 0, d->name);
    gt_cell_text("taken_in", NULL, 0, d->place);
    gt_cell_text("state", NULL, 0, d->what ? gt_kind_names[d->kind] : NULL);
    gt_cell_its_place("at", NULL, d->stack);
    gt_row_end();
}

/* The line for the holders that the text leaves out. */
static void print_rest(uint64_t n, uint64_t ns, uint64_t of)
{
    char words[64];
    snprintf(words, sizeof words, "   (%" PRIu64 " more)", n);
    gt_row_begin();
    gt_cell_text(NULL, "", 10, NULL);
    gt_cell_share("ns", "of it", 6, ns, of);
    gt_cell_words(words);
    gt_row_end();
}

static void print_doings(struct row *row)
{
    enum { SHOWN = 3 }; /* in the text */
    uint64_t left = 0, left_ns = 0;
    join_placeless(row);
    if (row->n)
        qsort(row->doing, row->n, sizeof *row->doing, by_doing_ns);
    gt_table_begin("holders");
    for (size_t i = 0; i < row->n && row->ns; i++) {
        if (gt_report_json || (i < SHOWN && row->doing[i].ns * 100 >= row->ns)) {
            print_doing(&row->doing[i], row->ns);
            continue;
        }
        left++;
        left_ns += row->doing[i].ns;
    }
    if (left)
        print_rest(left, left_ns, row->ns);
    gt_table_end();
}

/*
 * A line, text only: the waits that were only counted, and are in no number of the row. Few of them
 * say nothing.
 */
static void print_briefs(const struct row *row)
{
    const struct gt_lock_state *lock = row->lock;
    char words[96];
    if (gt_report_json || !lock->briefs || lock->briefs * 10 < row->count || gt_select_any())
        return;
    snprintf(words, sizeof words, "%12s%s, %s in all, too brief for events", "",
             gt_count(lock->briefs, "more wait"), gt_duration(lock->brief_ns));
    gt_row_begin();
    gt_cell_words(words);
}

static void print_lock(const struct row *row)
{
    const struct gt_lock_state *lock = row->lock;
    bool is_named = strncmp(lock->name, "0x", 2) != 0;
    gt_cell_count("threads", "threads", 7, row->threads);
    gt_cell_count("holds", NULL, 0, lock->holds);
    gt_cell_ns("held_ns", "held", 9, lock->held_ns);
    gt_cell_ns("longest_held_ns", gt_head_if_room("longest held"), 12, lock->longest_ns);
    gt_cell_text("lock", "lock", 0, lock->name);
    if (!is_named)
        gt_cell_words(", first waited for by ");
    gt_cell_its_place("first_waiter", "", is_named ? NULL : row->first);
    gt_cell_count("briefs", NULL, 0, gt_select_any() ? 0 : lock->briefs);
    gt_cell_ns("brief_ns", NULL, 0, gt_select_any() ? 0 : lock->brief_ns);
}

static void print_row(struct row *row, bool by_lock)
{
    gt_row_begin();
    gt_cell_ns("total_ns", "waited", gt_width(10, 8), row->ns);
    gt_cell_share(NULL, "%", 6, row->ns, all.ns);
    gt_cell_count("count", "count", gt_width(9, 6), row->count);
    gt_cell_ns("average_ns", gt_head_if_room("average"), 9, row->count ? row->ns / row->count : 0);
    gt_cell_ns("longest_ns", gt_head_if_room("longest"), 9, row->longest);
    if (by_lock) {
        print_lock(row);
    } else {
        gt_cell_place("what <- where", row->stack);
        gt_cell_words(", ");
        gt_cell_text("lock", "lock", 0, row->lock->name);
    }
    if (by_lock)
        print_briefs(row);
    print_doings(row);
    gt_row_end();
}

static void print_heads(bool by_lock)
{
    struct gt_lock_state lock = {.name = ""};
    gt_head_begin();
    print_row(&(struct row){.lock = &lock, .count = 1}, by_lock);
    print_doing(&(struct doing){0}, 0);
    gt_head_end();
}

static void explain_nameless(const struct gt_threads *threads, size_t rows)
{
    struct gt_nameless these = {0};
    for (const struct row *row = all.row; row < all.row + rows; row++) {
        if (row->site)
            gt_nameless_add(&these, row->site->func, row->site->file, row->ns);
        for (const struct doing *d = row->doing; d < row->doing + row->n; d++)
            gt_nameless_add(&these, d->site ? d->site->func : d->place,
                            d->site ? d->site->file : "", d->ns);
    }
    if (gt_report_json)
        gt_nameless_json(&these);
    else
        gt_nameless_print(&these, "time above is in", threads->trace);
}

void gt_top_locks_print(const struct gt_threads *threads, bool by_lock, size_t most)
{
    size_t i;
    if (by_lock && !gt_select_any())
        add_brief_locks(threads->trace);
    gt_report_begin(threads);
    gt_report_title(threads);
    gt_report_words("%s for locks, %s in all\n", gt_count(all.count, "wait"), gt_duration(all.ns));
    gt_report_number("count", all.count);
    gt_report_number("total_ns", all.ns);
    if (all.n)
        qsort(all.row, all.n, sizeof *all.row, by_ns);
    gt_print_waiting(threads, 1u << GT_SYNC, most);
    print_heads(by_lock);
    gt_table_begin(by_lock ? "locks" : "waits");
    for (i = 0; i < all.n && i < most; i++)
        print_row(&all.row[i], by_lock);
    gt_table_end_cut(by_lock ? "locks" : "waits", all.n - i);
    explain_nameless(threads, i);
    gt_report_end();
}
