/*
 * Holds of locks that are futexes: Rust's Mutex, and the guards of C++'s function-local statics.
 * The library sees only their system calls: a thread waits, and another one wakes it. The waker had
 * the lock until then.
 */
#pragma once

#include "graph.h"

/* Adds these holds, before the begins of holds are settled. */
void gt_futex_holds_find(struct gt_graph *graph);
