/*
 * v1 as Go programs write it. It differs in three ways. An event belongs to a P, which threads
 * take and give away. A call has an event only when it has lasted a while, and its end has one
 * when its goroutine runs again. And goroutines that exist when recording begins are created then.
 * The events are reported as in v2: on the thread that has the P, and at the time when they
 * happened.
 */
#pragma once

#include "order.h"

/* Called before the first event is reported: makes the ends of calls a source of their own. */
void gt_v1_go_begin(struct gt_reader *r);

/* Frees what was kept. Streams stay, because the audience may refer to them. */
void gt_v1_go_end(struct gt_reader *r);

/*
 * s->next is the event as v1 has it: changes it to the event to report. false: nothing to report.
 */
bool gt_v1_go_tell(struct gt_reader *r, struct gt_source *s, const struct gt_v1_entry *event);

/* Makes s->next an event to report that v1 has no event for; false: none. */
bool gt_v1_go_tell_more(struct gt_reader *r, struct gt_source *s);

/*
 * Whether this is the source of the ends of calls. gt_v1_go_next_exit: its next event; false:
 * none.
 */
bool gt_v1_go_is_exits(const struct gt_reader *r, const struct gt_source *s);
bool gt_v1_go_next_exit(struct gt_reader *r, struct gt_source *s);
