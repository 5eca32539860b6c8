/*
 * What threads ask for that wait again and again at one place, and look after each wait: a flag
 * that another thread sets, or a lock that they only try to take. No event tells, but times do,
 * once there were enough looks. After a failed look, the thread waits there again. During failed
 * looks, another thread does something else than during the last look of a series.
 */
#pragma once

#include "survey.h"

/* Sets gt_place_waits.asked of all places where threads may poll. */
void gt_asked_find(struct gt_survey *survey, struct gt_sections *sections);
