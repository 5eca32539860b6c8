/*
 * Lock holds as tasks of the lock holder, "hold journal_lock". Go's viewers draw spans and
 * histograms of tasks, and tasks need not nest. A trace records a hold when it ends, so the holds
 * are found by reading the trace once before it is rewritten.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct gt_happening;
struct gt_holdings;

/* The holds of the trace at that path; *n: how many. A failure ends the program with a message. */
struct gt_holdings *gt_holdings_read(const char *path, size_t *n);

/* Goroutine g, running, has the event `next` at ns: first writes the holds it began or ended. */
void gt_holdings_tell(struct gt_holdings *all, const struct gt_happening *next, uint64_t g,
                      uint64_t ns);
