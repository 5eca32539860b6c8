/*
 * `gotrace why --json --timeline`: what the busiest threads did over time, for a picture.
 * gotrace-json(5) documents it.
 */
#pragma once

#include "page.h"

/* Writes the member "timeline", with a comma before it. After gt_why_find. */
void gt_why_print_timeline(struct gt_why *why);
