/* See channel_calls.h. */
#include "channel_calls.h"

#include "streams.h"

#include "encoder/format/channel.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

static struct {
    struct gt_channel_call *call;
    size_t n;
    struct gt_contents names;
} found;

/* The last wait or call of a thread, and its last poll. */
struct doing {
    uint64_t began; /* ns of its trace: begin of the last wait or call */
    struct stretch {
        uint64_t from, to, own;
        bool waits; /* a wait whose waker is not known */
    } last, poll;
    bool polled, reads_next; /* poll found one descriptor ready; `last` came right after it */
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

/* Parses "read 512", "wrote 512" or "wrote 512 of 65536"; false: no bytes moved, or other text. */
static bool read_moved(const char *text, struct gt_channel_call *call)
{
    call->writes = strncmp(text, GT_CHANNEL_WROTE, sizeof GT_CHANNEL_WROTE - 1) == 0;
    if (!call->writes && strncmp(text, GT_CHANNEL_READ, sizeof GT_CHANNEL_READ - 1) != 0)
        return false;
    char *end;
    call->bytes = strtoull(strchr(text, ' ') + 1, &end, 10);
    if (strncmp(end, GT_CHANNEL_OF, sizeof GT_CHANNEL_OF - 1) == 0)
        call->room = (uint32_t)strtoul(end + sizeof GT_CHANNEL_OF - 1, NULL, 10);
    return call->bytes > 0;
}

static void add(struct gt_channels *c, const struct doing *d, const struct gt_happening *h,
                uint64_t g)
{
    const char *name = h->text + sizeof GT_CHANNEL - 1;
    struct gt_channel_call call = {.thread = {c->in, g}, .from = d->last.from, .to = d->last.to};
    if (!d->last.to || !read_moved(h->more, &call))
        return;
    const struct stretch *wait = d->reads_next && !call.writes ? &d->poll : &d->last;
    call.name = gt_contents_text(&found.names, name, strlen(name));
    call.to = call.to > call.from ? call.to : call.from + 1;
    call.own = d->last.own;
    call.since = wait->from;
    call.until = wait->waits ? wait->to : 0;
    *GT_ADD(found.call, found.n) = call;
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

void gt_channels_pair(gt_channel_fn *fn, void *arg)
{
    gt_streams_pair(found.call, found.n, fn, arg);
    free(found.call);
    gt_contents_free(&found.names);
}
