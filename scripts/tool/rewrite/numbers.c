/* See numbers.h. */
#include "numbers.h"

#include "encoder/format/lock_texts.h"
#include "encoder/read/need.h"
#include "encoder/thread/held.h"
#include "encoder/thread/procs.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/short_name.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_THREAD = 1 << 28, NAME_MOST = 48 };

/* The last numbers given in the written trace. */
static struct {
    uint64_t g, p, task, threads;
    struct gt_memo thread; /* by number plus 1: the trace that has it */
} last;

static bool is_alone(void)
{
    return !gt_all->wanted.together;
}

/* Numbers ------------------------------------------------------------------------------------- */

/* Takes the number for this trace; false: a trace has it already. */
static bool claim(uint64_t thread)
{
    uint64_t *slot = gt_need(gt_memo_at(&last.thread, thread + 1));
    bool free = !*slot;
    if (free)
        *slot = (uintptr_t)gt_all;
    return free;
}

uint64_t gt_number_of_thread(uint64_t thread)
{
    uint64_t number = thread;
    if (is_alone() || thread == GT_NO_THREAD)
        return thread;
    while (!claim(number))
        number = FIRST_THREAD + last.threads++;
    return number;
}

uint64_t gt_number_of_p(uint64_t p)
{
    if (is_alone())
        return p;
    if (last.p == GT_PROCS_MAX && gt_format->v1)
        gt_fail(GT_EXIT_FAILED, "%s has no more than %u threads; --format=%s has", gt_format->name,
                GT_PROCS_MAX, GT_FORMAT_DEFAULT);
    last.p += last.p == GT_PROCS_MAX; /* stands for "no P" */
    return last.p++;
}

uint64_t gt_number_of_g(uint64_t g)
{
    return is_alone() ? g : ++last.g;
}

uint64_t gt_number_of_task(uint64_t task)
{
    if (is_alone() || !task)
        return task;
    uint64_t *slot = gt_need(gt_memo_at(&gt_all->task_numbers, task));
    if (!*slot)
        *slot = ++last.task;
    return *slot;
}

/* Names --------------------------------------------------------------------------------------- */

static const char *keep(const char *text)
{
    return gt_contents_text(&gt_all->texts, text, strlen(text));
}

static void describe_thread(const struct gt_g_row *g, char *buf, size_t size)
{
    char routine[NAME_MOST + 1];
    if (*g->label)
        snprintf(buf, size, "%s", g->label);
    else if (g->its && g->its->n)
        snprintf(buf, size, "%s",
                 gt_short_name(g->its->frame[0].func, routine, sizeof routine, NAME_MOST));
    else if (g->id == 1 || (g->m && g->m->id == gt_all->wanted.trace->origin.pid))
        snprintf(buf, size, "main");
    else
        snprintf(buf, size, "thread");
}

const char *gt_name_of(const struct gt_g_row *g)
{
    char thread[GT_STRING_MAX / 2], name[GT_STRING_MAX];
    if (!gt_all->wanted.process)
        return g->label;
    describe_thread(g, thread, sizeof thread);
    snprintf(name, sizeof name, "%s/%s", gt_all->wanted.process, thread);
    return keep(name);
}

/* Whether the lock has one name in all processes: in shared memory, or on a file. */
static bool is_common(const char *lock)
{
    static const char *const begins[] = {GT_SHARED, GT_FLOCK "/", GT_FCNTL "/", NULL};
    return gt_begins_with(lock, begins);
}

/* Prefixes the lock's name with its process, unless the processes share the lock. */
static const char *name_lock(const char *lock)
{
    char name[GT_STRING_MAX];
    bool same = gt_all->wanted.same_boot && is_common(lock);
    if (!gt_all->wanted.process || same)
        return lock;
    snprintf(name, sizeof name, "%s/%s", gt_all->wanted.process, lock);
    return keep(name);
}

/* Texts --------------------------------------------------------------------------------------- */

/*
 * "G7 name" of a thread of another process, by the kernel's thread number, which is unique among
 * all processes of a boot; NULL: not known.
 */
static const char *find_foreign(uint64_t thread)
{
    char text[GT_STRING_MAX];
    struct gt_everybody *own = gt_all, *its;
    its = (void *)(uintptr_t)gt_memo_find(&last.thread, thread + 1);
    if (!its || its == own || its->left || !own->wanted.trace->origin.ticks ||
        memcmp(its->wanted.trace->origin.boot, own->wanted.trace->origin.boot,
               sizeof own->wanted.trace->origin.boot) != 0)
        return NULL;
    const struct gt_m *m = (void *)(uintptr_t)gt_memo_find(&its->m, thread + 1);
    if (!m || !m->last_g)
        return NULL;
    gt_all = its;
    const char *name = gt_name_of(m->last_g);
    gt_all = own;
    snprintf(text, sizeof text, "G%llu %s", (unsigned long long)m->last_g->number, name);
    return keep(text);
}

/* A holder such as "G7 committer", "thread 123" or "readers", with the written trace's numbers. */
static const char *name_holder(const char *holder, size_t len)
{
    static const char head[] = "thread ";
    char text[GT_STRING_MAX];
    const char *foreign = NULL;
    if (*holder == 'G') {
        char *rest;
        uint64_t g = strtoull(holder + 1, &rest, 10);
        snprintf(text, sizeof text, "G%llu%.*s", (unsigned long long)gt_g_of(g)->number,
                 (int)(len - (size_t)(rest - holder)), rest);
        return keep(text);
    }
    if (strncmp(holder, head, sizeof head - 1) == 0)
        foreign = find_foreign(strtoull(holder + sizeof head - 1, NULL, 10));
    snprintf(text, sizeof text, "%.*s", (int)len, holder);
    return foreign ? foreign : keep(text);
}

static const char *retell_holder(const char *message)
{
    char text[GT_STRING_MAX];
    const char *comma = strstr(message, ", ");
    if (!comma)
        return message;
    snprintf(text, sizeof text, "%s, %s", name_holder(message, (size_t)(comma - message)),
             name_lock(comma + 2));
    return keep(text);
}

struct gt_log_line gt_retell_log(const struct gt_log_line *log)
{
    static const char held[] = "held ";
    struct gt_log_line its = *log;
    char text[GT_STRING_MAX];
    its.task = gt_number_of_task(log->task);
    if (is_alone() || log->task)
        return its;
    if (strcmp(log->key, "held by") == 0) {
        its.value = retell_holder(log->value);
    } else if (gt_locks_is_of_wait(log->key) || gt_locks_is_waker(log->key)) {
        its.value = name_lock(log->value);
    } else if (strncmp(log->key, held, sizeof held - 1) == 0) {
        snprintf(text, sizeof text, "%s%s", held, name_lock(log->key + sizeof held - 1));
        its.key = keep(text);
    }
    return its;
}

/* "gotrace-waits g holder thread how since name" */
static char *retell_blocked(const struct gt_blocked_row *row, const char *text)
{
    unsigned how = row->timed | row->gone << 1 | row->again << 2 | row->endless << 3;
    const char *name = *row->name ? name_lock(row->name) : "";
    size_t size = strlen(text) + strlen(name) + 64;
    char *fresh = gt_need(malloc(size));
    snprintf(fresh, size, GT_BLOCKED "%llu %llu %llu %u %llu %s",
             (unsigned long long)gt_g_of(row->g)->number,
             (unsigned long long)(row->holder ? gt_g_of(row->holder)->number : 0),
             (unsigned long long)row->thread, how, (unsigned long long)gt_ts_of(row->since), name);
    return fresh;
}

/* Replaces the name of a lock, which is the rest of the text from `lock` on. */
static char *retell_name(const char *text, const char *lock)
{
    const char *name = name_lock(lock);
    size_t size = strlen(text) + strlen(name) + 1;
    char *fresh = gt_need(malloc(size));
    snprintf(fresh, size, "%.*s%s", (int)(lock - text), text, name);
    return fresh;
}

const char *gt_retell_at_end(const char *text, const struct gt_trace *trace, size_t *used)
{
    struct gt_blocked_row row;
    struct gt_signals_row signals;
    struct gt_brief_row brief;
    if (gt_blocked_read(text, &row) && *used < trace->n_blocked)
        return retell_blocked(&trace->blocked[(*used)++], text);
    if (gt_brief_read(text, &brief))
        return retell_name(text, brief.name);
    return gt_signals_read(text, &signals) ? retell_name(text, signals.name) : NULL;
}
