/*
 * Threads that poll: they sleep again and again until another thread needs them. A poll is modelled
 * only if the trace shows what it asks for: nearly always, the thread that the poller then wakes
 * began to wait during the last of these sleeps.
 */
#pragma once

#include "program.h"
#include "survey.h"

/*
 * The place of the longest poll that can be modelled, and sets program->poller and program->poll.
 * NULL: there is none.
 */
const struct gt_place_waits *gt_polls_find(struct gt_program *program,
                                           const struct gt_survey *survey);
