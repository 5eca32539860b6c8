/*
 * Reports, as text for people and as JSON for programs. The code of a report states each row once.
 * A row is its cells, and a cell has a name in JSON, a head in the text, a unit (by the function)
 * and a value. The line of heads is a row whose values do not matter.
 */
#pragma once

#include "lengths.h"

#include "encoder/read/threads.h"

/* --json. Set it before anything is printed. */
extern bool gt_report_json;

/*
 * Begin and end the report. In JSON it is an object, which begins with the members of every report.
 */
void gt_report_begin(const struct gt_threads *threads);
void gt_report_end(void);

/* Text only: "t.out: 1.5s, 4 threads; ", after a warning if the file is cut; and any other words
 * between rows. */
void gt_report_title(const struct gt_threads *threads);
void gt_report_words(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* JSON only: a number outside all rows. */
void gt_report_number(const char *name, uint64_t number);

/* Begin and end rows, in JSON an array. `more` rows were left out: the number becomes more_NAME. */
void gt_table_begin(const char *name);
void gt_table_end(void);
void gt_table_end_cut(const char *name, size_t more);

/*
 * Begin and end a row: a line, in JSON an object. After its cells a row may have tables of its own.
 */
void gt_row_begin(void);
void gt_row_end(void);

/* A row between these two prints only the heads of its cells, and nothing in JSON. */
void gt_head_begin(void);
void gt_head_end(void);

/*
 * A terminal narrower than GT_TABLE_COLUMNS characters shows fewer and narrower cells.
 * On such a terminal gt_head_if_room returns NULL, which leaves the cell out.
 */
enum { GT_TABLE_COLUMNS = 110 };
const char *gt_head_if_room(const char *head);
int gt_width(int wide, int narrow);

/*
 * Cells. One blank precedes a cell that is aligned to the right, two precede the others.
 *
 *   name   NULL: not in JSON
 *   head   NULL: not in the text. "": without a head
 *   width  of the text, aligned to the right. < 0: to the left. 0: as long as the text
 */
void gt_cell_ns(const char *name, const char *head, int width, uint64_t ns);
void gt_cell_count(const char *name, const char *head, int width, uint64_t count);
void gt_cell_share(const char *name, const char *head, int width, uint64_t n, uint64_t of); /* % */
void gt_cell_lengths(const struct gt_lengths *lengths, bool in_text); /* several cells */
void gt_cell_unknown(const char *name, const char *head, int width);  /* prints "-", in JSON null */
void gt_cell_text(const char *name, const char *head, int width, const char *text);

/* Cells without a width. Without a thread the text is empty, and JSON has null. */
void gt_cell_function(const char *name, const char *head, const char *function);
void gt_cell_thread(const char *name, const char *head, const struct gt_thread_state *t);

/*
 * The place of a stack (call_places.h) and the stack: members of the row, or an object of their
 * own. The object is null if the stack is NULL.
 */
void gt_cell_place(const char *head, const struct gt_callers *stack);
void gt_cell_its_place(const char *name, const char *head, const struct gt_callers *stack);

void gt_cell_truth(const char *name, bool truth); /* JSON only */

/* Text and heads only: words right behind the last cell and before the next one. */
void gt_cell_words(const char *words);

/* Whether the row is printed as text, where other words can be added. */
bool gt_row_is_text(void);
