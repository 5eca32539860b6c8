/*
 * See merging.h. Each trace has its own reader and rewriting; the trace with the earliest next
 * event goes first. The merged trace has its own generations, which begin for all traces at once.
 */
#include "merging.h"

#include "aligning.h"
#include "joining.h"
#include "numbers.h"
#include "rewrite.h"
#include "rewriting.h"
#include "waking.h"

#include "encoder/base/path.h"
#include "encoder/base/queue.h"
#include "encoder/base/sort.h"
#include "encoder/base/utf8.h"
#include "encoder/format/setup.h"
#include "encoder/read/need.h"
#include "scripts/tool/replacement.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"
#include "scripts/tool/written.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { GENERATION_NS = 1000000000, GENERATION_BYTES = 64 << 20 };

/* What a trace has next: an event, its end, or the fork of its process. */
enum what { EVENT, END, FORK };

struct input {
    struct gt_trace trace;
    struct gt_reader *reader;
    struct gt_everybody *all;
    struct gt_waking_in *waking;
    struct input *parent;
    struct input *before; /* trace of the program that the process ran before; or NULL */
    char process[128];
    bool whole;
};

static struct {
    struct input *input;
    struct gt_aligned *aligned;
    size_t n;
    struct gt_queue queue; /* of 4 * index + enum what, by ns on the timeline */
    struct gt_origin origin;
    uint64_t ns, generation_ns; /* time of the last event; when the generation began */
    bool whole;                 /* all traces are complete */
} merging = {.whole = true};

/* Opening the traces -------------------------------------------------------------------------- */

static void open_input(struct input *in, const char *path)
{
    struct gt_trace *t = &in->trace;
    gt_open_trace(t, path);
    t->progress = NULL;
    in->reader = gt_trace_begin(t, &gt_rewriting_audience);
    if (!t->ours)
        gt_fail(GT_EXIT_FAILED, "%s is not by libgotrace, or there is nothing in it", path);
}

struct file {
    const char *path;
    struct stat st;
};

GT_ORDER(by_inode, struct file, GT_UP(st.st_dev) ?: GT_UP(st.st_ino))

/* A build has thousands of traces, so each is looked at once. open_input reports missing files. */
static void refuse_twice(const struct gt_merging *m)
{
    struct file *file = gt_need(calloc(m->n + 1, sizeof *file));
    size_t n = 0;
    for (size_t i = 0; i <= m->n; i++) {
        file[n].path = i < m->n ? m->inputs[i] : m->output;
        n += stat(file[n].path, &file[n].st) == 0;
    }
    qsort(file, n, sizeof *file, by_inode);
    for (size_t i = 1; i < n; i++) {
        const char *one = file[i - 1].path, *other = file[i].path;
        if (by_inode(&file[i - 1], &file[i]) != 0)
            continue;
        if (one == m->output || other == m->output)
            gt_fail(GT_EXIT_USAGE, "%s: that is what is read; -o takes another file", m->output);
        gt_fail(GT_EXIT_USAGE, "%s and %s are one file: give it once", one, other);
    }
    free(file);
}

static void open_all(const struct gt_merging *m)
{
    refuse_twice(m);
    merging.n = m->n;
    merging.input = gt_need(calloc(m->n, sizeof *merging.input));
    merging.aligned = gt_need(calloc(m->n, sizeof *merging.aligned));
    merging.queue.at = gt_need(calloc(2 * m->n + 1, sizeof *merging.queue.at));
    for (size_t i = 0; i < m->n; i++) {
        open_input(&merging.input[i], m->inputs[i]);
        merging.aligned[i].trace = &merging.input[i].trace;
    }
}

/* Names --------------------------------------------------------------------------------------- */

static bool on_several_boots(void)
{
    for (size_t i = 1; i < merging.n; i++) {
        if (merging.aligned[i].by != GT_BY_COUNTER)
            return true;
    }
    return false;
}

/* Bytes of the text, of whole characters and at most so many. */
static int length_of(const char *text, size_t most)
{
    size_t n = strnlen(text, most);
    return (int)(n < most ? n : gt_utf8_whole(text, n));
}

/* "nginx.4711", of several hosts "web1:nginx.4711"; NULL for a trace that is merged already. */
static const char *name_process(struct input *in, bool hosts)
{
    enum { BYTES = sizeof in->trace.origin.program };
    const struct gt_origin *o = &in->trace.origin;
    const char *file = gt_path_name(in->trace.path);
    char *end = in->process + sizeof in->process;
    char *p = in->process;
    const char *program = o->program[0] ? (const char *)o->program : "process";
    if (o->ticks && !o->pid)
        return NULL;
    if (o->ticks && hosts)
        p += snprintf(p, (size_t)(end - p), "%.*s:", length_of((const char *)o->host, BYTES),
                      (const char *)o->host);
    if (o->ticks)
        snprintf(p, (size_t)(end - p), "%.*s.%llu", length_of(program, BYTES), program,
                 (unsigned long long)o->pid);
    else
        snprintf(p, (size_t)(end - p), "%.*s", length_of(file, sizeof in->process - 1), file);
    return in->process;
}

static void say_uncertain(void)
{
    for (size_t i = 1; i < merging.n; i++) {
        if (merging.aligned[i].by != GT_BY_WALL)
            continue;
        gt_say("%s is of another boot or host than %s: placed by the time of day, and no better "
               "than their clocks agree (by NTP some ms); --mark=TEXT does without",
               merging.input[i].trace.path, merging.input[0].trace.path);
    }
}

/* The last trace of process pid, in that boot, that began before that time; or NULL. */
static struct input *last_of(uint64_t pid, const struct gt_origin *boot, uint64_t before)
{
    struct input *found = NULL;
    uint64_t began = 0;
    for (size_t i = 0; i < merging.n; i++) {
        const struct gt_origin *its = &merging.input[i].trace.origin;
        uint64_t later = merging.aligned[i].later;
        if (its->pid != pid || !gt_align_same_clock(its, boot) || later >= before || later < began)
            continue;
        found = &merging.input[i];
        began = later;
    }
    return found;
}

static struct input *find_parent(const struct gt_aligned *child)
{
    const struct gt_origin *o = &child->trace->origin;
    return child->forked ? last_of(o->parent, o, child->forked + 1) : NULL;
}

/*
 * The trace of the program that the process ran before this one. A trace from before the fork of
 * the process is of another process that had the same pid.
 */
static struct input *find_before(const struct gt_aligned *after)
{
    const struct gt_origin *o = &after->trace->origin;
    struct input *before = o->pid ? last_of(o->pid, o, after->later) : NULL;
    bool same = before && merging.aligned[before - merging.input].later >= after->forked;
    return same ? before : NULL;
}

static void find_wakers(void)
{
    struct gt_waking_in *all = gt_need(calloc(merging.n, sizeof *all));
    for (size_t i = 0; i < merging.n; i++) {
        all[i] = (struct gt_waking_in){&merging.aligned[i], &merging.input[i].all, .wakings = {0}};
        merging.input[i].waking = &all[i];
    }
    gt_waking_find(all, merging.n);
}

/* Events in order ----------------------------------------------------------------------------- */

static void push(size_t i, enum what what, uint64_t ns)
{
    gt_queue_push(&merging.queue, (struct gt_pair){ns, 4 * i + what});
}

/* Queues the trace's next event, or its end if there is no other event. */
static void push_next(size_t i)
{
    struct input *in = &merging.input[i];
    uint64_t ns, later = merging.aligned[i].later;
    gt_rewriting_use(in->all);
    if (gt_trace_next(in->reader, &ns)) {
        push(i, EVENT, later + ns);
        return;
    }
    if (!gt_trace_end(in->reader))
        gt_fail(GT_EXIT_FAILED, "%s: damaged: %s", in->trace.path, in->trace.damage);
    in->whole = in->trace.whole;
    merging.whole &= in->whole;
    push(i, END, later + in->trace.ns);
}

static void begin(size_t i, bool hosts)
{
    struct input *in = &merging.input[i];
    const struct gt_aligned *a = &merging.aligned[i];
    in->all = gt_rewriting_begin(&(struct gt_rewriting){.trace = &in->trace,
                                                        .to = UINT64_MAX,
                                                        .together = true,
                                                        .no_halts = i > 0,
                                                        .later = a->later,
                                                        .process = name_process(in, hosts),
                                                        .same_boot = !hosts,
                                                        .wakings = &in->waking->wakings});
    in->parent = find_parent(a);
    in->before = find_before(a);
    /* All programs that a forked process runs record the fork; only the first one starts by it. */
    if (in->parent && !in->before && a->forked < a->later)
        push(i, FORK, a->forked);
    push_next(i);
}

/* Before a generation is written. If its events contradict, the trace with most `odd` is blamed. */
static void set_host(void)
{
    uint64_t cpus = 0, odd = 0;
    gt_writing_blame("one of these traces");
    for (size_t i = 0; i < merging.n; i++) {
        const struct input *in = &merging.input[i];
        cpus = in->all->procs > cpus ? in->all->procs : cpus;
        if (in->trace.odd > odd)
            gt_writing_blame(in->trace.path);
        odd = in->trace.odd > odd ? in->trace.odd : odd;
    }
    gt_writing_set_host(cpus, merging.origin.wall_s, merging.origin.wall_ns,
                        merging.origin.mono_ns);
}

static void pause_all(void)
{
    for (size_t i = 0; i < merging.n; i++) {
        gt_rewriting_use(merging.input[i].all);
        gt_rewriting_pause();
    }
    set_host();
}

static void next_generation(uint64_t ns)
{
    pause_all();
    gt_writing_next(ns + 1);
    for (size_t i = 0; i < merging.n; i++) {
        gt_rewriting_use(merging.input[i].all);
        gt_rewriting_go_on(ns);
    }
    merging.generation_ns = ns;
}

/* A v1 step has several events of one time: generations end only between different times. */
static void move_on(uint64_t ns)
{
    bool due = ns - merging.generation_ns >= GENERATION_NS || gt_writing_size() >= GENERATION_BYTES;
    if (ns > merging.ns && due)
        next_generation(ns);
    merging.ns = ns > merging.ns ? ns : merging.ns;
}

/* Writes events of the trace until another trace has an earlier one. */
static void tell(size_t i, uint64_t ns)
{
    struct input *in = &merging.input[i];
    bool more;
    do {
        move_on(ns);
        gt_rewriting_use(in->all);
        gt_trace_tell(in->reader);
        more = gt_trace_next(in->reader, &ns);
        ns += merging.aligned[i].later;
    } while (more && (!merging.queue.n || ns <= merging.queue.at[0].key));
    push_next(i);
}

/* last: the trace ends last, so its open waits last until the merged trace ends. */
static void tell_end(const struct input *in, bool last)
{
    size_t blocked = last ? 0 : in->trace.n_blocked;
    gt_rewriting_use(in->all);
    for (size_t i = 0; i < in->trace.n_own; i++) {
        const char *text = gt_retell_at_end(in->trace.own[i], &in->trace, &blocked);
        if (text)
            gt_writing_at_end(text);
    }
}

/* The last thread to call exec; false: no thread did. */
static bool find_caller(const struct gt_trace *trace, uint64_t *caller)
{
    bool found = false;
    for (size_t i = 0; i < trace->n_own; i++)
        found |= gt_exec_read(trace->own[i], caller);
    return found;
}

/* The thread that called exec creates the threads of the program that its process becomes. */
static void hand_over(struct input *in)
{
    uint64_t caller, end = merging.aligned[in - merging.input].later + in->trace.ns;
    bool hands = find_caller(&in->trace, &caller);
    for (size_t i = 0; hands && i < merging.n; i++) {
        if (merging.input[i].before == in && merging.aligned[i].later > end)
            gt_join_forked(in->all, caller, merging.input[i].all, end);
    }
}

static void leave(size_t i)
{
    struct input *in = &merging.input[i];
    hand_over(in);
    tell_end(in, false);
    gt_rewriting_leave(in->trace.ns, in->whole);
    free(in->waking->wakings.at);
    in->waking->wakings = (struct gt_wakings){0};
    gt_contents_free(&in->trace.contents);
    munmap((void *)(uintptr_t)in->trace.base, in->trace.size);
}

/* Keeps the lines of a setup that another one has, too. */
static void keep_common(char *setup, const char *other)
{
    char *to = setup;
    for (size_t n; n = strcspn(setup, "\n"), *setup; setup += n) {
        n += setup[n] == '\n';
        const char *same = memmem(other, strlen(other), setup, n);
        if (!same || (same != other && same[-1] != '\n'))
            continue;
        memmove(to, setup, n);
        to += n;
    }
    *to = 0;
}

/* The merged trace says what all traces were recorded with. */
static void set_setup(void)
{
    char setup[GT_SETUP_MAX] = "";
    for (size_t i = 0; i < merging.n; i++) {
        const char *its = merging.input[i].trace.setup;
        if (!i)
            snprintf(setup, sizeof setup, "%s", its ? its : "");
        keep_common(setup, its ? its : "");
    }
    gt_writing_set_setup(setup);
}

/* The merge ----------------------------------------------------------------------------------- */

static void merge(void)
{
    while (merging.queue.n) {
        struct gt_pair next = merging.queue.at[0];
        struct input *in = &merging.input[next.value / 4];
        gt_queue_pop(&merging.queue);
        if (next.value % 4 != EVENT)
            move_on(next.key);
        switch ((enum what)(next.value % 4)) {
        case EVENT: tell(next.value / 4, next.key); break;
        case FORK:
            gt_join_forked(in->parent->all, in->trace.origin.forker, in->all, next.key);
            break;
        default:
            if (merging.queue.n)
                leave(next.value / 4);
            else
                tell_end(in, true);
        }
    }
}

static void finish(void)
{
    if (!gt_format->v1)
        next_generation(merging.ns);
    else
        pause_all();
    gt_writing_end(merging.ns + 1, merging.whole);
}

void gt_merging_do(const struct gt_merging *m)
{
    open_all(m);
    const struct gt_format *format = m->format ? m->format : merging.input[0].trace.format;
    gt_align(merging.aligned, m->n, m->mark, &merging.origin);
    say_uncertain();
    find_wakers();
    gt_replacement_begin(m->output);
    if (format->v1 && gt_v1_global_order(format))
        gt_replacement_beside(".elf");
    gt_writing_begin(gt_replacement_temporary(), format, 1);
    gt_writing_set_origin(merging.origin.ticks ? &merging.origin : NULL);
    set_setup();
    bool hosts = on_several_boots();
    for (size_t i = 0; i < m->n; i++)
        begin(i, hosts);
    merge();
    finish();
    gt_written_check(gt_replacement_temporary(), m->output, m->inputs, m->n);
    gt_replacement_finish(m->inputs[0]);
}
