/* `gotrace why --json`: the contents of the page, for programs. gotrace-json(5) documents it. */
#include "answer.h"
#include "page.h"
#include "timeline_json.h"
#include "wakers.h"

#include "scripts/tool/json.h"
#include "scripts/tool/report/deadlocks.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
    [GT_HALF] = "half", [GT_ACROSS] = "across",  [GT_FREE_LOCK] = "free_lock",
    [GT_MORE] = "more", [GT_SLOT] = "slot",      [GT_CPUS] = "cpus",
    [GT_EVEN] = "even", [GT_NO_POLL] = "no_poll"};

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

static void put_path(const struct gt_why *why, const char *name,
                     const struct gt_critical_path *path)
{
    printf(",\"%s\":{\"ns\":%" PRIu64 ",\"rows\":[", name, path->ns);
    for (size_t i = 0; i < path->n; i++) {
        const struct gt_path_row *row = &path->row[i];
        printf(i ? ",\n{" : "{");
        put_section(why, row->section);
        put_number("ns", row->ns);
        put_number("count", row->count);
        put_number("p50_ns", gt_lengths_percentile(&row->lengths, 500));
        put_number("p95_ns", gt_lengths_percentile(&row->lengths, 950));
        put_number("p99_ns", gt_lengths_percentile(&row->lengths, 990));
        put_number("longest_ns", row->longest);
        put_number("longest_at_ns", row->longest_at);
        put_number("threads", row->threads);
        gt_json_text("thread", gt_name_or_routine(why->graph.lane[row->thread].thread));
        gt_json_text("most", gt_name_of_one(&why->graph, row->most).text);
        put_number("most_ns", row->most_ns);
        printf("}");
    }
    printf("]}");
}

static void put_blockages(const struct gt_why *why, const struct gt_loop *loop)
{
    printf(",\"blocked\":[");
    for (size_t i = 0; i < loop->blockages; i++) {
        const struct gt_blockage *it = &loop->blockage[i];
        printf(i ? ",\n{" : "{");
        put_section(why, it->section);
        put_number("count", it->count);
        put_number("ns", it->ns);
        put_number("shortest_ns", it->shortest);
        put_number("longest_ns", it->longest);
        put_number("longest_at_ns", it->longest_at);
        put_number("parts", it->parts);
        put_number("usual_ns", it->usual_ns);
        gt_json_text("on_cpu_in", it->stack ? gt_blockage_function(it) : "");
        gt_json_text("text", gt_blockage_name(&why->sections, it));
        printf("}");
    }
    printf("]");
}

static void put_loops(const struct gt_why *why)
{
    printf(",\n\"loops\":[");
    for (size_t i = 0; i < why->loops.n; i++) {
        const struct gt_loop *it = &why->loops.at[i];
        printf("%s{\"rest\":{", i ? ",\n" : "");
        put_section(why, it->rest);
        printf("}");
        gt_json_text("thread", gt_name_of_thread(&why->graph, it->thread).text);
        put_number("threads", it->threads);
        put_number("pieces", it->pieces);
        put_number("busy_ns", it->busy_ns);
        put_number("life_ns", it->life_ns);
        put_number("p50_ns", it->p50);
        put_number("p95_ns", it->p95);
        put_number("p99_ns", it->p99);
        put_number("longest_ns", it->longest);
        put_number("longest_at_ns", it->longest_at);
        put_blockages(why, it);
        printf("}");
    }
    printf("]");
}

static void put_whatifs(const struct gt_why *why)
{
    const struct gt_whatifs *all = &why->whatifs;
    printf(",\n\"replay\":{\"from_ns\":%" PRIu64, all->from);
    put_number("to_ns", all->to);
    put_number("unchanged_ns", all->base_ns);
    printf(",\"unchanged\":%.4f,\"exact\":%s", gt_whatifs_unchanged(all),
           gt_whatifs_are_exact(all) ? "true" : "false");
    printf(",\"sound\":%s,\"cpus\":%.2f},\n\"what_if\":[",
           gt_whatifs_are_sound(all) ? "true" : "false", all->cpus);
    for (size_t i = 0; i < all->n; i++) {
        const struct gt_whatif *it = &all->at[i];
        printf("%s{\"change\":\"%s\",\"gain\":%.4f", i ? ",\n" : "", kind_names[it->kind],
               it->gain);
        gt_json_text("basis", gt_whatif_bases[it->basis]);
        gt_json_text("name", gt_whatif_name(why, it));
        if (it->kind == GT_HALF || it->kind == GT_NO_POLL || it->kind == GT_ACROSS) {
            printf(",\"section\":{");
            put_section(why, it->section);
            printf("}");
        }
        if (it->kind == GT_FREE_LOCK || it->kind == GT_ACROSS) {
            gt_json_text("lock", why->graph.lock[it->lock]->name);
        } else if (it->kind == GT_MORE || it->kind == GT_EVEN) {
            gt_json_text("pool", gt_name_of_pool(&it->pool).text);
            put_number("threads", it->pool.threads);
        } else if (it->kind == GT_SLOT) {
            gt_json_text("lock", why->graph.lock[it->lock]->name);
            put_number("slots", it->slots);
        }
        printf("}");
    }
    printf("]");
}

static void put_unknown(const struct gt_why *why)
{
    char *text = gt_wakers_unknown(why);
    if (!text)
        return;
    printf(",\n\"unknown_wakers\":{");
    put_section(why, why->unknown.row->section);
    put_number("waits", why->unknown.waits);
    put_number("ns", why->unknown.ns);
    gt_json_text("text", text);
    printf("}");
    free(text);
}

static void put_system_time(struct gt_why *why)
{
    char *text = gt_why_system_time(why);
    if (text)
        gt_json_text("kernel_time", text);
    free(text);
}

static void put_stopped(const struct gt_why *why)
{
    bool any = false;
    printf(",\n\"stopped_by_flag\":[");
    for (uint32_t i = 0; i < why->graph.lanes; i++) {
        const struct gt_lane *lane = &why->graph.lane[i];
        if (!lane->stopped || !lane->alike)
            continue;
        printf("%s{\"sleeps\":%" PRIu64, any ? ",\n" : "", lane->alike);
        gt_json_text("thread", gt_name_of_one(&why->graph, i).text);
        printf("}");
        any = true;
    }
    printf("]");
}

static void put_answer(const struct gt_why *why)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = gt_need(open_memstream(&text, &size));
    gt_answer_print(out, why);
    fclose(out);
    gt_json_text("answer", text);
    free(text);
}

static void put_standstill(struct gt_why *why)
{
    const struct gt_standstill *still = &why->still;
    if (!still->ns)
        return;
    printf(",\n\"stood_still\":{\"from_ns\":%" PRIu64, still->from);
    put_number("ns", still->ns);
    printf(",\"waiting\":[");
    for (size_t i = 0; i < still->n; i++) {
        uint32_t thread = still->waiter[i], other = gt_standstill_after(&why->graph, thread);
        printf(i ? ",\n{" : "{");
        put_section(why, gt_standstill_section(&why->sections, thread));
        gt_json_text("thread", gt_name_of_one(&why->graph, thread).text);
        gt_json_text("for", gt_standstill_lock(&why->graph, thread));
        gt_json_text("held_by", other == GT_NOBODY ? "" : gt_name_of_one(&why->graph, other).text);
        printf("}");
    }
    printf("]}");
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
        gt_json_text("read_as", why->pieces.n ? "server" : "batch");
        put_loops(why);
        put_number("inferred_wakers", why->graph.inferred);
        put_number("wakers_not_looked_for", why->graph.unasked);
        put_unknown(why);
        put_system_time(why);
        put_stopped(why);
        put_standstill(why);
        put_answer(why);
        put_path(why, "path", &why->path);
        put_whatifs(why);
        put_findings(why);
        put_bands(why);
        if (why->timeline)
            gt_why_print_timeline(why);
    }
    puts("}");
}
