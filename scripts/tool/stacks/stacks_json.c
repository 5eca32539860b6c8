/* `gotrace stacks --json`: see gotrace-json(5). */
#include "recent.h"
#include "still.h"

#include "scripts/tool/json.h"

#include <stdio.h>

static void put_frame(const struct gt_place *f)
{
    fputs("{\"function\":", stdout);
    gt_json_string(f->function);
    if (f->line) {
        gt_json_text("file", f->file);
        printf(",\"line\":%u", f->line);
    }
    gt_json_text("module", f->module);
    if (!f->python)
        gt_json_address("pc", f->pc);
    if (f->inlined)
        fputs(",\"inlined\":true", stdout);
    putchar('}');
}

static void put_fds(const struct gt_thread_wait *w)
{
    fputs(",\"fds\":[", stdout);
    for (size_t i = 0; i < w->fds; i++) {
        printf("%s{\"fd\":%d", i ? "," : "", w->fd[i].number);
        gt_json_text("what", w->fd[i].what);
        putchar('}');
    }
    putchar(']');
}

static void put_owner(const struct gt_thread_wait *w)
{
    static const char *const states[] = {"unknown", "thread", "ended", "foreign", "left", "forked"};
    if (w->owned != GT_OWNER_UNKNOWN)
        printf(",\"owner\":%d", w->owner);
    if (w->readers)
        printf(",\"readers\":%u", w->readers);
    for (size_t i = 0; i < w->reading; i++)
        printf("%s%d%s", i ? "," : ",\"may_be_readers\":[", w->reader[i],
               i + 1 == w->reading ? "]" : "");
    gt_json_text("owner_is", w->readers ? "readers" : states[w->owned]);
    if (w->refused)
        fputs(",\"refused\":true", stdout);
}

/* Puts a wait; null if the thread runs. */
static void put_wait(const struct gt_thread_wait *w)
{
    if (w->kind == GT_WAIT_NONE) {
        fputs("null", stdout);
        return;
    }
    printf("{\"kind\":\"%s\"", gt_wait_names[w->kind]);
    if (w->call)
        gt_json_text("call", w->call);
    else
        printf(",\"number\":%ld", w->number);
    if (w->address)
        gt_json_address("address", w->address);
    if (*w->name)
        gt_json_text("name", w->name);
    if (w->kind <= GT_WAIT_FUTEX || w->process)
        put_owner(w);
    if (w->process)
        printf(",\"%s\":%d", w->left_to ? "taken_by" : "process", w->process);
    if (w->suspect)
        printf(",\"may_be_owner\":%d", w->suspect);
    if (w->fds)
        put_fds(w);
    if (w->kind == GT_WAIT_CHILD)
        printf(",\"child\":%d", w->child);
    if (w->ns)
        printf(",\"%s\":%llu", w->left ? "left_ns" : "ns", (unsigned long long)w->ns);
    printf(",\"timed\":%s}", w->timed ? "true" : "false");
}

static void put_task(const struct gt_still_thread *t)
{
    printf("{\"tid\":%d", t->tid);
    gt_json_text("name", t->name);
    gt_json_text("state", gt_state_names[t->state]);
    fputs(",\"waits\":", stdout);
    put_wait(&t->wait);
    fputs(",\"stack\":[", stdout);
    for (size_t i = 0; i < t->frames; i++) {
        if (i)
            putchar(',');
        put_frame(&t->frame[i]);
    }
    printf("],\"cut\":%s", t->cut ? "true" : "false");
    gt_recent_json(t->tid);
    putchar('}');
}

static void put_deadlock(const struct gt_still *s, const struct gt_deadlock *d)
{
    printf("{\"kind\":\"%s\",\"threads\":[", d->kind);
    for (size_t i = 0; i < d->tasks; i++)
        printf("%s%d", i ? "," : "", s->task[d->task[i]].tid);
    fputs("]}", stdout);
}

void gt_stacks_json(const struct gt_still *s)
{
    printf("{\"version\":1,\"pid\":%d", s->pid);
    gt_json_text("name", s->name);
    printf(",\"stopped_ns\":%llu,\"threads\":[", (unsigned long long)s->stopped_ns);
    for (size_t i = 0; i < s->tasks; i++) {
        fputs(i ? ",\n" : "\n", stdout);
        put_task(&s->task[i]);
    }
    fputs("],\n\"deadlocks\":[", stdout);
    for (size_t i = 0; i < s->deadlocks; i++) {
        if (i)
            putchar(',');
        put_deadlock(s, &s->deadlock[i]);
    }
    puts("]}");
}
