/* See top_print.h. */
#include "top_print.h"

#include "call_places.h"
#include "idle_line.h"
#include "kinds.h"
#include "nameless.h"
#include "reading.h"
#include "select.h"
#include "short_name.h"
#include "table.h"
#include "top_sched.h"
#include "top_waiting.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

/* Rows ---------------------------------------------------------------------------------------
 */

enum ender { NOBODY, ITSELF, CALL, END_OF_THREAD };
static const char *const ender_names[] = {NULL, "itself", "call", "end_of_thread"};

static enum ender ender_of(const struct gt_top_row *row)
{
    if (!row->ended)
        return NOBODY;
    if (!*row->end)
        return ITSELF;
    return gt_top_is_end_of_thread(row) ? END_OF_THREAD : CALL;
}

static void print_end_words(const struct gt_top_row *row, enum ender ender)
{
    switch (ender) {
    case NOBODY: printf(", still waiting when the trace ends"); break;
    case ITSELF: fputs(row->kind == GT_SCHED ? "" : ", no waker", stdout); break;
    case END_OF_THREAD:
        printf(row->by ? ", ended by the end of thread " : ", ended by the ends of threads");
        if (row->by)
            gt_print_thread(row->by);
        break;
    case CALL: printf(", ended by "); gt_print_place(row->end, row->waker_site);
    }
}

static void print_end(const struct gt_top *top, const struct gt_top_row *row)
{
    enum ender ender = ender_of(row);
    gt_cell_truth("ended", row->ended);
    if (gt_row_is_text() && (gt_top_has_wakers(top) || !row->ended))
        print_end_words(row, ender);
    if (!gt_top_has_wakers(top))
        return;
    gt_cell_text("ended_by", NULL, 0, ender_names[ender]);
    gt_cell_thread("waker", NULL, row->by);
    gt_cell_its_place("waker_place", NULL, ender == CALL ? row->waker : NULL);
}

static void print_times(const struct gt_top *top, const struct gt_top_row *row)
{
    gt_cell_count("count", "count", gt_width(9, 6), row->count);
    gt_cell_ns("average_ns", gt_head_if_room("average"), 9, row->ns / row->count);
    gt_cell_ns("longest_ns", gt_head_if_room("longest"), 9, row->longest);
    if (top->lengths)
        gt_cell_lengths(&row->lengths, gt_wide_names);
    gt_cell_text("kind", "kind", -7, gt_kind_names[row->kind]);
    if (top->report == GT_TOP_CUM)
        return;
    gt_cell_place("what <- where", row->stack);
    print_end(top, row);
}

/* Prints a row. sum: of the rows up to this one, as a share of `all`. */
static void print_row(const struct gt_top *top, const struct gt_top_row *row, uint64_t sum,
                      uint64_t all)
{
    const char *cum = top->report == GT_TOP_CUM ? "cum" : NULL;
    int width = gt_width(10, 8);
    gt_row_begin();
    if (top->cpu)
        gt_cell_count("samples", cum ? cum : "samples", width, row->count);
    else if (top->report == GT_TOP_PREEMPTED)
        gt_cell_ns("no_cpu_ns", "no CPU", width, row->ns);
    else
        gt_cell_ns("total_ns", cum ? cum : "waited", width, row->ns);
    gt_cell_share(NULL, "%", 6, row->ns, all);
    if (top->report != GT_TOP_CUM)
        gt_cell_share(NULL, top->cpu ? "sum" : gt_head_if_room("sum"), 6, sum, all);
    if (!top->cpu)
        print_times(top, row);
    if (top->cpu || top->report == GT_TOP_CUM)
        gt_cell_function("function", "function", row->what);
    gt_row_end();
}

static void print_head(const struct gt_top *top)
{
    gt_head_begin();
    print_row(top, &(struct gt_top_row){.count = 1, .what = "", .end = "", .ended = true}, 0, 0);
    gt_head_end();
}

/* Prints the rows of one thread, or of all (NULL). Returns how many more there are. */
static size_t print_rows(const struct gt_top *top, const struct gt_top_rows *rows,
                         const struct gt_thread_state *thread, uint64_t all)
{
    uint64_t sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct gt_top_row *row = &rows->row[i];
        if (row->thread != thread || n++ >= top->most)
            continue;
        sum += row->ns;
        print_row(top, row, sum, all);
    }
    return n > top->most ? n - top->most : 0;
}

static const char *name_of_rows(const struct gt_top *top)
{
    return top->cpu || top->report == GT_TOP_CUM ? "functions" : "waits";
}

/* Threads ------------------------------------------------------------------------------------ */

struct thread_total {
    const struct gt_thread_state *thread;
    uint64_t ns;
};

static uint64_t total(const struct gt_top_rows *rows, const struct gt_thread_state *thread)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < rows->n; i++)
        ns += thread == rows->row[i].thread ? rows->row[i].ns : 0;
    return ns;
}

GT_ORDER(by_total, struct thread_total, GT_DOWN(ns))

static uint64_t lived(const struct gt_thread_state *t)
{
    uint64_t from = t->begin;
    return gt_select_clip(&from, t->end);
}

static void print_thread(const struct gt_top *top, const struct gt_thread_state *t, uint64_t all)
{
    gt_row_begin();
    gt_cell_words("\nthread ");
    gt_cell_thread("thread", "", t);
    gt_cell_words(top->cpu ? ": " : ": waited ");
    if (top->cpu) {
        gt_cell_count("samples", "", 0, all);
        gt_cell_words(" CPU samples");
    } else {
        gt_cell_ns("total_ns", "", 0, all);
        gt_cell_words(" of ");
        gt_cell_ns("lived_ns", "", 0, lived(t));
    }
    gt_table_begin(name_of_rows(top));
    size_t more = print_rows(top, &top->cut, t, all);
    more += print_rows(top, &top->over, t, all);
    gt_table_end_cut(name_of_rows(top), more);
    gt_row_end();
}

static void print_threads(const struct gt_top *top)
{
    struct thread_total *totals = gt_need(calloc(top->threads->n + 1, sizeof *totals));
    size_t n = 0;
    for (const struct gt_thread_state *t = top->threads->first; t; t = t->next)
        totals[n++] = (struct thread_total){t, total(&top->over, t) + total(&top->cut, t)};
    qsort(totals, n, sizeof *totals, by_total);
    gt_table_begin("by_thread");
    for (size_t i = 0; i < n && totals[i].ns; i++)
        print_thread(top, totals[i].thread, totals[i].ns);
    gt_table_end();
    free(totals);
}

/* All ---------------------------------------------------------------------------------------- */

static void explain_nameless(const struct gt_top *top)
{
    struct gt_nameless these = {0};
    for (size_t i = 0; i < top->over.n && i < top->most; i++) {
        const struct gt_top_row *row = &top->over.row[i];
        gt_nameless_add(&these, row->site ? row->site->func : row->what,
                        row->site ? row->site->file : "", row->ns);
    }
    if (gt_report_json) {
        gt_nameless_json(&these);
        return;
    }
    gt_nameless_print(&these, top->cpu ? "CPU time above is in" : "time above is in",
                      top->threads->trace);
}

static void print_totals(const struct gt_top *top)
{
    const struct gt_trace *t = top->threads->trace;
    uint64_t from = 0, ns = gt_select_clip(&from, t->ns), n = top->all.count - top->all.further;
    gt_report_title(top->threads);
    if (ns < t->ns)
        gt_report_words("from %s to %s: ", gt_duration(from), gt_duration(from + ns));
    if (top->cpu)
        gt_report_words("%s%s\n", gt_count(n, "CPU sample"),
                        n || gt_select_any() ? "" : "; gotrace --cpu-hz=100 … records them");
    else if (top->report == GT_TOP_PREEMPTED)
        gt_report_words("%s for threads that had no CPU, for %s in all\n", gt_count(n, "wait"),
                        gt_duration(top->all.ns));
    else
        gt_report_words("%s, %s in all\n", gt_count(n, "wait"), gt_duration(top->all.ns));
    gt_report_number(top->cpu ? "samples" : "count", n);
    if (!top->cpu)
        gt_report_number(top->report == GT_TOP_PREEMPTED ? "no_cpu_ns" : "total_ns", top->all.ns);
}

void gt_top_print(struct gt_top *top)
{
    gt_report_begin(top->threads);
    print_totals(top);
    if (!top->cpu && top->report != GT_TOP_PREEMPTED)
        gt_print_waiting(top->threads, top->kinds, top->most);
    if (!top->cpu)
        gt_idle_sum_print(&top->idle);
    if (!top->cpu && !gt_top_has_wakers(top))
        gt_in_kernel_print(&top->in_kernel);
    print_head(top);
    if (top->report == GT_TOP_BY_THREAD) {
        print_threads(top);
    } else {
        gt_table_begin(name_of_rows(top));
        gt_table_end_cut(name_of_rows(top), print_rows(top, &top->over, NULL, top->all.ns));
    }
    if (top->kinds == GT_KINDS_SCHED && top->report != GT_TOP_BY_THREAD &&
        top->report != GT_TOP_CUM)
        gt_top_sched_print(top->threads, top->most);
    explain_nameless(top);
    gt_report_end();
}
