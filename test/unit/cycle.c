/*
 * Cycles among waiters (encoder/base/cycle.h). A waiter wants a lock; its holders are known. Each
 * case is a table of whom a thread waits for, and the entry that each way must lead to.
 */
#include "encoder/base/cycle.h"

#include "check.h"

#include <stddef.h>

enum { MOST = 1000, HOLDERS = 3, NOBODY = -1 };

static struct waiter {
    int holder[HOLDERS], holders; /* 0: the lock is free; several: readers */
} waiters[MOST];

static const void *next(const void *all, const void *waiter)
{
    const struct waiter *w = waiter;
    return w->holders == 1 ? (const struct waiter *)all + w->holder[0] : NULL;
}

static void waits_for(int who, int holder)
{
    waiters[who] = (struct waiter){.holder = {holder}, .holders = holder != NOBODY};
}

static int entry_of(int who)
{
    const struct waiter *found = gt_cycle_entry(next, waiters, &waiters[who]);
    return found ? (int)(found - waiters) : NOBODY;
}

/* n threads, by whom each waits for, and the entry from each. */
static void check(int n, const int *holder, const int *entry)
{
    for (int i = 0; i < n; i++)
        waits_for(i, holder[i]);
    for (int i = 0; i < n; i++)
        CHECK(entry_of(i) == entry[i], "from %d: got %d, expected %d", i, entry_of(i), entry[i]);
}

static void test_none(void)
{
    check(1, (const int[]){NOBODY}, (const int[]){NOBODY});
    check(4, (const int[]){1, 2, 3, NOBODY}, (const int[]){NOBODY, NOBODY, NOBODY, NOBODY});
    check(4, (const int[]){3, 3, 3, NOBODY}, (const int[]){NOBODY, NOBODY, NOBODY, NOBODY});
}

static void test_small(void)
{
    check(1, (const int[]){0}, (const int[]){0});
    check(2, (const int[]){1, 0}, (const int[]){0, 1});
    check(3, (const int[]){2, 0, 1}, (const int[]){0, 1, 2});
}

/* Every length, with every member as the beginning; and a tail of each length up to 8. */
static void test_lengths(void)
{
    for (int n = 1; n <= 40; n++) {
        for (int i = 0; i < n; i++)
            waits_for(i, (i + 1) % n);
        for (int i = n; i < n + 8; i++)
            waits_for(i, i == n ? n / 2 : i - 1);
        for (int i = 0; i < n + 8; i++)
            CHECK_EQ(entry_of(i), i < n ? i : n / 2);
    }
    for (int i = 0; i < MOST; i++)
        waits_for(i, (i + 7) % MOST);
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(entry_of(i), i);
}

static void test_two_cycles(void)
{
    check(6, (const int[]){3, 2, 4, 0, 1, 2}, (const int[]){0, 1, 2, 3, 4, 2});
}

static void test_tails(void)
{
    check(5, (const int[]){1, 2, 3, 4, 2}, (const int[]){2, 2, 2, 3, 4});
    check(4, (const int[]){3, 3, 3, 3}, (const int[]){3, 3, 3, 3});
}

/* One of several readers is enough for the way to end: the others may hold the lock as well. */
static void test_readers(void)
{
    check(3, (const int[]){1, 2, 0}, (const int[]){0, 1, 2});
    waiters[1] = (struct waiter){{2, 0, 1}, 3};
    for (int i = 0; i < 3; i++)
        CHECK(entry_of(i) == NOBODY);
    waiters[1].holders = 0;
    for (int i = 0; i < 3; i++)
        CHECK(entry_of(i) == NOBODY);
}

int main(void)
{
    test_none();
    test_small();
    test_lengths();
    test_two_cycles();
    test_tails();
    test_readers();
    return 0;
}
