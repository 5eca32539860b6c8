/*
 * Reports, as text for people and as JSON for programs. What a report tells stands once in its
 * code: a row is its cells, each with its name in JSON, its head in the text, its unit by the
 * function, and its value. The line of heads is a row like all others, whose values do not matter.
 */
#ifndef GT_TABLE_H
#define GT_TABLE_H

#include "encoder/read/threads.h"

/* --json: set before anything is printed. */
extern bool gt_report_json;

/* The document, which begins with what all have; in JSON an object. */
void gt_report_begin(const struct gt_threads *threads);
void gt_report_end(void);

/* Of the text: "t.out: 1.5s, 4 threads; "; and any other words between rows. */
void gt_report_title(const struct gt_threads *threads);
void gt_report_words(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Of JSON: a number that is in no row. */
void gt_report_number(const char *name, uint64_t number);

/* Rows, an array in JSON; cut: so many are left out, which is more_NAME there. */
void gt_table_begin(const char *name);
void gt_table_end(void);
void gt_table_end_cut(const char *name, size_t more);

/* A line and an object. After its cells it may have tables of its own: lines below. */
void gt_row_begin(void);
void gt_row_end(void);

/* Between these two rows print the heads of their cells instead; and in JSON nothing. */
void gt_head_begin(void);
void gt_head_end(void);

/*
 * Cells. name: NULL: JSON has it not; head: NULL: the text has it not, "": it has no head. width:
 * of the text, to the right; to the left if < 0; 0: as long as it is. Numbers stand behind one
 * blank, texts behind two.
 */
void gt_cell_ns(const char *name, const char *head, int width, uint64_t ns);
void gt_cell_count(const char *name, const char *head, int width, uint64_t count);
void gt_cell_share(const char *name, const char *head, int width, uint64_t n, uint64_t of); /* % */
void gt_cell_unknown(const char *name, const char *head, int width); /* of these: "-", null */
void gt_cell_text(const char *name, const char *head, int width, const char *text);

/* The rest is as long as it is; without what it is about, no text, and null. */
void gt_cell_function(const char *name, const char *head, const char *function);
void gt_cell_thread(const char *name, const char *head, const struct gt_thread_state *t);

/* A stack's place (places.h), and the stack: members of the row; or an object, of any but NULL. */
void gt_cell_place(const char *head, const struct gt_callers *stack);
void gt_cell_its_place(const char *name, const char *head, const struct gt_callers *stack);

void gt_cell_truth(const char *name, bool truth); /* of JSON alone */

/* Of the text and its heads: right behind the last cell, and before the next one. */
void gt_cell_words(const char *words);

/* Whether it is a row in a text, where something else may be printed. */
bool gt_row_is_text(void);

#endif
