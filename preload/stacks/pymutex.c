/*
 * See pymutex.h. The structures are those of CPython's Python/parking_lot.c and Python/lock.c,
 * which are the same from 3.13 to 3.15: the record of a thread that waits, and what its caller's
 * frame has for a PyMutex. Other users of the same queues, such as events, have something else
 * there, or nothing.
 */
#include "pymutex.h"

#include "code_layouts.h"

#include "symbolize/elf/modules.h"

#include <semaphore.h>
#include <string.h>
#include <time.h>

struct gt_pymutex_code gt_pymutex_code;
static _Atomic bool exists; /* the interpreter has such locks */

struct mutex_entry {
    int64_t time_to_be_fair; /* on CLOCK_MONOTONIC, 1 ms after the thread began to wait */
    int32_t handed_off;
};

struct wait_entry {
    const struct mutex_entry *entry;
    const uint8_t *lock;
    sem_t sem;
    void *next, *previous;
    bool is_unparking;
};

enum { LOCKED = 1, HAS_PARKED = 2 };

/* Behind its mutex, a recursive one has the owner's pthread_t. */
enum { OWNER = 8 };

void gt_pymutex_find(const struct gt_module *module, uint32_t version)
{
    enum { FIRST = 0x030d, LAST = 0x030f };
    uint32_t minor = version >> 16;
    bool known = module && minor <= LAST;
    atomic_store_explicit(&gt_pymutex_code.size, 0, memory_order_relaxed);
    atomic_store_explicit(&exists, known && minor >= FIRST, memory_order_relaxed);
    atomic_store_explicit(&gt_pymutex_code.at, known ? module->lo : 0, memory_order_relaxed);
    atomic_store_explicit(&gt_pymutex_code.size, known ? module->hi - module->lo : 0,
                          memory_order_relaxed);
}

static const struct wait_entry *wait_of(const void *sem)
{
    return (const void *)((uintptr_t)sem - offsetof(struct wait_entry, sem));
}

/* Whether memory beside what is at `known`, which can be read, can be read, too. */
static bool can_read_beside(const void *known, const void *at, size_t size)
{
    enum { PAGE = 4096 };
    uintptr_t page = (uintptr_t)known / PAGE;
    bool same = (uintptr_t)at / PAGE == page && ((uintptr_t)at + size - 1) / PAGE == page;
    return same || gt_can_read(at, size);
}

/* Whether a thread has set the entry up when it began to wait, at most so many seconds ago. */
static bool is_recent(const struct mutex_entry *entry, int64_t seconds)
{
    const int64_t second = 1000000000, fair = 1000000;
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return false;
    int64_t now = t.tv_sec * second + t.tv_nsec;
    return entry->time_to_be_fair > now - seconds * second &&
           entry->time_to_be_fair <= now + fair &&
           (entry->handed_off == 0 || entry->handed_off == 1);
}

/* The record that has the semaphore; NULL: it is in no record of a thread that waits for a lock. */
static const struct wait_entry *record_of(const void *sem, int64_t seconds)
{
    enum { NEAR = 4096 };
    const struct wait_entry *wait = wait_of(sem);
    if (!atomic_load_explicit(&exists, memory_order_relaxed) || (uintptr_t)sem % sizeof(void *) ||
        !can_read_beside(sem, wait, sizeof *wait))
        return NULL;
    uintptr_t apart = (uintptr_t)wait->entry - (uintptr_t)wait; /* in an outer frame */
    bool near = apart >= sizeof *wait && apart < NEAR && apart % sizeof(int64_t) == 0;
    if (!near || !can_read_beside(sem, wait->entry, sizeof *wait->entry))
        return NULL;
    return is_recent(wait->entry, seconds) && gt_can_read(wait->lock, 1) ? wait : NULL;
}

/* A wait begins anew after a signal. */
const void *gt_pymutex_waited_slow(const void *sem)
{
    enum { NEAR = 4096, HOUR = 3600 };
    bool on_stack = (uintptr_t)sem - (uintptr_t)__builtin_frame_address(0) < NEAR;
    const struct wait_entry *wait = on_stack ? record_of(sem, HOUR) : NULL;
    return wait && __atomic_load_n(wait->lock, __ATOMIC_RELAXED) <= (LOCKED | HAS_PARKED)
               ? wait->lock
               : NULL;
}

const void *gt_pymutex_posted(const void *sem)
{
    enum { YEAR = 365 * 24 * 3600 };
    const struct wait_entry *wait = record_of(sem, YEAR);
    return wait && wait->is_unparking ? wait->lock : NULL;
}

const void *gt_pymutex_of(const void *sem)
{
    return wait_of(sem)->lock;
}

bool gt_pymutex_is_given(const void *sem)
{
    return wait_of(sem)->entry->handed_off;
}

bool gt_pymutex_is_awaited(const void *lock)
{
    return __atomic_load_n((const uint8_t *)lock, __ATOMIC_RELAXED) & HAS_PARKED;
}

static bool is_text(uintptr_t at, const char *text)
{
    return gt_can_read((const void *)at, strlen(text) + 1) && strcmp((const char *)at, text) == 0;
}

/* The object's type stands before its mutex. A type has its name behind the head of an object. */
bool gt_pymutex_is_rlock(const void *lock)
{
    enum { NAME = 24, FREE_THREADED_NAME = 40 };
    const uintptr_t *type = (const uintptr_t *)lock - 1;
    if ((uintptr_t)lock % sizeof *type || !gt_can_read(type, 2 * sizeof *type + OWNER) ||
        !gt_can_read((const void *)*type, FREE_THREADED_NAME + sizeof *type))
        return false;
    return is_text(*(const uintptr_t *)(*type + NAME), "_thread.RLock") ||
           is_text(*(const uintptr_t *)(*type + FREE_THREADED_NAME), "_thread.RLock");
}

uint32_t gt_pymutex_rlock_owner(const void *lock)
{
    uint64_t thread =
        __atomic_load_n((const uint64_t *)((uintptr_t)lock + OWNER), __ATOMIC_RELAXED);
    return thread ? gt_number_of_thread(thread) : 0;
}
