/* See around.h. */
#include "around.h"

#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *log, *task; /* the text or name to find; both NULL: the longest wait */
    uint64_t from, to;
    bool found, locks;      /* locks: a wait for a known lock was found; only such waits count */
    struct gt_memo begun;   /* tasks of the name: begin time plus 1, by task id plus 1 */
    struct gt_memo regions; /* by thread: the innermost open one */
} search;

struct open_region {
    struct open_region *outer;
    uint64_t from;
};

static void consider(uint64_t from, uint64_t to)
{
    if (search.found && to - from <= search.to - search.from)
        return;
    search.found = true;
    search.from = from;
    search.to = to;
}

static void note_span(void *arg, const struct gt_span *span)
{
    (void)arg;
    bool lock = span->wanted != NULL;
    if (search.log || search.task || !span->ended || !span->by || (search.locks && !lock))
        return;
    if (span->kind != GT_SYNC && span->kind != GT_NETWORK && span->kind != GT_SYSCALL)
        return;
    if (lock && !search.locks)
        search.found = false;
    search.locks |= lock;
    consider(span->from, span->from + span->ns);
}

static void note_task(const struct gt_happening *h, uint64_t ns)
{
    if (h->type == GT_EV_USER_TASK_BEGIN && strcmp(h->text, search.task) == 0)
        *(uint64_t *)gt_need(gt_memo_at(&search.begun, h->task + 1)) = ns + 1;
    uint64_t since = h->type == GT_EV_USER_TASK_END ? gt_memo_find(&search.begun, h->task + 1) : 0;
    if (since)
        consider(since - 1, ns);
}

static void note_region(const struct gt_happening *h, uint64_t g, uint64_t ns)
{
    if (strcmp(h->text, search.task) != 0)
        return;
    uint64_t *slot = gt_need(gt_memo_at(&search.regions, g + 1));
    struct open_region *region = (void *)(uintptr_t)*slot;
    if (h->type == GT_EV_USER_REGION_BEGIN) {
        struct open_region *inner = gt_need(malloc(sizeof *inner));
        *inner = (struct open_region){region, ns};
        *slot = (uintptr_t)inner;
    } else if (region) {
        consider(region->from, ns);
        *slot = (uintptr_t)region->outer;
        free(region);
    }
}

static void note_event(void *arg, const struct gt_happening *h, const struct gt_thread_state *t,
                       uint64_t ns)
{
    (void)arg;
    bool log = search.log && h->type == GT_EV_USER_LOG && !search.found;
    if (log && (strstr(h->text, search.log) || strstr(h->more, search.log)))
        consider(ns, ns);
    if (!search.task || !t)
        return;
    if (h->type == GT_EV_USER_REGION_BEGIN || h->type == GT_EV_USER_REGION_END)
        note_region(h, t->g, ns);
    else
        note_task(h, ns);
}

/* What follows a prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 && text[n] ? text + n : NULL;
}

void gt_around_find(const char *input, const char *what, uint64_t *from, uint64_t *to)
{
    struct gt_trace trace;
    struct gt_threads threads = {.span = note_span, .event = note_event};
    search.log = behind(what, "log:");
    search.task = behind(what, "task:");
    if (!search.log && !search.task && strcmp(what, "longest") != 0)
        gt_fail(GT_EXIT_USAGE, "--around=%s: must be longest, log:TEXT or task:NAME", what);
    gt_open_trace(&trace, input);
    gt_read_threads(&threads, &trace);
    if (!search.found)
        gt_fail(GT_EXIT_FAILED, "%s: there is nothing like %s", input, what);
    *from = search.from;
    *to = search.to;
}
