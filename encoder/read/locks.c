/* See locks.h. */
#include "locks.h"

#include "need.h"

#include "encoder/base/path.h"
#include "encoder/format/lock_texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDS_KEPT = 256 };

static const char held[] = "held ", held_by[] = "held by", waits_for[] = "waits for",
                  waits_again[] = GT_WAITS_AGAIN_TEXT;

/* A text that is the whole log is interned: its address is looked up first. */
static struct gt_lock_state *lock_of(struct gt_locks *locks, const char *name, size_t len)
{
    uint64_t known = gt_memo_find(&locks->by_name, (uintptr_t)name);
    if (known && !name[len])
        return (void *)(uintptr_t)known;
    name = gt_contents_text(locks->contents, name, len);
    uint64_t *slot = gt_need(gt_memo_at(&locks->by_name, (uintptr_t)name));
    if (!*slot) {
        struct gt_lock_state *fresh = gt_need(calloc(1, sizeof *fresh));
        fresh->name = name;
        *slot = (uintptr_t)fresh;
    }
    return (void *)(uintptr_t)*slot;
}

/* In a merge the process stands before the name. */
bool gt_lock_is_gil(const struct gt_lock_state *lock)
{
    const char *name = gt_path_name(lock->name);
    size_t n = strlen(GT_GIL);
    return strncmp(name, GT_GIL, n) == 0 && (!name[n] || name[n] == ' ');
}

/* A merge of hosts has the process before the name. */
bool gt_lock_is_of_file(const struct gt_lock_state *lock)
{
    return strstr(lock->name, GT_FLOCK "/") || strstr(lock->name, GT_FCNTL "/");
}

/* "G7 committer, cache_lock", "readers, cache_lock" or "thread 123, cache_lock". */
static bool read_held_by(struct gt_locks *locks, const char *message, struct gt_wanted *wanted)
{
    const char *comma = strstr(message, ", ");
    if (!comma)
        return false;
    wanted->holder = *message == 'G' ? strtoull(message + 1, NULL, 10) : 0;
    wanted->who = gt_contents_text(locks->contents, message, (size_t)(comma - message));
    wanted->lock = lock_of(locks, comma + 2, strlen(comma + 2));
    wanted->kept = false;
    return true;
}

bool gt_locks_read_wanted(struct gt_locks *locks, const char *category, const char *message,
                          struct gt_wanted *wanted)
{
    if (strcmp(category, held_by) == 0)
        return read_held_by(locks, message, wanted);
    bool kept = strcmp(category, waits_again) == 0;
    if (!kept && strcmp(category, waits_for) != 0)
        return false;
    *wanted = (struct gt_wanted){
        .who = "", .lock = lock_of(locks, message, strlen(message)), .kept = kept};
    return true;
}

/* Reads n numbers, each with a space behind it. Returns the rest of the text, or NULL. */
static const char *read_numbers(const char *text, const char *begin, uint64_t *number, int n)
{
    char *end = (char *)text + strlen(begin);
    if (strncmp(text, begin, strlen(begin)) != 0)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (*end < '0' || *end > '9')
            return NULL;
        number[i] = strtoull(end, &end, 10);
        if (*end++ != ' ')
            return NULL;
    }
    return end;
}

bool gt_signals_read(const char *text, struct gt_signals_row *row)
{
    uint64_t number[2];
    const char *how = read_numbers(text, GT_SIGNALS, number, 2);
    const char *end = how ? strstr(how, "), ") : NULL;
    if (!end)
        return false;
    int length = (int)(end + 1 - how);
    if (length > 3 && memcmp(end - 2, " ()", 3) == 0) /* no file is known */
        length -= 3;
    *row = (struct gt_signals_row){number[0], number[1], how, length, end + 3};
    return true;
}

bool gt_brief_read(const char *text, struct gt_brief_row *row)
{
    uint64_t number[2] = {0};
    const char *name = read_numbers(text, GT_BRIEF, number, 2);
    *row = (struct gt_brief_row){number[0], number[1], name, NULL};
    return name;
}

void gt_locks_note_brief(struct gt_locks *locks, struct gt_brief_row *row)
{
    row->lock = lock_of(locks, row->name, strlen(row->name));
    row->lock->briefs += row->n;
    row->lock->brief_ns += row->ns;
}

bool gt_exec_read(const char *text, uint64_t *thread)
{
    return read_numbers(text, GT_EXEC, thread, 1);
}

bool gt_blocked_read(const char *text, struct gt_blocked_row *row)
{
    uint64_t number[5];
    const char *name = read_numbers(text, GT_BLOCKED, number, 5);
    if (!name)
        return false;
    *row = (struct gt_blocked_row){.g = number[0],
                                   .holder = number[1],
                                   .thread = number[2],
                                   .timed = number[3] & 1,
                                   .gone = number[3] & 2,
                                   .again = number[3] & 4,
                                   .endless = number[3] & 8,
                                   .since = number[4],
                                   .name = name};
    return true;
}

struct gt_wanted gt_locks_wanted_at_end(struct gt_locks *locks, const struct gt_blocked_row *row)
{
    char who[64] = "";
    if (row->thread == GT_HOLDER_READERS)
        snprintf(who, sizeof who, "readers");
    else if (row->thread)
        snprintf(who, sizeof who, "thread %" PRIu64 "%s", row->thread,
                 row->gone ? ", which has ended" : "");
    return (struct gt_wanted){.lock = lock_of(locks, row->name, strlen(row->name)),
                              .holder = row->holder,
                              .who = gt_contents_text(locks->contents, who, strlen(who))};
}

/* Reads a time such as "31.25ms", whatever follows; 0: the text does not begin with a time. */
static uint64_t read_time(const char *text)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i].name);
        if (end > text && number >= 0 && number < 1e9 && strncmp(end, units[i].name, len) == 0)
            return (uint64_t)(number * units[i].ns);
    }
    return 0;
}

static void keep(struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    if (!lock->hold)
        lock->hold = gt_need(calloc(HOLDS_KEPT, sizeof *lock->hold));
    uint64_t ns = hold->to - hold->from;
    lock->hold[lock->holds++ % HOLDS_KEPT] = *hold;
    lock->held_ns += ns;
    lock->longest_ns = ns > lock->longest_ns ? ns : lock->longest_ns;
}

const struct gt_lock_state *gt_locks_note_hold(struct gt_locks *locks, const char *category,
                                               const char *message,
                                               const struct gt_thread_state *thread, uint64_t now)
{
    static const char taken[] = ", taken in ";
    uint64_t ns = read_time(message);
    if (!ns || strncmp(category, held, sizeof held - 1) != 0)
        return NULL;
    const char *name = category + sizeof held - 1, *end = strstr(name, taken);
    size_t len = end ? (size_t)(end - name) : strlen(name);
    const char *place = end ? end + sizeof taken - 1 : "";
    struct gt_lock_state *lock = lock_of(locks, name, len);
    place = gt_contents_text(locks->contents, place, strlen(place));
    keep(lock, &(struct gt_hold_state){thread, now > ns ? now - ns : 0, now, place,
                                       strstr(message, GT_HELD_LONGER) != NULL});
    return lock;
}

const struct gt_hold_state *gt_locks_last_hold(const struct gt_lock_state *lock)
{
    return &lock->hold[(lock->holds - 1) % HOLDS_KEPT];
}

bool gt_locks_is_ours(const char *category)
{
    return strncmp(category, held, sizeof held - 1) == 0 || gt_locks_is_of_wait(category) ||
           gt_locks_is_waker(category);
}

bool gt_locks_is_of_wait(const char *category)
{
    return strcmp(category, held_by) == 0 || strcmp(category, waits_for) == 0 ||
           strcmp(category, waits_again) == 0;
}

bool gt_locks_is_waker(const char *category)
{
    return strcmp(category, GT_WAKES_TEXT) == 0 || strcmp(category, GT_WAKES_ALL_TEXT) == 0;
}

uint64_t gt_locks_slack(uint64_t ns)
{
    return ns >= 1000000000 ? 10000000 : ns >= 1000000 ? 10000 : 0;
}

/*
 * Holds are in the order of their ends. The log of a hold is written a little after its end, so a
 * hold that began earlier than known seems to begin later than it was known.
 */
const struct gt_thread_state *gt_locks_holder_at(const struct gt_lock_state *lock, uint64_t at)
{
    enum { LATE_NS = 50000 };
    uint64_t kept = lock->holds < HOLDS_KEPT ? lock->holds : HOLDS_KEPT;
    const struct gt_thread_state *holder = NULL;
    for (uint64_t i = lock->holds; i > lock->holds - kept; i--) {
        const struct gt_hold_state *hold = &lock->hold[(i - 1) % HOLDS_KEPT];
        if (hold->to <= at)
            break;
        uint64_t slack = gt_locks_slack(hold->to - hold->from) + (hold->longer ? LATE_NS : 0);
        if (hold->from <= at + slack)
            holder = hold->thread;
    }
    return holder;
}

void gt_locks_holders(const struct gt_lock_state *lock, uint64_t from, uint64_t to, gt_held_fn *fn,
                      void *arg)
{
    uint64_t kept = lock->holds < HOLDS_KEPT ? lock->holds : HOLDS_KEPT;
    for (uint64_t i = lock->holds - kept; i < lock->holds; i++) {
        struct gt_hold_state part = lock->hold[i % HOLDS_KEPT];
        part.from = part.from > from ? part.from : from;
        part.to = part.to < to ? part.to : to;
        if (part.from >= part.to)
            continue;
        fn(arg, &part);
        from = part.to; /* times that overlap because they were rounded count once */
    }
}
