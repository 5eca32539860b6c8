/* See top_locks.h. */
#include "top_locks.h"

#include "places.h"
#include "reading.h"
#include "roles.h"
#include "table.h"
#include "scripts/tool/tool.h"
#include "top_waiting.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one that held the lock did meanwhile: those of the same name are one. */
struct doing {
    const char *name;                   /* of the thread; or who held it instead */
    const struct gt_thread_state *only; /* NULL: several of that name */
    const char *place;                  /* that took the lock; "": not known */
    const char *what;                   /* NULL: nobody knows */
    enum gt_kind kind;
    const struct gt_where *site;
    const struct gt_callers *stack; /* the first one of that place */
    uint64_t ns;
};

struct row {
    const struct gt_lock_state *lock;
    const char *what; /* with the place NULL: of all places */
    const struct gt_where *site;
    const struct gt_callers *first, *stack; /* where somebody waited first; and longest */
    uint64_t ns, count, longest, threads;
    struct doing *doing;
    size_t n, room;
};

static struct {
    struct row *row;
    size_t n, room;
    struct gt_memo by_key, threads; /* threads: those that a row has */
    uint64_t ns, count;
    size_t now; /* the row that a wait goes to */
} all;

static uint64_t mix_site(uint64_t hash, const struct gt_where *site)
{
    if (!site)
        return hash;
    return gt_hash_mix(gt_hash_mix(gt_hash_mix(hash, (uintptr_t)site->func), (uintptr_t)site->file),
                       site->line);
}

static struct row *row_of(const struct gt_span *span, bool by_lock)
{
    const char *what = by_lock ? NULL : gt_leaf_of(span->stack);
    const struct gt_where *site = by_lock ? NULL : gt_site_of(span->stack);
    uint64_t lock = gt_hash_mix(0, (uintptr_t)span->wanted->lock);
    uint64_t key = mix_site(gt_hash_mix(lock, (uintptr_t)what), site);
    uint64_t *slot = gt_need(gt_memo_at(&all.by_key, key));
    if (!*slot) {
        all.row = gt_need_room(all.row, all.n, &all.room, sizeof *all.row);
        all.row[all.n] = (struct row){
            .lock = span->wanted->lock, .what = what, .site = site, .first = span->stack};
        *slot = ++all.n;
    }
    uint64_t *seen = gt_need(gt_memo_at(&all.threads, gt_hash_mix(key, span->thread->g)));
    all.row[*slot - 1].threads += !*seen;
    *seen = 1;
    all.now = *slot - 1;
    return &all.row[all.now];
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
        row->doing = gt_need_room(row->doing, row->n, &row->room, sizeof *row->doing);
        row->doing[row->n] = *d;
        row->doing[row->n].ns = 0;
        *slot = ++row->n;
    }
    struct doing *it = &row->doing[*slot - 1];
    it->ns += d->ns;
    it->only = it->only == d->only ? d->only : NULL;
}

static const char *name_of(const struct gt_thread_state *t)
{
    return *t->name ? t->name : *t->routine ? t->routine : "(no name)";
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
    uint64_t told; /* ns of it of which is known who held the lock */
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

/* Those who wait were being woken; or others took it first, for a moment that is not told. */
static const char changing_hands[] = "(changing hands)";

/* What of a wait is in no hold that is told: all of it, if who had it then has it still. */
static void add_rest(const struct gt_threads *threads, const struct blame *blame)
{
    const struct gt_span *span = blame->span;
    const struct gt_thread_state *holder = gt_threads_find(threads, span->wanted->holder);
    if (blame->told >= span->ns)
        return;
    if (holder && !blame->told)
        add_holder(&(struct blame){0},
                   &(struct gt_hold_state){holder, span->from, span->from + span->ns, "", false});
    else
        add_doing(&(struct doing){.place = "",
                                  .name = blame->told ? changing_hands : span->wanted->who,
                                  .ns = span->ns - blame->told});
}

/* Who waits for a signal or a post waits for what nobody holds. */
static bool is_of_nobody(const char *leaf)
{
    enum gt_role role = gt_role_of(leaf);
    return role == GT_ROLE_CONDITION || role == GT_ROLE_SEMAPHORE;
}

void gt_top_locks_add(const struct gt_threads *threads, const struct gt_span *span, bool by_lock)
{
    if (!span->wanted || !*span->wanted->lock->name || is_of_nobody(gt_leaf_of(span->stack)))
        return;
    struct row *row = row_of(span, by_lock);
    struct blame blame = {.span = span};
    row->ns += span->ns;
    row->count++;
    if (span->ns >= row->longest) {
        row->longest = span->ns;
        row->stack = span->stack;
    }
    all.ns += span->ns;
    all.count++;
    gt_locks_holders(span->wanted->lock, span->from, span->from + span->ns, add_holder, &blame);
    add_rest(threads, &blame);
}

/* Printing ----------------------------------------------------------------------------------- */

static int by_ns(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static int by_doing_ns(const void *a, const void *b)
{
    const struct doing *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static void print_words(const struct doing *d)
{
    if (d->only)
        gt_print_thread(d->only);
    else if (*d->name)
        gt_print_function(d->name);
    else
        printf("nobody that is known: see top --wakers for who ended it");
    if (*d->place)
        printf(", by %s", d->place);
    if (!d->what)
        return;
    printf(": ");
    if (*d->what)
        gt_print_place(d->what, d->site);
    else
        printf("%s", d->kind == GT_RUNNING ? "running" : "could run, and had no CPU");
}

static void print_doing(const struct doing *d, uint64_t of)
{
    gt_row_begin();
    gt_cell_text(NULL, "", 10, NULL);
    gt_cell_share("ns", "of it", 6, d->ns, of);
    gt_cell_words("   ");
    gt_cell_text(NULL, "who held it, by which function: doing what", 0, NULL);
    if (gt_row_is_text())
        print_words(d);
    gt_cell_thread("thread", NULL, d->only);
    gt_cell_text("name", NULL, 0, d->name);
    gt_cell_text("taken_in", NULL, 0, d->place);
    gt_cell_text("state", NULL, 0, d->what ? gt_kind_names[d->kind] : NULL);
    gt_cell_its_place("at", NULL, d->stack);
    gt_row_end();
}

static void print_doings(struct row *row)
{
    enum { SHOWN = 3 }; /* in the text */
    if (row->n)
        qsort(row->doing, row->n, sizeof *row->doing, by_doing_ns);
    gt_table_begin("holders");
    for (size_t i = 0; i < row->n && row->ns; i++) {
        if (gt_report_json || (i < SHOWN && row->doing[i].ns * 100 >= row->ns))
            print_doing(&row->doing[i], row->ns);
    }
    gt_table_end();
}

static void print_lock(const struct row *row)
{
    const struct gt_lock_state *lock = row->lock;
    bool is_named = strncmp(lock->name, "0x", 2) != 0;
    gt_cell_count("threads", "threads", 7, row->threads);
    gt_cell_count("holds", NULL, 0, lock->holds);
    gt_cell_ns("held_ns", "held", 9, lock->held_ns);
    gt_cell_ns("longest_held_ns", "longest", 9, lock->longest_ns);
    gt_cell_text("lock", "lock", 0, lock->name);
    if (!is_named)
        gt_cell_words(", first waited for by ");
    gt_cell_its_place("first_waiter", "", is_named ? NULL : row->first);
}

static void print_row(struct row *row, bool by_lock)
{
    gt_row_begin();
    gt_cell_ns("total_ns", "waited", 10, row->ns);
    gt_cell_share(NULL, "%", 6, row->ns, all.ns);
    gt_cell_count("count", "count", 9, row->count);
    gt_cell_ns("average_ns", "average", 9, row->ns / row->count);
    gt_cell_ns("longest_ns", "longest", 9, row->longest);
    if (by_lock) {
        print_lock(row);
    } else {
        gt_cell_place("what <- where", row->stack);
        gt_cell_words(", ");
        gt_cell_text("lock", "lock", 0, row->lock->name);
    }
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

void gt_top_locks_print(const struct gt_threads *threads, bool by_lock, size_t most)
{
    size_t i;
    gt_report_begin(threads);
    gt_report_title(threads);
    gt_report_words("%" PRIu64 " waits for locks, %s in all\n", all.count, gt_duration(all.ns));
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
    gt_report_end();
}
