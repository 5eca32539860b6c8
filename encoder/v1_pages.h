/*
 * The bytes of a v1 file. Drain side only.
 *
 * The file is made of pages of 4 KiB. Each ends with a whole event, and contains, for every P, a
 * batch of what happened there since the page before. As events are given in an order that
 * respects causality, the file is a readable trace after each page. The kernel writes whole pages:
 * a process killed in the middle of a write leaves some of them, never a part of one, and that is
 * what makes v1 traces survive SIGKILL, whose readers refuse a file that ends inside an event.
 */
#ifndef GT_V1_PAGES_H
#define GT_V1_PAGES_H

#include "format.h"

#define GT_V1_PAGE 4096u
#define GT_V1_RECORD_MAX 2048u /* the longest event that all readers take */

/* Starts a file: the header goes into the first page. */
void gt_v1_pages_open(void);

/*
 * An event on P p at ts, not earlier than the one before; args as in gt_v1_events for the newest
 * version, those this version does not have are left out. `tail`: of a user log.
 */
void gt_v1_pages_event(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args,
                       const void *tail, size_t tail_size);

/* The number in Go 1.5's global order that the next event gets. */
uint64_t gt_v1_pages_next_seq(void);

/* A record that belongs to no P, whole: a string, stack or frequency. */
void gt_v1_pages_record(const void *record, size_t size);

/* Fills up the page that was begun. */
void gt_v1_pages_flush(void);

#endif
