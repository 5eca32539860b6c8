/*
 * Waits off the critical path: whether a replay tells that shorter ones would not shorten the run.
 */
#pragma once

#include "critical_path.h"
#include "program.h"
#include "survey.h"

/*
 * Whether the waits of a section are sleeps, which take half as long in a replay. A wait that
 * another thread ended takes as long as that thread makes it.
 */
bool gt_off_path_is_sleep(const struct gt_survey *survey, const struct gt_sections *sections,
                          uint32_t section);

/*
 * Whether a replay has all that decides when the run ends. It has not where a thread may go through
 * more or fewer rounds than it did: for a lock, a flag, a CPU, or an end of a wait that no event
 * tells.
 */
bool gt_off_path_is_known(const struct gt_program *program, const struct gt_critical_path *path,
                          const struct gt_survey *survey);
