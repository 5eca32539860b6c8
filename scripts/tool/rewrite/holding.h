/*
 * Holds of locks as tasks, "hold journal_lock", of who had it: a task is what Go's viewers have a
 * span and a histogram for that need not nest. A hold is told when it is over, so a reading before
 * finds them.
 */
#ifndef GT_HOLDING_H
#define GT_HOLDING_H

#include <stddef.h>
#include <stdint.h>

struct gt_happening;
struct gt_holdings;

/* Those of the trace at that path, and how many. A failure ends the program with a message. */
struct gt_holdings *gt_holdings_read(const char *path, size_t *n);

/* A goroutine runs, and at ns does what is told next: what it has begun or ended by then. */
void gt_holdings_tell(struct gt_holdings *all, const struct gt_happening *next, uint64_t g,
                      uint64_t ns);

#endif
