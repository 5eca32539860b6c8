/*
 * v1 as Go programs write it. There an event stands where a P is, which threads take and give away;
 * a call is told as one when it has lasted a while, and its end when its goroutine runs again; and
 * who is there when recording begins is made then. What is told of it is as in v2: of the thread
 * that has the P, and when it happened.
 */
#ifndef GT_V1_GO_H
#define GT_V1_GO_H

#include "order.h"

/* Before anything is told: the ends of calls become a source of their own. */
void gt_v1_go_begin(struct gt_reader *r);

/* What was kept for that is gone; streams stay, which are known to who was told of them. */
void gt_v1_go_end(struct gt_reader *r);

/* s->next is what that event says in v1; makes it what is told. false: nothing. */
bool gt_v1_go_tell(struct gt_reader *r, struct gt_source *s, const struct gt_v1_entry *event);

/* What is told next without an event of its own; false: nothing. */
bool gt_v1_go_tell_more(struct gt_reader *r, struct gt_source *s);

/* Whether this is the source of the ends of calls; its next event, false: there is none. */
bool gt_v1_go_is_exits(const struct gt_reader *r, const struct gt_source *s);
bool gt_v1_go_next_exit(struct gt_reader *r, struct gt_source *s);

#endif
