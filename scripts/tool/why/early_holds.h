/*
 * Holds of semaphores that serve as locks, from before that was known. The library records holds of
 * a semaphore once its tokens have come back from their takers four times in a row. Before that,
 * the holder is the thread whose post ended a wait for the token.
 */
#pragma once

#include "graph.h"

/* Adds these holds, before the begins of holds are settled. */
void gt_early_holds_find(struct gt_graph *graph);
