/*
 * The tables that the events of a v1 file refer to: strings, stacks, the clock's frequency. Each
 * entry is in the file once, before the first event that refers to it. Drain side only.
 */
#pragma once

#include "encoder/file/kept_generation.h"

/* Begins a new file. */
void gt_v1_tables_open(void);

/* The file has these strings and stacks already, by id. */
struct gt_memo;
void gt_v1_tables_go_on(struct gt_memo *strings, struct gt_memo *stacks);

/* Writes the frequency, if it is not in the file. */
void gt_v1_tables_frequency(void);

/*
 * Stacks without a struct gt_stack, for goroutines whose beginning is not known. Viewers up to Go
 * 1.22 want to know where every goroutine began, and name it after that.
 */
enum { GT_V1_STACK_MAIN = 0x7ffffffe, GT_V1_STACK_UNKNOWN };
void gt_v1_tables_unknown(void);

/* Writes where and with what the trace was recorded (origin.h, setup.h). */
void gt_v1_tables_origin(void);

/* Write that nothing is missing; and that the trace is of a Go program. */
void gt_v1_tables_whole(void);
void gt_v1_tables_of_go(void);

/*
 * Writes the entries that generation gen uses; or, if `kept` is not NULL, those of that kept
 * generation.
 */
void gt_v1_tables_write(uint32_t gen, const struct gt_kept *kept);

/* Writes the accounts that are among a generation's buffers. */
void gt_v1_tables_account(const struct gt_buf *plain);

/*
 * Returns the argument of GoCreate for the stack of a new goroutine. From Go 1.7 on it is the
 * stack's id. In Go 1.5 it is the address where the goroutine begins. Today's viewers take that
 * for an id, so a stack with that id is written for them.
 */
uint64_t gt_v1_tables_routine(uint64_t stack);

/* Returns the length of the text that a log ends with; *text is valid until the next call. */
uint32_t gt_v1_tables_value(uint64_t id, const char **text);

/*
 * Writes a text as a string of the file, and returns its id. The file has one table of strings, so
 * the string is written once.
 */
uint64_t gt_v1_tables_text(uint64_t id);
