/* `gotrace why --json`: what the page says, for programs. gotrace(1) documents it. */
#include "page.h"

#include "scripts/tool/json.h"
#include "scripts/tool/report/deadlocks.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kind_names[] = {[GT_HALF] = "half",
                                         [GT_FREE_LOCK] = "free_lock",
                                         [GT_MORE] = "more",
                                         [GT_SLOT] = "slot",
                                         [GT_CPUS] = "cpus"};

static const char *const band_names[GT_BANDS] = {
    [GT_BAND_RUNNING] = "running", [GT_BAND_NO_CPU] = "runnable", [GT_BAND_CALLS] = "calls",
    [GT_BAND_LOCKS] = "locks",     [GT_BAND_OTHER] = "waiting",
};

static void put_number(const char *name, uint64_t value)
{
    printf(",\"%s\":%" PRIu64, name, value);
}

static void put_section(const struct gt_why *why, uint32_t section)
{
    const struct gt_section *s = &why->sections.at[section];
    printf("\"kind\":\"%s\"", gt_kind_names[s->kind]);
    gt_json_text("what", s->what ? s->what : "");
    gt_json_text("function", s->func);
    gt_json_text("file", s->file);
    put_number("line", s->line);
    gt_json_text("lock", s->lock == GT_NOBODY ? "" : why->graph.lock[s->lock]->name);
    gt_json_text("name", gt_section_name(&why->sections, section));
}

static void put_path(const struct gt_why *why, const char *name, const struct gt_path *path)
{
    printf(",\"%s\":{\"ns\":%" PRIu64 ",\"rows\":[", name, path->ns);
    for (size_t i = 0; i < path->n; i++) {
        const struct gt_path_row *row = &path->row[i];
        const struct gt_thread_state *t = why->graph.lane[row->thread].thread;
        printf(i ? ",\n{" : "{");
        put_section(why, row->section);
        put_number("ns", row->ns);
        put_number("count", row->count);
        put_number("longest_ns", row->longest);
        put_number("longest_at_ns", row->longest_at);
        put_number("threads", row->threads);
        gt_json_text("thread", *t->name ? t->name : t->routine);
        printf("}");
    }
    printf("]}");
}

static void put_whatifs(const struct gt_why *why)
{
    const struct gt_whatifs *all = &why->whatifs;
    printf(",\n\"replay\":{\"from_ns\":%" PRIu64, all->from);
    put_number("to_ns", all->to);
    put_number("unchanged_ns", all->base_ns);
    printf(",\"sound\":%s,\"cpus\":%.2f},\n\"what_if\":[",
           gt_whatifs_are_sound(all) ? "true" : "false", all->cpus);
    for (size_t i = 0; i < all->n; i++) {
        const struct gt_whatif *it = &all->at[i];
        printf("%s{\"change\":\"%s\",\"gain\":%.4f", i ? ",\n" : "", kind_names[it->kind],
               it->gain);
        gt_json_text("name", gt_whatif_name(why, it));
        if (it->kind == GT_HALF) {
            printf(",\"section\":{");
            put_section(why, it->section);
            printf("}");
        } else if (it->kind == GT_FREE_LOCK) {
            gt_json_text("lock", why->graph.lock[it->lock]->name);
        } else if (it->kind == GT_MORE) {
            gt_json_text("pool", it->pool.routine);
            put_number("threads", it->pool.threads);
        } else if (it->kind == GT_SLOT) {
            gt_json_text("lock", why->graph.lock[it->lock]->name);
            put_number("slots", it->slots);
        }
        printf("}");
    }
    printf("]");
}

static void put_findings(const struct gt_why *why)
{
    bool deadlock = gt_any_deadlock(&why->graph.threads);
    printf(",\n\"findings\":[");
    if (deadlock)
        printf("{\"finding\":\"deadlock\",\"text\":\"Threads wait for each other, or for one that "
               "has ended, when the trace ends.\",\"command\":\"top\"}");
    for (size_t i = 0; i < why->findings.n; i++) {
        const struct gt_finding *it = &why->findings.at[i];
        printf("%s{\"finding\":\"%s\"", i || deadlock ? ",\n" : "", it->name);
        gt_json_text("text", it->text);
        gt_json_text("command", it->command);
        if (it->at != GT_NO_TIME)
            put_number("at_ns", it->at);
        printf("}");
    }
    printf("]");
}

static void put_bands(const struct gt_why *why)
{
    printf(",\n\"parallelism\":{\"columns\":%d", GT_COLUMNS);
    for (int k = 0; k < GT_BANDS; k++) {
        printf(",\n\"%s\":{\"average\":%.3f,\"threads\":[", band_names[k], why->survey.total[k]);
        for (int i = 0; i < GT_COLUMNS; i++)
            printf(i ? ",%.3f" : "%.3f", why->survey.band[k][i]);
        printf("]}");
    }
    printf("}");
}

void gt_why_print_json(struct gt_why *why)
{
    printf("{\"version\":1");
    gt_json_text("trace", why->graph.trace.path);
    put_number("from_ns", why->from);
    put_number("to_ns", why->to);
    put_number("threads", why->graph.threads.n);
    if (why->task) {
        const struct gt_tasks *t = &why->tasks;
        gt_json_text("task", why->task);
        put_number("times", t->n);
        put_number("p50_ns", t->p50);
        put_number("p99_ns", t->p99);
        put_number("most_ns", t->most);
        put_number("usual_times", t->usual_n);
        put_number("slow_times", t->slow_n);
        put_path(why, "usual", &t->usual);
        put_path(why, "slow", &t->slow);
    } else {
        put_number("pieces", why->pieces.n);
        put_number("inferred_wakers", why->graph.inferred);
        put_number("wakers_not_looked_for", why->graph.unasked);
        put_path(why, "path", &why->path);
        put_whatifs(why);
        put_findings(why);
        put_bands(why);
    }
    puts("}");
}
