/*
 * Finds which thread can end a wait if the lock itself does not say so. Memory beside the lock or
 * the stacks say it:
 *
 *   stdio's lock     The address of its owner's thread is behind it.
 *   Python's GIL     The state of its last owner is before its condition variable.
 *   Python's RLock   From 3.14 on it has its owner; its address is before the waiter's semaphore.
 *   Python's Lock    If it is one byte: the thread that is in a `with` block of it.
 *   a local static   The thread inside its function initializes it.
 *   a rwlock         It only counts readers. A thread with its address on the stack may be one.
 *
 * waits.c has found before what each thread waits for.
 */
#include "holders.h"

#include "elsewhere.h"
#include "python_threads.h"

#include "encoder/read/need.h"
#include "encoder/base/glibc.h"
#include "preload/shared/control_page.h"

#include <string.h>

static const struct gt_still_thread *by_thread(const struct gt_still *s, uint64_t thread)
{
    for (size_t i = 0; thread && i < s->tasks; i++) {
        if (gt_registers_thread(&s->task[i].registers) == thread)
            return &s->task[i];
    }
    return NULL;
}

#define INTERPRETER "_PyEval_EvalFrameDefault"

static bool has_function(const struct gt_still_thread *t, const char *name, size_t depth)
{
    for (size_t i = 0; i < t->frames && i < depth; i++) {
        const char *function = t->frame[i].python ? INTERPRETER : t->frame[i].function;
        if (strcmp(function, name) == 0)
            return true;
    }
    return false;
}

static void hold(struct gt_still_thread *t, const struct gt_still_thread *owner,
                 enum gt_wait_kind kind)
{
    t->wait.kind = kind;
    t->wait.owned = GT_OWNER_THREAD;
    t->wait.owner = owner->tid;
    t->wait.certain = true;
}

/* stdio ---------------------------------------------------------------------------------------- */

static bool stdio(const struct gt_still *s, struct gt_still_thread *t)
{
    struct gt_stdio_lock l;
    if (!has_function(t, "__GI___lll_lock_wait_private", 4) &&
        !has_function(t, "__lll_lock_wait_private", 4))
        return false;
    if (!gt_still_read(s, t->wait.address, &l, sizeof l) || l.word != GT_LLL_AWAITED || l.count < 0)
        return false;
    const struct gt_still_thread *owner = by_thread(s, l.owner);
    if (owner)
        hold(t, owner, GT_WAIT_STDIO);
    return owner;
}

/* The GIL -------------------------------------------------------------------------------------- */

/* Python's struct _gil_runtime_state up to its condition variable, 3.7 to 3.14. */
struct gil {
    uint64_t interval, last_holder;
    int32_t locked;
    uint64_t switches;
};

static const char *const takes_gil[] = {"take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread",
                                        "PyGILState_Ensure", INTERPRETER};

/* The thread that a Python thread state belongs to: the state contains its pthread_t. */
static const struct gt_still_thread *by_state(const struct gt_still *s, uint64_t state)
{
    enum { WORDS = 64 };
    uint64_t words[WORDS];
    const struct gt_still_thread *found = NULL;
    if (!gt_still_peek(s, state, words, sizeof words))
        return NULL;
    for (size_t i = 0; i < WORDS; i++) {
        const struct gt_still_thread *t = by_thread(s, words[i]);
        if (t && found && t != found)
            return NULL;
        found = t ? t : found;
    }
    return found;
}

static bool gil(const struct gt_still *s, struct gt_still_thread *t)
{
    enum { DEPTH = 8 };
    struct gil g;
    bool takes = false;
    for (size_t i = 0; i < sizeof takes_gil / sizeof *takes_gil; i++)
        takes |= has_function(t, takes_gil[i], DEPTH);
    if (t->wait.kind != GT_WAIT_COND || !takes ||
        !gt_still_peek(s, t->wait.address - sizeof g, &g, sizeof g) || g.locked != 1)
        return false;
    const struct gt_still_thread *owner = by_state(s, g.last_holder);
    if (!owner || owner == t)
        return false;
    hold(t, owner, GT_WAIT_GIL);
    t->wait.timed = false; /* the wait repeats until the GIL is free */
    return true;
}

uint64_t gt_gil_turn(const struct gt_still *s, const struct gt_still_thread *t)
{
    struct gil g;
    bool held = gt_still_peek(s, t->wait.address - sizeof g, &g, sizeof g) && g.locked == 1;
    const struct gt_still_thread *owner = held ? by_state(s, g.last_holder) : NULL;
    return owner && owner->tid == t->wait.owner ? g.switches + 1 : 0;
}

/* Lock and RLock: see preload/stacks/pymutex.c ------------------------------------------------- */

static bool has_text(const struct gt_still *s, uint64_t pointer, const char *text)
{
    char there[32];
    uint64_t at;
    size_t size = strlen(text) + 1;
    return size <= sizeof there && gt_still_peek(s, pointer, &at, sizeof at) &&
           gt_still_peek(s, at, there, size) && memcmp(there, text, size) == 0;
}

static bool is_named(const struct gt_still *s, uint64_t type, const char *name)
{
    enum { NAME = 24, FREE_THREADED_NAME = 40 };
    return has_text(s, type + NAME, name) || has_text(s, type + FREE_THREADED_NAME, name);
}

struct byte_lock {
    uint64_t at; /* of its byte */
    struct {
        uint64_t type;
        uint8_t mutex, unused[7];
        uint64_t owner;
    } it;
    bool plain; /* no RLock */
};

/*
 * Finds the lock that is one byte for which the thread waits. Its waiter's semaphore is on the
 * stack, behind the lock's address.
 */
static bool find_byte_lock(const struct gt_still *s, const struct gt_still_thread *t,
                           struct byte_lock *lock)
{
    enum { DEPTH = 8 };
    bool waits = t->wait.kind == GT_WAIT_SEMAPHORE || t->wait.kind == GT_WAIT_FUTEX;
    if (!waits || !has_function(t, "_PySemaphore_Wait", DEPTH) ||
        !gt_still_read(s, t->wait.address - sizeof lock->at, &lock->at, sizeof lock->at) ||
        !gt_still_peek(s, lock->at - sizeof lock->it.type, &lock->it, sizeof lock->it))
        return false;
    lock->plain = is_named(s, lock->it.type, "_thread.lock");
    return lock->plain || is_named(s, lock->it.type, "_thread.RLock");
}

void gt_look_for_holders(const struct gt_still *s)
{
    struct byte_lock lock;
    for (size_t i = 0; i < s->tasks; i++) {
        gt_still_prefer(&s->task[i]);
        if (find_byte_lock(s, &s->task[i], &lock) && lock.plain)
            gt_python_want(&s->task[i], lock.at);
    }
    gt_python_find_holders();
}

/* The lock's byte stands for it. */
static bool byte_lock(const struct gt_still *s, struct gt_still_thread *t)
{
    enum { LOCKED = 1 };
    struct byte_lock lock;
    bool timed = t->wait.timed;
    if (!find_byte_lock(s, t, &lock))
        return false;
    const struct gt_still_thread *owner = !lock.plain              ? by_thread(s, lock.it.owner)
                                          : lock.it.mutex & LOCKED ? gt_python_holder(lock.at)
                                                                   : NULL;
    if (owner)
        hold(t, owner, GT_WAIT_MUTEX);
    t->wait.kind = GT_WAIT_MUTEX;
    t->wait.address = lock.at;
    t->wait.certain = owner && !timed;
    return true;
}

/* Local statics -------------------------------------------------------------------------------- */

static bool acquires(const struct gt_still_thread *t, size_t i)
{
    return strncmp(t->frame[i].function, "__cxa_guard_acquire", 19) == 0;
}

/* Whether the thread is inside that function, and not just waiting for the guard there. */
static bool is_inside(const struct gt_still_thread *t, const struct gt_place *function)
{
    for (size_t i = 1; i < t->frames; i++) {
        if (strcmp(t->frame[i].function, function->function) == 0 &&
            strcmp(t->frame[i].module, function->module) == 0 && !acquires(t, i - 1))
            return true;
    }
    return false;
}

/*
 * One of the threads inside the function initializes the static. Only if there is exactly one, and
 * no stack is cut, the owner is known.
 */
static bool guard(const struct gt_still *s, struct gt_still_thread *t)
{
    enum { DEPTH = 4 };
    size_t at = 0;
    const struct gt_still_thread *owner = NULL;
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

/* Readers ----------------------------------------------------------------------------------------
 */

uint64_t gt_frame_begins(const struct gt_still *s, const struct gt_still_thread *t, size_t frame)
{
    uint64_t word, found = 0;
    gt_still_prefer(t);
    for (uint64_t at = gt_registers_sp(&t->registers);
         frame < t->frames && gt_still_read(s, at, &word, sizeof word); at += sizeof word)
        found = word == t->frame[frame].pc + 1 ? at : found;
    return found;
}

bool gt_is_our_thread(const struct gt_still_thread *t)
{
    return strcmp(t->name, GT_CONTROL_THREAD) == 0 && t->frames > 1 &&
           strstr(t->frame[1].module, "/libgotrace");
}

/*
 * Index of a waiter's frames above the function that wants the lock, which has its address anyway.
 */
static size_t callers_of(const struct gt_still_thread *t)
{
    enum { DEPTH = 16 };
    size_t i = 0;
    for (size_t k = 0; k < t->frames && k < DEPTH; k++)
        i = strstr(t->frame[k].function, "rwlock_") ? k + 1 : i;
    while (i < t->frames && strncmp(t->frame[i].function, "std::", 5) == 0)
        i++;
    uint64_t pc = i < t->frames ? t->frame[i].pc : 0;
    while (i < t->frames && t->frame[i].pc == pc) /* also functions inlined there */
        i++;
    return i;
}

static bool waits_for(const struct gt_still_thread *t, uint64_t lock)
{
    return t->wait.kind == GT_WAIT_RWLOCK && t->wait.address == lock;
}

static bool has_lock(const struct gt_still *s, const struct gt_still_thread *t, uint64_t lock)
{
    uint64_t word, at = gt_registers_sp(&t->registers);
    if (waits_for(t, lock))
        at = gt_frame_begins(s, t, callers_of(t));
    gt_still_prefer(t);
    for (; at && gt_still_read(s, at, &word, sizeof word); at += sizeof word) {
        if (word == lock)
            return true;
    }
    return false;
}

/* Whether the thread may be a reader, if no stack has the lock's address. */
static bool may_read(const struct gt_still_thread *t, uint64_t lock)
{
    bool writes = false;
    for (size_t i = 0; waits_for(t, lock) && i < t->frames && i < 8; i++)
        writes |= strstr(t->frame[i].function, "wrlock") != NULL;
    return !writes;
}

/* Finds as many threads as the lock has readers. If there are more candidates, none is named. */
static void readers(const struct gt_still *s, struct gt_still_thread *t)
{
    struct gt_thread_wait *w = &t->wait;
    for (int pass = 0; pass < 2 && !w->reading; pass++) {
        for (size_t i = 0; i < s->tasks; i++) {
            const struct gt_still_thread *other = &s->task[i];
            if (!gt_is_our_thread(other) &&
                (pass ? may_read(other, w->address) : has_lock(s, other, w->address)))
                *GT_ADD(w->reader, w->reading) = other->tid;
        }
    }
    if (w->reading != w->readers)
        w->reading = 0;
}

/* All ------------------------------------------------------------------------------------------ */

void gt_find_holder(const struct gt_still *s, struct gt_still_thread *t)
{
    if (t->wait.readers && t->wait.kind == GT_WAIT_RWLOCK)
        readers(s, t);
    if (!s->core && !s->told && !s->foreign)
        gt_find_elsewhere(s, t);
    if (t->wait.owned != GT_OWNER_UNKNOWN || t->wait.readers || !t->wait.address)
        return;
    gt_still_prefer(t);
    if (t->wait.kind == GT_WAIT_COND)
        gil(s, t);
    else if (t->wait.kind == GT_WAIT_SEMAPHORE)
        byte_lock(s, t);
    else if (t->wait.kind == GT_WAIT_FUTEX && !stdio(s, t) && !byte_lock(s, t))
        guard(s, t);
}
