/* See channels.h. */
#include "channels.h"

#include "waking.h"

#include "encoder/channel.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* A call that has moved bytes. Times are ns of what is put together. */
static struct {
    struct call {
        const char *name; /* of the stream; interned */
        uint64_t from, to;
        uint64_t since; /* who writes: ns of its own trace; who reads: when the wait began, */
        uint64_t until; /* and when it was over; 0: there was none */
        uint64_t g;
        uint64_t bytes;
        uint32_t in;
        bool writes;
    } * call;
    size_t n, room;
    struct gt_contents names;
} found;

/* Reading ------------------------------------------------------------------------------------- */

/* What a thread has done last. */
struct doing {
    uint64_t began; /* ns of its trace, the last wait or call */
    struct stretch {
        uint64_t from, to, own;
        bool waits; /* and nobody is known to have ended that */
    } last, poll;
    bool polled, reads_next; /* for one thing; and what came next is the last one */
};

static struct doing *doing_of(struct gt_channels *c, uint64_t g)
{
    uint64_t *slot = gt_need(gt_memo_at(&c->calls, g));
    if (!*slot)
        *slot = (uintptr_t)gt_need(calloc(1, sizeof(struct doing)));
    return (void *)(uintptr_t)*slot;
}

bool gt_channels_has(const struct gt_trace *trace)
{
    return memmem(trace->base, trace->size, GT_CHANNEL, sizeof GT_CHANNEL - 1);
}

void gt_channels_span(struct gt_channels *c, const struct gt_span *span)
{
    if (span->kind == GT_RUNNING || span->kind == GT_SCHED || span->kind == GT_UNSEEN)
        return;
    struct doing *d = doing_of(c, span->thread->g);
    uint64_t from = c->later + span->from;
    d->last = (struct stretch){from, from + span->ns, d->began,
                               span->kind == GT_NETWORK && span->ended && !span->by};
    d->reads_next = d->polled;
    d->polled = false;
}

/* false: it is none. */
static bool read_moved(const char *text, bool *writes, uint64_t *bytes)
{
    *writes = strncmp(text, GT_CHANNEL_WROTE, sizeof GT_CHANNEL_WROTE - 1) == 0;
    if (!*writes && strncmp(text, GT_CHANNEL_READ, sizeof GT_CHANNEL_READ - 1) != 0)
        return false;
    *bytes = strtoull(strchr(text, ' ') + 1, NULL, 10);
    return *bytes > 0;
}

static void add(struct gt_channels *c, const struct doing *d, const struct gt_happening *h,
                uint64_t g)
{
    bool writes;
    uint64_t bytes;
    const char *name = h->text + sizeof GT_CHANNEL - 1;
    if (!d->last.to || !read_moved(h->more, &writes, &bytes))
        return;
    const struct stretch *wait = d->reads_next ? &d->poll : &d->last;
    found.call = gt_need_room(found.call, found.n, &found.room, sizeof *found.call);
    found.call[found.n++] =
        (struct call){.name = gt_contents_text(&found.names, name, strlen(name)),
                      .from = d->last.from,
                      .to = d->last.to,
                      .since = writes ? d->last.own : wait->from,
                      .until = wait->waits ? wait->to : 0,
                      .g = g,
                      .bytes = bytes,
                      .in = c->in,
                      .writes = writes};
}

void gt_channels_event(struct gt_channels *c, const struct gt_happening *h,
                       const struct gt_thread_state *t)
{
    bool begins = h->type == GT_EV_GO_BLOCK || h->type == GT_EV_GO_SYSCALL_BEGIN;
    bool says = h->type == GT_EV_USER_LOG && !h->task;
    if (!t || !(begins || says))
        return;
    struct doing *d = doing_of(c, t->g);
    if (begins) {
        d->began = h->own_ns;
    } else if (strncmp(h->text, GT_CHANNEL, sizeof GT_CHANNEL - 1) == 0) {
        add(c, d, h, t->g);
    } else if (strcmp(h->text, GT_CHANNELS) == 0) {
        d->poll = d->last;
        d->polled = true;
    }
}

void gt_channels_end(struct gt_channels *c)
{
    for (size_t i = 0; i < c->calls.capacity; i++)
        free((void *)(uintptr_t)c->calls.slots[i].value);
    gt_memo_free(&c->calls);
}

/* Pairing ------------------------------------------------------------------------------------- */

/* In the order in which it happens when it does at the same time. */
enum what { READ, WRITES, WAITS };
struct moment {
    uint64_t ns;
    uint32_t call;
    uint8_t what;
};

/* The stream that is looked at. */
static struct {
    uint64_t left;     /* what is in there, more or less by what has always been */
    uint64_t least;    /* the same where it is lowest: there it is empty */
    struct open {      /* who reads, or waits to */
        uint32_t call; /* its own; */
        uint32_t by;   /* and who wrote first since then */
        bool written, certain;
    } * open;
    size_t n, room;
} stream;

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_stream_and_time(const void *a, const void *b)
{
    const struct moment *one = a, *other = b;
    int by_name =
        compare((uintptr_t)found.call[one->call].name, (uintptr_t)found.call[other->call].name);
    int by_time = compare(one->ns, other->ns);
    return by_name ? by_name : by_time ? by_time : one->what - other->what;
}

static bool is_same_thread(const struct call *a, const struct call *b)
{
    return a->in == b->in && a->g == b->g;
}

static void begin_wait(uint32_t call)
{
    bool alone = !stream.n;
    for (size_t i = 0; i < stream.n; i++)
        stream.open[i].certain = false;
    stream.open = gt_need_room(stream.open, stream.n, &stream.room, sizeof *stream.open);
    stream.open[stream.n++] =
        (struct open){.call = call, .certain = alone && stream.left == stream.least};
}

static void write_to(uint32_t call)
{
    const struct call *w = &found.call[call];
    for (size_t i = 0; i < stream.n; i++) {
        struct open *o = &stream.open[i];
        if (w->from > found.call[o->call].until)
            continue;
        o->certain &= !o->written || is_same_thread(w, &found.call[o->by]);
        o->by = o->written ? o->by : call;
        o->written = true;
    }
    stream.left += w->bytes;
}

static bool is_certain(const struct call *r, const struct open *o)
{
    const struct call *w = &found.call[o->by];
    return o->certain && o->written && r->until > w->from && r->until <= w->to + GT_AT_ONCE_NS;
}

static void end_read(uint32_t call, gt_channel_fn *fn, void *arg)
{
    const struct call *r = &found.call[call], *w;
    size_t i = 0;
    while (i < stream.n && stream.open[i].call != call)
        i++;
    struct open o = stream.open[i];
    stream.open[i] = stream.open[--stream.n];
    w = &found.call[o.by];
    if (is_certain(r, &o))
        fn(arg, (struct gt_channel_thread){w->in, w->g}, w->since,
           (struct gt_channel_thread){r->in, r->g});
    stream.left -= r->bytes;
}

/* It may be below 0. */
static uint64_t least_of(const struct moment *m, size_t n)
{
    int64_t left = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t bytes = (int64_t)found.call[m[i].call].bytes;
        left += m[i].what == WRITES ? bytes : m[i].what == READ ? -bytes : 0;
        least = left < least ? left : least;
    }
    return (uint64_t)least;
}

static void pair_stream(const struct moment *m, size_t n, gt_channel_fn *fn, void *arg)
{
    stream.left = 0;
    stream.least = least_of(m, n);
    stream.n = 0;
    for (size_t i = 0; i < n; i++) {
        switch ((enum what)m[i].what) {
        case WAITS: begin_wait(m[i].call); break;
        case WRITES: write_to(m[i].call); break;
        default: end_read(m[i].call, fn, arg);
        }
    }
}

/* Of each call its beginning, and, of one that reads, its end. */
static struct moment *list_moments(size_t *n)
{
    struct moment *m = gt_need(calloc(2 * found.n, sizeof *m));
    for (uint32_t i = 0; i < found.n; i++) {
        const struct call *call = &found.call[i];
        m[(*n)++] = call->writes ? (struct moment){call->from, i, WRITES}
                                 : (struct moment){call->since, i, WAITS};
        if (!call->writes)
            m[(*n)++] = (struct moment){call->to, i, READ};
    }
    qsort(m, *n, sizeof *m, by_stream_and_time);
    return m;
}

void gt_channels_pair(gt_channel_fn *fn, void *arg)
{
    size_t n = 0, to;
    if (!found.n)
        return;
    struct moment *m = list_moments(&n);
    for (size_t i = 0; i < n; i = to) {
        for (to = i + 1; to < n && found.call[m[to].call].name == found.call[m[i].call].name;)
            to++;
        pair_stream(&m[i], to - i, fn, arg);
    }
    free(m);
    free(found.call);
    free(stream.open);
    gt_contents_free(&found.names);
}
