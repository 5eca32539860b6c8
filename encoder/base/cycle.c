/* See cycle.h. */
#include "cycle.h"

#include <stddef.h>

/*
 * Floyd's algorithm (Knuth, The Art of Computer Programming, 3.1, exercise 6): one walker goes at
 * twice the speed of another, and meets it only in a cycle. From there it is as far to the entry as
 * from the beginning.
 */
const void *gt_cycle_entry(gt_cycle_next_fn *next, const void *all, const void *waiter)
{
    const void *slow = waiter, *fast = waiter;
    do {
        fast = next(all, fast);
        fast = fast ? next(all, fast) : NULL;
        slow = next(all, slow);
    } while (fast && fast != slow);
    if (!fast)
        return NULL;
    for (slow = waiter; slow != fast; slow = next(all, slow))
        fast = next(all, fast);
    return slow;
}
