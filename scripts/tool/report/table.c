/* See table.h. */
#include "table.h"

#include "call_places.h"
#include "frame_code.h"
#include "reading.h"
#include "select.h"

#include "encoder/base/utf8.h"
#include "scripts/tool/fold.h"
#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERSION = 1 }; /* of the documents: new members do not change it */

bool gt_report_json;

static struct {
    bool heads;  /* heads are printed, and no values */
    bool open;   /* the line has begun */
    bool joined; /* words join it to what comes next */
} line;

/* Text --------------------------------------------------------------------------------------- */

static void end_line(void)
{
    if (line.open)
        putchar('\n');
    line.open = line.joined = false;
}

/* Fills the cell with blanks; its width is in characters. */
static void put_text(int width, const char *text)
{
    int missing = abs(width) - (int)gt_utf8_length(text);
    missing = missing > 0 ? missing : 0;
    printf("%*s%s%*s", width > 0 ? missing : 0, "", text, width < 0 ? missing : 0, "");
}

/* Prints the separator before a cell, and its head. Returns whether the value follows as text. */
static bool begin_text(const char *head, int width)
{
    const char *blanks = width > 0 ? " " : "  ";
    if (gt_report_json || !head || (line.heads && !width && !*head))
        return false;
    fputs(line.open && !line.joined ? blanks : "", stdout);
    line.open = true;
    line.joined = false;
    if (line.heads)
        printf("%*s", width, head);
    return !line.heads;
}

const char *gt_head_if_room(const char *head)
{
    return gt_fold_is_below(GT_TABLE_COLUMNS) ? NULL : head;
}

int gt_width(int wide, int narrow)
{
    return gt_fold_is_below(GT_TABLE_COLUMNS) ? narrow : wide;
}

static bool is_json(const char *name)
{
    return gt_report_json && !line.heads && name;
}

void gt_cell_ns(const char *name, const char *head, int width, uint64_t ns)
{
    if (begin_text(head, width))
        printf("%*s", width, gt_duration(ns));
    if (is_json(name))
        gt_json_number(name, ns);
}

void gt_cell_count(const char *name, const char *head, int width, uint64_t count)
{
    if (begin_text(head, width))
        printf("%*" PRIu64, width, count);
    if (is_json(name))
        gt_json_number(name, count);
}

void gt_cell_share(const char *name, const char *head, int width, uint64_t n, uint64_t of)
{
    if (begin_text(head, width))
        printf("%*.1f%%", width - 1, of ? 100.0 * (double)n / (double)of : 0);
    if (is_json(name))
        gt_json_number(name, n);
}

static void put_histogram(const struct gt_lengths *lengths)
{
    gt_json_open("histogram", '[');
    for (size_t i = 0; i < GT_DECADES; i++) {
        if (!lengths->decade[i])
            continue;
        gt_json_open(NULL, '{');
        gt_json_number("from_ns", gt_lengths_decade(i));
        gt_json_number("count", lengths->decade[i]);
        gt_json_close('}');
    }
    gt_json_close(']');
}

void gt_cell_lengths(const struct gt_lengths *lengths, bool in_text)
{
    gt_cell_ns("p50_ns", in_text ? "median" : NULL, 9, gt_lengths_percentile(lengths, 500));
    gt_cell_ns("p95_ns", in_text ? "p95" : NULL, 9, gt_lengths_percentile(lengths, 950));
    gt_cell_ns("p99_ns", in_text ? "p99" : NULL, 9, gt_lengths_percentile(lengths, 990));
    if (in_text)
        gt_cell_text(NULL, "1us...10s", 0, gt_lengths_bars(lengths));
    if (is_json("histogram"))
        put_histogram(lengths);
}

void gt_cell_unknown(const char *name, const char *head, int width)
{
    if (begin_text(head, width))
        printf("%*s", width, "-");
    if (is_json(name))
        gt_json_null(name);
}

void gt_cell_text(const char *name, const char *head, int width, const char *text)
{
    if ((text || width || line.heads) && begin_text(head, width))
        put_text(width, text ? text : "");
    if (is_json(name))
        gt_json_text_or_null(name, text);
}

void gt_cell_function(const char *name, const char *head, const char *function)
{
    if (begin_text(head, 0))
        gt_print_function(function);
    if (is_json(name))
        gt_json_text(name, function);
}

void gt_cell_words(const char *words)
{
    if (gt_report_json)
        return;
    fputs(words, stdout);
    line.open = line.joined = true;
}

bool gt_row_is_text(void)
{
    return !gt_report_json && !line.heads;
}

/* What consists of more ---------------------------------------------------------------------- */

static void put_thread(const char *name, const struct gt_thread_state *t)
{
    gt_json_open(name, '{');
    gt_json_number("id", t->g);
    if (t->thread != GT_NO_THREAD)
        gt_json_number("tid", t->thread);
    else
        gt_json_null("tid");
    gt_json_text_or_null("name", t->name);
    gt_json_text_or_null("routine", t->routine);
    gt_json_close('}');
}

void gt_cell_thread(const char *name, const char *head, const struct gt_thread_state *t)
{
    if ((t || line.heads) && begin_text(head, 0))
        gt_print_thread(t);
    if (is_json(name) && t)
        put_thread(name, t);
    else if (is_json(name))
        gt_json_null(name);
}

static void put_source(const struct gt_where *w)
{
    gt_json_text_or_null("function", w ? w->func : NULL);
    gt_json_text_or_null("file", w ? w->file : NULL);
    if (w && w->line)
        gt_json_number("line", w->line);
    else
        gt_json_null("line");
}

static void put_stack(const struct gt_callers *stack)
{
    gt_json_open("stack", '[');
    for (uint32_t i = 0; stack && i < stack->n; i++) {
        gt_json_open(NULL, '{');
        put_source(&stack->frame[i]);
        gt_json_text_or_null("module", gt_frame_module(stack, i));
        gt_json_close('}');
    }
    gt_json_close(']');
}

static void put_place(const struct gt_callers *stack)
{
    char *text = gt_place_text(gt_leaf_of(stack), gt_site_of(stack));
    gt_json_text("place", text);
    gt_json_text("what", gt_leaf_of(stack));
    put_source(gt_site_of(stack));
    put_stack(stack);
    free(text);
}

void gt_cell_place(const char *head, const struct gt_callers *stack)
{
    if (begin_text(head, 0))
        gt_print_place(gt_leaf_of(stack), gt_site_of(stack));
    if (is_json(""))
        put_place(stack);
}

void gt_cell_its_place(const char *name, const char *head, const struct gt_callers *stack)
{
    if ((stack || line.heads) && begin_text(head, 0))
        gt_print_place(gt_leaf_of(stack), gt_site_of(stack));
    if (is_json(name) && stack) {
        gt_json_open(name, '{');
        put_place(stack);
        gt_json_close('}');
    } else if (is_json(name)) {
        gt_json_null(name);
    }
}

void gt_cell_truth(const char *name, bool truth)
{
    if (is_json(name))
        gt_json_truth(name, truth);
}

/* Rows --------------------------------------------------------------------------------------- */

void gt_row_begin(void)
{
    end_line();
    if (is_json(""))
        gt_json_open(NULL, '{');
}

void gt_row_end(void)
{
    end_line();
    if (is_json(""))
        gt_json_close('}');
}

void gt_head_begin(void)
{
    line.heads = true;
}

void gt_head_end(void)
{
    end_line();
    line.heads = false;
}

void gt_table_begin(const char *name)
{
    if (is_json(name))
        gt_json_open(name, '[');
}

void gt_table_end(void)
{
    if (is_json(""))
        gt_json_close(']');
}

void gt_table_end_cut(const char *name, size_t more)
{
    char its[32];
    snprintf(its, sizeof its, "more_%s", name);
    gt_table_end();
    gt_report_number(its, more);
}

/* Documents ---------------------------------------------------------------------------------- */

void gt_report_begin(const struct gt_threads *threads)
{
    const struct gt_trace *trace = threads->trace;
    uint64_t from = 0, ns = gt_select_clip(&from, trace->ns);
    if (!gt_report_json)
        return;
    gt_json_begin();
    gt_json_number("version", VERSION);
    gt_json_text("trace", trace->path);
    gt_json_number("duration_ns", trace->ns);
    gt_json_number("from_ns", from);
    gt_json_number("to_ns", from + ns);
    gt_json_number("threads", threads->n);
    gt_json_number("lost_bytes", trace->lost);
}

void gt_report_end(void)
{
    if (gt_report_json)
        gt_json_end();
}

void gt_report_title(const struct gt_threads *threads)
{
    gt_report_words("%s", gt_cut_words(threads->trace));
    gt_report_words("%s: %s, %s; ", gt_printable(threads->trace->path),
                    gt_duration(threads->trace->ns), gt_count(threads->n, "thread"));
}

void gt_report_words(const char *format, ...)
{
    va_list args;
    if (gt_report_json)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

void gt_report_number(const char *name, uint64_t number)
{
    if (is_json(name))
        gt_json_number(name, number);
}
