/*
 * The bytes of a v1 file. Drain side only.
 *
 * README.md says why it is made of pages, each a whole that is readable as the end of the file, and
 * why a page stops the goroutines that run and collections are written when they are over.
 */
#ifndef GT_V1_PAGES_H
#define GT_V1_PAGES_H

#include "encoder/format.h"

#define GT_V1_PAGE 4096u
#define GT_V1_RECORD_MAX 2048u /* the longest event that all readers take */

struct gt_merge_g;

/* Gives the event that starts g again on P p, where it was stopped, and its arguments. */
typedef enum gt_v1_type gt_v1_start_fn(struct gt_merge_g *g, uint32_t p, uint64_t *args);

/* Starts a file: the header goes into the first page. */
void gt_v1_pages_open(gt_v1_start_fn *start);

/*
 * Then the file has pages: for who has read that. There a goroutine was stopped, which runs on; an
 * event has that number.
 */
void gt_v1_pages_go_on(void);
void gt_v1_pages_stopped(uint32_t p, uint64_t seq, uint64_t ts);
void gt_v1_pages_counted(uint64_t seq);

/*
 * An event on P p at ts, not earlier than the one before; args as in gt_v1_events for the newest
 * version, those this version does not have are left out. `tail`: of a user log.
 */
void gt_v1_pages_event(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args,
                       const void *tail, size_t tail_size);

/* From its last event on P p runs g; NULL: no goroutine. */
void gt_v1_pages_running(uint32_t p, struct gt_merge_g *g);

/* What runs has run until ts at least. A flush must follow. */
void gt_v1_pages_ran(uint64_t ts);

/*
 * The same as gt_v1_pages_event for the beginning of a range, what happens in it and its end, at
 * most GT_V1_HELD_MAX events with nothing else on their P between them: gt_v1_pages_release writes
 * them into one page.
 */
enum { GT_V1_HELD_MAX = 8 };
void gt_v1_pages_hold(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args);
void gt_v1_pages_release(void);

/* The number in Go 1.5's global order that the next event gets. */
uint64_t gt_v1_pages_next_seq(void);

/* A record that belongs to no P, whole: a string, stack or frequency. */
void gt_v1_pages_record(const void *record, size_t size);

/* Fills up the page that was begun. */
void gt_v1_pages_flush(void);

#endif
