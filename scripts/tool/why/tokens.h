/*
 * Tokens in a pipe that serve as a lock or as a semaphore, as those of make's jobserver: a thread
 * or process reads one byte, does its work, and writes the byte back. Which pipe a call is for,
 * only a recording with -s all tells.
 */
#pragma once

#include "graph.h"

/*
 * Finds such pipes. A wait for a token gets its lock and, as its waker, the thread that wrote one
 * back last. Of a single token, the thread that read it is the holder. Call it after
 * gt_relock_find; no cursor may be open.
 */
void gt_tokens_find(struct gt_graph *graph);
