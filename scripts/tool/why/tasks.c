/* See tasks.h. */
#include "tasks.h"

#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t length(const struct gt_user_task *t)
{
    return t->to - t->from;
}

static int by_length(const void *a, const void *b)
{
    const struct gt_user_task *x = *(void *const *)a, *y = *(void *const *)b;
    if (length(x) != length(y))
        return length(x) < length(y) ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Adds the paths of the tasks with these ranks. Returns their number. */
static uint64_t add_paths(struct gt_critical_path *path, struct gt_sections *sections,
                          const struct gt_user_task **task, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        gt_path_add(path, sections, task[i]->ender, task[i]->from, task[i]->to);
    gt_path_finish(path);
    return end - first;
}

/* Ends the program: there is no such task. Names a few others. */
static _Noreturn void fail_none(const struct gt_graph *graph, const char *name)
{
    enum { MOST = 5 };
    const char *path = graph->trace.path, *names[MOST];
    char others[1024] = "";
    size_t n = 0, used = 0;
    for (size_t i = 0; i < graph->tasks && n < MOST && used < sizeof others; i++) {
        const char *other = graph->task[i].name;
        bool known = !graph->task[i].ended || strcmp(other, name) == 0;
        for (size_t k = 0; k < n; k++)
            known |= strcmp(names[k], other) == 0;
        if (known)
            continue;
        used += (size_t)snprintf(others + used, sizeof others - used, "%s%s", n ? ", " : "", other);
        names[n++] = other;
    }
    if (!graph->tasks)
        gt_fail(GT_EXIT_FAILED,
                "%s: no task is annotated in it (gotrace_annotations(3)); gotrace "
                "why %s is about the whole run",
                path, gt_to_type(path));
    gt_fail(GT_EXIT_FAILED, "%s: no task called %s begins and ends in it%s%s", path, name,
            n ? "; there are: " : "", others);
}

void gt_tasks_find(struct gt_tasks *tasks, struct gt_sections *sections, const char *name,
                   uint64_t from, uint64_t to)
{
    enum { PATHS_MOST = 100 };
    const struct gt_graph *graph = sections->graph;
    const struct gt_user_task **task = gt_need(malloc((graph->tasks + 1) * sizeof(void *)));
    size_t n = 0;
    *tasks = (struct gt_tasks){0};
    for (size_t i = 0; i < graph->tasks; i++) {
        const struct gt_user_task *t = &graph->task[i];
        if (t->ended && strcmp(t->name, name) == 0 && t->from >= from && t->to <= to)
            task[n++] = t;
    }
    if (!n)
        fail_none(graph, name);
    qsort(task, n, sizeof(void *), by_length);
    size_t middle = n / 2, last = n - 1 - n / 100, spread = n / 20 < PATHS_MOST / 2 ? n / 20 : 50;
    tasks->n = n;
    tasks->p50 = length(task[middle]);
    tasks->p99 = length(task[last]);
    tasks->most = length(task[n - 1]);
    tasks->slowest_at = task[n - 1]->from;
    size_t first = last + PATHS_MOST < n ? n - PATHS_MOST : last;
    tasks->usual_n = add_paths(&tasks->usual, sections, task, middle - spread,
                               middle + spread + 1 > n ? n : middle + spread + 1);
    tasks->slow_n = add_paths(&tasks->slow, sections, task, first, n);
    free(task);
}
