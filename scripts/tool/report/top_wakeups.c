/* See top_wakeups.h. */
#include "top_wakeups.h"

#include "roles.h"
#include "table.h"
#include "top_waiting.h"

#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <stdlib.h>
#include <string.h>

/* A condition variable, by its name. */
struct variable {
    const char *name;
    uint64_t waits, signalled, by_itself, waiting; /* waiting: still, at the end of the trace */
    uint64_t signals, vain;
};

static struct {
    struct variable *variable;
    size_t n;
} all;

/* A linear search: only variables with waiters or signals are here, and they are few. */
static struct variable *variable_of(const char *name)
{
    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.variable[i].name, name) == 0)
            return &all.variable[i];
    }
    struct variable *its = GT_ADD(all.variable, all.n);
    its->name = name;
    return its;
}

void gt_top_wakeups_add(const struct gt_span *span)
{
    if (!gt_begins_at_condition(span))
        return;
    struct variable *v = variable_of(span->wanted->lock->name);
    v->waits++;
    v->signalled += span->ended && span->waker;
    v->by_itself += span->ended && !span->waker;
    v->waiting += !span->ended;
}

static int by_use(const void *a, const void *b)
{
    const struct variable *x = a, *y = b;
    uint64_t m = x->waits + x->signals, n = y->waits + y->signals;
    return m > n ? -1 : m < n ? 1 : strcmp(x->name, y->name);
}

static bool is_same(const struct gt_signals_row *a, const struct gt_signals_row *b)
{
    return strcmp(a->name, b->name) == 0 && a->how_len == b->how_len &&
           memcmp(a->how, b->how, (size_t)a->how_len) == 0;
}

/* Adds the row to an earlier one of the same line of the program, which may have several calls. */
static bool fold(struct gt_trace *trace, size_t i)
{
    struct gt_signals_row *row = &trace->signals[i];
    for (size_t k = 0; k < i; k++) {
        struct gt_signals_row *first = &trace->signals[k];
        if (!is_same(first, row))
            continue;
        first->signals += row->signals;
        first->vain += row->vain;
        return true;
    }
    return false;
}

static void add_signals(struct gt_trace *trace)
{
    size_t n = 0;
    for (size_t i = 0; i < trace->n_signals; i++) {
        struct variable *v = variable_of(trace->signals[i].name);
        v->signals += trace->signals[i].signals;
        v->vain += trace->signals[i].vain;
        trace->signals[n] = trace->signals[i];
        n += !fold(trace, n);
    }
    trace->n_signals = n;
}

static void print_signals(const struct gt_signals_row *s)
{
    char *place = gt_need(strndup(s->how, (size_t)s->how_len));
    gt_row_begin();
    gt_cell_text(NULL, "", gt_width(39, 17), NULL);
    gt_cell_count("signals", "", gt_width(9, 8), s->signals);
    gt_cell_count("vain", "", gt_width(9, 7), s->vain);
    gt_cell_words("    ");
    gt_cell_text("place", "", 0, place);
    gt_row_end();
    free(place);
}

static void print(const struct variable *v, const struct gt_trace *trace)
{
    gt_row_begin();
    gt_cell_count("waits", "waits", gt_width(9, 7), v->waits);
    gt_cell_count("signalled", "signalled", 9, v->signalled);
    gt_cell_count("by_itself", gt_head_if_room("no waker"), 9, v->by_itself);
    gt_cell_count("waiting", gt_head_if_room("waiting"), 9, v->waiting);
    gt_cell_count("signals", "signals", gt_width(9, 8), v->signals);
    gt_cell_count("vain", "missed", gt_width(9, 7), v->vain);
    gt_cell_text("variable", "variable, and where it is signalled", 0, v->name);
    gt_table_begin("signallers");
    for (size_t i = 0; i < trace->n_signals; i++) {
        if (strcmp(trace->signals[i].name, v->name) == 0)
            print_signals(&trace->signals[i]);
    }
    gt_table_end();
    gt_row_end();
}

void gt_top_wakeups_print(const struct gt_threads *threads, size_t most)
{
    struct gt_trace *trace = threads->trace;
    size_t i;
    add_signals(trace);
    if (all.n)
        qsort(all.variable, all.n, sizeof *all.variable, by_use);
    gt_report_begin(threads);
    gt_report_title(threads);
    gt_report_words("%s\n", gt_count(all.n, "condition variable"));
    gt_print_waiting(threads, 1u << GT_SYNC, most);
    gt_head_begin();
    print(&(struct variable){.name = ""}, &(struct gt_trace){0});
    gt_head_end();
    gt_table_begin("variables");
    for (i = 0; i < all.n && i < most; i++)
        print(&all.variable[i], trace);
    gt_table_end_cut("variables", all.n - i);
    if (!trace->n_signals && all.n)
        gt_report_words("(No signals are recorded: the trace has no end, or no thread sent one "
                        "after a wait.)\n");
    gt_report_end();
}
