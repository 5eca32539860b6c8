/*
 * When holds of locks begin. A trace gives their length to three digits, so a thread may seem to
 * wake another one just before it locks, or just after. What it did where it had to wait for the
 * lock tells the order: a replay depends on it.
 */
#pragma once

#include "graph.h"

/* Moves the begins of holds to before or after such wake-ups. */
void gt_begins_settle(struct gt_graph *graph);
