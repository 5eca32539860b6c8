/*
 * Who ends a wait where the lock itself does not say so, but memory beside it or the stacks do:
 *
 *   stdio's lock       has the address of its owner's thread behind it
 *   Python's GIL       knows the state of the thread that had it last, before its condition
 *   a local static     is being made by the thread that is inside of its function
 *
 * waits.c has found what each thread waits for; this is asked next.
 */
#include "holders.h"

#include <string.h>

static const struct gt_task *by_thread(const struct gt_still *s, uint64_t thread)
{
    for (size_t i = 0; thread && i < s->tasks; i++) {
        if (gt_registers_thread(&s->task[i].registers) == thread)
            return &s->task[i];
    }
    return NULL;
}

static bool has_function(const struct gt_task *t, const char *name, size_t depth)
{
    for (size_t i = 0; i < t->frames && i < depth; i++) {
        if (strcmp(t->frame[i].function, name) == 0)
            return true;
    }
    return false;
}

static void hold(struct gt_task *t, const struct gt_task *owner, enum gt_wait_kind kind)
{
    t->wait.kind = kind;
    t->wait.owned = GT_OWNER_THREAD;
    t->wait.owner = owner->tid;
    t->wait.certain = true;
}

/* stdio ---------------------------------------------------------------------------------------- */

/* _IO_lock_t of glibc. */
struct stdio_lock {
    int32_t lock, count;
    uint64_t owner;
};

static bool stdio(const struct gt_still *s, struct gt_task *t)
{
    struct stdio_lock l;
    if (!has_function(t, "__GI___lll_lock_wait_private", 4) &&
        !has_function(t, "__lll_lock_wait_private", 4))
        return false;
    if (!gt_still_read(s, t->wait.address, &l, sizeof l) || l.lock != 2 || l.count < 1)
        return false;
    const struct gt_task *owner = by_thread(s, l.owner);
    if (owner)
        hold(t, owner, GT_WAIT_STDIO);
    return owner;
}

/* The GIL -------------------------------------------------------------------------------------- */

/* struct _gil_runtime_state, up to its condition, of Python 3.7 to 3.14. */
struct gil {
    uint64_t interval, last_holder;
    int32_t locked;
    uint64_t switches;
};

static const char *const takes_gil[] = {"take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread",
                                        "PyGILState_Ensure", "_PyEval_EvalFrameDefault"};

/* The thread that this state of Python's is of: its pthread_t stands in it. */
static const struct gt_task *by_state(const struct gt_still *s, uint64_t state)
{
    enum { WORDS = 64 };
    uint64_t words[WORDS];
    const struct gt_task *found = NULL;
    if (!gt_still_peek(s, state, words, sizeof words))
        return NULL;
    for (size_t i = 0; i < WORDS; i++) {
        const struct gt_task *t = by_thread(s, words[i]);
        if (t && found && t != found)
            return NULL;
        found = t ? t : found;
    }
    return found;
}

static bool gil(const struct gt_still *s, struct gt_task *t)
{
    enum { DEPTH = 8 };
    struct gil g;
    bool takes = false;
    for (size_t i = 0; i < sizeof takes_gil / sizeof *takes_gil; i++)
        takes |= has_function(t, takes_gil[i], DEPTH);
    if (t->wait.kind != GT_WAIT_COND || !takes ||
        !gt_still_peek(s, t->wait.address - sizeof g, &g, sizeof g) || g.locked != 1)
        return false;
    const struct gt_task *owner = by_state(s, g.last_holder);
    if (!owner || owner == t)
        return false;
    hold(t, owner, GT_WAIT_GIL);
    t->wait.timed = false; /* it waits again and again */
    return true;
}

uint64_t gt_gil_turn(const struct gt_still *s, const struct gt_task *t)
{
    struct gil g;
    bool held = gt_still_peek(s, t->wait.address - sizeof g, &g, sizeof g) && g.locked == 1;
    const struct gt_task *owner = held ? by_state(s, g.last_holder) : NULL;
    return owner && owner->tid == t->wait.owner ? g.switches + 1 : 0;
}

/* Local statics -------------------------------------------------------------------------------- */

static bool acquires(const struct gt_task *t, size_t i)
{
    return strncmp(t->frame[i].function, "__cxa_guard_acquire", 19) == 0;
}

/* Whether it is inside of that function, and has called another one from there than for a guard. */
static bool is_inside(const struct gt_task *t, const struct gt_place *function)
{
    for (size_t i = 1; i < t->frames; i++) {
        if (strcmp(t->frame[i].function, function->function) == 0 &&
            strcmp(t->frame[i].module, function->module) == 0 && !acquires(t, i - 1))
            return true;
    }
    return false;
}

/* One of all that are inside makes it; if that is only one, and no stack is cut, it is known. */
static bool guard(const struct gt_still *s, struct gt_task *t)
{
    enum { DEPTH = 4 };
    size_t at = 0;
    const struct gt_task *owner = NULL;
    while (at < t->frames && at < DEPTH && !acquires(t, at))
        at++;
    if (at + 1 >= t->frames || at == DEPTH)
        return false;
    t->wait.kind = GT_WAIT_ONCE;
    for (size_t i = 0; i < s->tasks; i++) {
        bool inside = is_inside(&s->task[i], &t->frame[at + 1]);
        if (s->task[i].cut || (inside && owner))
            return true;
        owner = inside ? &s->task[i] : owner;
    }
    uint32_t word;
    if (owner && gt_still_read(s, t->wait.address, &word, sizeof word) &&
        word == (uint32_t)t->call.argument[2])
        hold(t, owner, GT_WAIT_ONCE);
    return true;
}

/* All ------------------------------------------------------------------------------------------ */

void gt_find_holder(const struct gt_still *s, struct gt_task *t)
{
    if (t->wait.owned != GT_OWNER_UNKNOWN || t->wait.readers || !t->wait.address)
        return;
    gt_still_prefer(t);
    if (t->wait.kind == GT_WAIT_COND)
        gil(s, t);
    else if (t->wait.kind == GT_WAIT_FUTEX && !stdio(s, t))
        guard(s, t);
}
