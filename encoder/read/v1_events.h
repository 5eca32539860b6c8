/* The events of a P in a v1 file, one after the other. */
#ifndef GT_V1_EVENTS_H
#define GT_V1_EVENTS_H

#include "order.h"

/* The next one, which is counted; false: there is none. */
bool gt_v1_event_next(struct gt_reader *r, struct gt_source *s, struct gt_v1_entry *event);

/* The one after that, which stays the next; NULL: there is none. */
const struct gt_v1_entry *gt_v1_event_peek(struct gt_reader *r, struct gt_source *s);

#endif
