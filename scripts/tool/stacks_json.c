/*
 * The same as JSON. All names come out of other programs and files: what is no UTF-8, or not to be
 * written in JSON as it is, is escaped.
 */
#include "still.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character there; 0: it is none. */
static size_t character(const unsigned char *p)
{
    size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    uint32_t value = n == 1 ? *p : *p & (0x7fu >> n);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    return n && (value < least[n] || value > 0x10ffff || value >> 11 == 0x1b) ? 0 : n;
}

static void put_string(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = character(p);
        if (!n)
            fputs("\\ufffd", stdout);
        else if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            printf("\\u%04x", *p);
        else
            fwrite(p, 1, n, stdout);
        p += n ? n : 1;
    }
    putchar('"');
}

static void put_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    put_string(text);
}

static void put_address(const char *name, uint64_t address)
{
    printf(",\"%s\":\"0x%llx\"", name, (unsigned long long)address);
}

static void put_frame(const struct gt_place *f)
{
    fputs("{\"function\":", stdout);
    put_string(f->function);
    if (f->line) {
        put_text("file", f->file);
        printf(",\"line\":%u", f->line);
    }
    put_text("module", f->module);
    put_address("pc", f->pc);
    if (f->inlined)
        fputs(",\"inlined\":true", stdout);
    putchar('}');
}

static void put_fds(const struct gt_wait *w)
{
    fputs(",\"fds\":[", stdout);
    for (size_t i = 0; i < w->fds; i++) {
        printf("%s{\"fd\":%d", i ? "," : "", w->fd[i].number);
        put_text("what", w->fd[i].what);
        putchar('}');
    }
    putchar(']');
}

static void put_owner(const struct gt_wait *w)
{
    static const char *const states[] = {"unknown", "thread", "ended", "foreign"};
    if (w->owned != GT_OWNER_UNKNOWN)
        printf(",\"owner\":%d", w->owner);
    if (w->readers)
        printf(",\"readers\":%u", w->readers);
    put_text("owner_is", w->readers ? "readers" : states[w->owned]);
    if (w->refused)
        fputs(",\"refused\":true", stdout);
}

/* null: it runs. */
static void put_wait(const struct gt_wait *w)
{
    if (w->kind == GT_WAIT_NONE) {
        fputs("null", stdout);
        return;
    }
    printf("{\"kind\":\"%s\"", gt_wait_names[w->kind]);
    if (w->call)
        put_text("call", w->call);
    else
        printf(",\"number\":%ld", w->number);
    if (w->address)
        put_address("address", w->address);
    if (*w->name)
        put_text("name", w->name);
    if (w->kind <= GT_WAIT_FUTEX)
        put_owner(w);
    if (w->fds)
        put_fds(w);
    if (w->kind == GT_WAIT_CHILD)
        printf(",\"child\":%d", w->child);
    if (w->ns)
        printf(",\"ns\":%llu", (unsigned long long)w->ns);
    printf(",\"timed\":%s}", w->timed ? "true" : "false");
}

static void put_task(const struct gt_task *t)
{
    printf("{\"tid\":%d", t->tid);
    put_text("name", t->name);
    put_text("state", gt_state_names[t->state]);
    fputs(",\"waits\":", stdout);
    put_wait(&t->wait);
    fputs(",\"stack\":[", stdout);
    for (size_t i = 0; i < t->frames; i++) {
        if (i)
            putchar(',');
        put_frame(&t->frame[i]);
    }
    printf("],\"cut\":%s}", t->cut ? "true" : "false");
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
    printf("{\"pid\":%d", s->pid);
    put_text("name", s->name);
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
