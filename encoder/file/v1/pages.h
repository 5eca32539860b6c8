/*
 * The bytes of a v1 file. Drain side only.
 *
 * format/README.md says why the file is made of pages, after each of which it can be read as a
 * whole. It also says why a page stops the goroutines that run, and why collections are written
 * when they are over.
 */
#pragma once

#include "encoder/format/format.h"

#define GT_V1_PAGE 4096u
#define GT_V1_RECORD_MAX 2048u /* the longest event that all readers take */

struct gt_merge_g;

/* Returns the event that starts g again on P p, where it was stopped, and sets its arguments. */
typedef enum gt_v1_type gt_v1_start_fn(struct gt_merge_g *g, uint32_t p, uint64_t *args);

/* Starts a file: the header goes into the first page. */
void gt_v1_pages_open(gt_v1_start_fn *start);

/*
 * For a caller that has read a file with pages and goes on with it: gt_v1_pages_go_on comes after
 * gt_v1_pages_open. gt_v1_pages_stopped: an event of the file stopped the goroutine on P p, which
 * runs on. gt_v1_pages_counted: an event of the file has that number.
 */
void gt_v1_pages_go_on(void);
void gt_v1_pages_stopped(uint32_t p, uint64_t seq, uint64_t ts);
void gt_v1_pages_counted(uint64_t seq);

/*
 * Writes an event on P p at ts, not earlier than the event before. args are as in gt_v1_events for
 * the newest version; those that this version does not have are left out. `tail`: the text of a
 * user log.
 */
void gt_v1_pages_event(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args,
                       const void *tail, size_t tail_size);

/* From its last event on P p runs goroutine g; NULL: none. */
void gt_v1_pages_running(uint32_t p, struct gt_merge_g *g);

/* Writes that all goroutines that run have run until ts. A flush must follow. */
void gt_v1_pages_ran(uint64_t ts);

/*
 * Holds the events of a range: its beginning, what happens in it, and its end. They are
 * GT_V1_HELD_MAX at most, and no other event may come between them on their P. gt_v1_pages_release
 * writes them into one page.
 */
enum { GT_V1_HELD_MAX = 8 };
void gt_v1_pages_hold(enum gt_v1_type type, uint32_t p, uint64_t ts, const uint64_t *args);
void gt_v1_pages_release(void);

/* The number in Go 1.5's global order that the next event gets. */
uint64_t gt_v1_pages_next_seq(void);

/* Writes a complete record that belongs to no P: a string, stack or frequency. */
void gt_v1_pages_record(const void *record, size_t size);

/* Pads the page that was begun, and writes it. */
void gt_v1_pages_flush(void);
