/*
 * Waits that no thread is known to have ended: for input, a signal, a cancellation. Another thread
 * may have ended them by a call that no event tells of, such as a close or a short write. When it
 * came to wait for the thread then, tells.
 */
#pragma once

#include "graph.h"

/* The last such wait of the thread that began before `at`. False: there was none lately. */
bool gt_rest_before(const struct gt_graph *graph, uint32_t thread, uint64_t at,
                    struct gt_step *rest);

/*
 * Whether the step is such a wait, and the asker ended it by what it sent just before it came to
 * wait itself, at `at`. The step's end may be off by that part of its length.
 */
bool gt_rest_was_asked(const struct gt_graph *graph, uint32_t asker, uint64_t at,
                       const struct gt_step *rest, uint64_t part);
