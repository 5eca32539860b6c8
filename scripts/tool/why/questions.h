/*
 * Finds questions that nobody had to wait for. Two threads talk: one asks and waits for the answer,
 * the other waits for the next question. If a question is there before that thread comes back to
 * it, the trace has no wait for it. But the thread needed it, and a replay must know.
 */
#pragma once

#include "graph.h"

/* Finds them and stores them in gt_graph.question. The ends of waits must have been inferred. */
void gt_questions_find(struct gt_graph *graph);
