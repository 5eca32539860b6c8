/*
 * What the events of a v1 file refer to: strings, stacks, the clock's frequency. Each stands in the
 * file once, before what uses it. Drain side only.
 */
#ifndef GT_V1_TABLES_H
#define GT_V1_TABLES_H

#include "encoder/ring.h"

/* A new file. */
void gt_v1_tables_open(void);

/* It has these already, by id. */
struct gt_memo;
void gt_v1_tables_go_on(struct gt_memo *strings, struct gt_memo *stacks);

/* The frequency, if the file does not have it. */
void gt_v1_tables_frequency(void);

/*
 * Stacks without a struct gt_stack: the viewers up to Go 1.22 want to know where every goroutine
 * began, and name it after that.
 */
enum { GT_V1_STACK_MAIN = 0x7ffffffe, GT_V1_STACK_UNKNOWN };
void gt_v1_tables_unknown(void);

/* Where it was recorded (origin.h). */
void gt_v1_tables_origin(void);

/* That nothing is missing; that it is of a Go program. */
void gt_v1_tables_whole(void);
void gt_v1_tables_of_go(void);

/* Those that generation gen uses, or `kept` (else NULL), which was kept. */
void gt_v1_tables_write(uint32_t gen, const struct gt_kept *kept);

/* The accounts among a generation's buffers. */
void gt_v1_tables_account(const struct gt_buf *plain);

/*
 * What GoCreate has for the stack of a new goroutine: from Go 1.7 on its id. Before that the
 * address where it begins, which viewers of today take for an id: for them there is a stack with
 * that id.
 */
uint64_t gt_v1_tables_routine(uint64_t stack);

/* The text that a log ends with, valid until the next call; its length. */
uint32_t gt_v1_tables_value(uint64_t id, const char **text);

/* A text as a string of the file, which stays there: readers have one table for all of it. */
uint64_t gt_v1_tables_text(uint64_t id);

#endif
