/* Reads the events of a P in a v1 file, one after the other. */
#pragma once

#include "order.h"

/* Reads and counts the next event; false: there is none. */
bool gt_v1_event_next(struct gt_reader *r, struct gt_source *s, struct gt_v1_entry *event);

/* The event that gt_v1_event_next will read; NULL: there is none. */
const struct gt_v1_entry *gt_v1_event_peek(struct gt_reader *r, struct gt_source *s);
