/* See streams.h. */
#include "streams.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>

/* The moments of calls, in the order that those of one time are taken in. */
enum what { READ, WROTE, READS, WRITES, WAITS };
struct moment {
    uint64_t ns;
    uint32_t call;
    uint8_t what;
};

static struct {
    const struct gt_channel_call *call; /* all calls */
    gt_channel_fn *fn;
    void *arg;
} streams;

/* A call that waits to read, or reads; or one that writes without room for all its bytes. */
struct open {
    uint32_t call; /* that call */
    uint32_t by;   /* the call that ends its wait */
    int64_t over;  /* of a writer: so many bytes do not fit; `by` is the read that makes room */
    bool met, certain;
};

struct opens {
    struct open *at;
    size_t n;
};

/* The state of the stream in work. Its sums are off by the bytes that were there at first. */
static struct {
    int64_t left;    /* bytes that may be there: all begun writes less all ended reads */
    int64_t certain; /* bytes surely there: all ended writes less all begun reads */
    int64_t least;   /* value of `left` where the stream is empty */
    int64_t room;    /* size of the pipe; 0: not known */
    unsigned writing;
    struct opens reading, full, made; /* made: ended waits for room, until the sums prove right */
} stream;

static const struct gt_channel_call *call_of(uint32_t i)
{
    return &streams.call[i];
}

static struct open *add(struct opens *opens, struct open open)
{
    struct open *its = GT_ADD(opens->at, opens->n);
    *its = open;
    return its;
}

/* Moves the call's entry to *open; false: the call has none. */
static bool take_out(struct opens *opens, uint32_t call, struct open *open)
{
    for (size_t i = 0; i < opens->n; i++) {
        if (opens->at[i].call != call)
            continue;
        *open = opens->at[i];
        opens->at[i] = opens->at[--opens->n];
        return true;
    }
    return false;
}

static void doubt(struct opens *opens)
{
    for (size_t i = 0; i < opens->n; i++)
        opens->at[i].certain = false;
}

static bool is_same_thread(uint32_t one, uint32_t other)
{
    const struct gt_channel_thread *a = &call_of(one)->thread, *b = &call_of(other)->thread;
    return a->in == b->in && a->g == b->g;
}

static void tell(const struct open *o)
{
    const struct gt_channel_call *by = call_of(o->by);
    streams.fn(streams.arg, by->thread, by->own, call_of(o->call)->thread);
}

static bool is_certain(const struct open *o)
{
    const struct gt_channel_call *its = call_of(o->call), *by = call_of(o->by);
    return o->certain && o->met && its->until > by->from && its->until <= by->to + GT_AT_ONCE_NS;
}

/* Readers that wait for bytes ----------------------------------------------------------------- */

static void begin_wait(uint32_t call)
{
    bool alone = !stream.reading.n;
    doubt(&stream.reading);
    add(&stream.reading,
        (struct open){.call = call, .certain = alone && stream.left == stream.least});
}

static void meet_writer(uint32_t call)
{
    for (size_t i = 0; i < stream.reading.n; i++) {
        struct open *o = &stream.reading.at[i];
        if (call_of(call)->from > call_of(o->call)->until)
            continue;
        o->certain &= !o->met || is_same_thread(call, o->by);
        o->by = o->met ? o->by : call;
        o->met = true;
    }
}

static void end_read(uint32_t call)
{
    struct open o;
    if (take_out(&stream.reading, call, &o) && is_certain(&o))
        tell(&o);
    stream.left -= (int64_t)call_of(call)->bytes;
    for (size_t i = 0; stream.left == stream.least && i < stream.made.n; i++)
        tell(&stream.made.at[i]);
    stream.made.n = stream.left == stream.least ? 0 : stream.made.n;
}

/* Writers that wait for room ------------------------------------------------------------------ */

static void begin_write(uint32_t call)
{
    int64_t bytes = (int64_t)call_of(call)->bytes;
    int64_t over = stream.certain - stream.least + bytes - stream.room;
    meet_writer(call);
    if (stream.writing++)
        doubt(&stream.full);
    if (stream.room && over > 0)
        add(&stream.full,
            (struct open){.call = call, .over = over, .certain = stream.writing == 1});
    stream.left += bytes;
}

static void begin_read(uint32_t call)
{
    for (size_t i = 0; i < stream.full.n; i++) {
        struct open *o = &stream.full.at[i];
        o->certain &= !o->met || is_same_thread(call, o->by);
        o->by = o->over > 0 ? call : o->by;
        o->over -= (int64_t)call_of(call)->bytes;
        o->met = true;
    }
    stream.certain -= (int64_t)call_of(call)->bytes;
}

static void end_write(uint32_t call)
{
    struct open o;
    if (take_out(&stream.full, call, &o) && is_certain(&o) && o.over <= 0)
        add(&stream.made, o);
    stream.certain += (int64_t)call_of(call)->bytes;
    stream.writing--;
}

/* All streams --------------------------------------------------------------------------------- */

GT_ORDER(by_stream_and_time, struct moment,
        gt_compare_pointers(call_of(x->call)->name, call_of(y->call)->name) ?: GT_UP(ns) ?:
        x->what - y->what)

/*
 * Finds the value of `left` where the stream is empty: the second lowest of all low points. One
 * outlier is allowed for, as a call under way when a generation began can be recorded as begun
 * then, and its bytes as read before. At the beginning the stream counts as empty.
 */
struct low {
    int64_t lowest, next, left;
    bool falls;
};

static void note_low(struct low *low)
{
    int64_t left = low->left;
    low->next = left < low->lowest ? low->lowest : left < low->next ? left : low->next;
    low->lowest = left < low->lowest ? left : low->lowest;
    low->falls = false;
}

static void follow(struct low *low, enum what what, int64_t bytes)
{
    if (what == WRITES && low->falls)
        note_low(low);
    low->falls |= what == READ;
    low->left += what == WRITES ? bytes : what == READ ? -bytes : 0;
}

/* Sets stream.least and stream.room; room is not known (0) if the pipe seems to hold more. */
static void measure(const struct moment *m, size_t n)
{
    int64_t certain = 0, most = 0;
    struct low low = {.lowest = 0};
    stream.room = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gt_channel_call *call = call_of(m[i].call);
        int64_t bytes = (int64_t)call->bytes;
        follow(&low, m[i].what, bytes);
        certain += m[i].what == WROTE ? bytes : m[i].what == READS ? -bytes : 0;
        stream.room = call->room > stream.room ? call->room : stream.room;
        most = certain > most ? certain : most;
    }
    note_low(&low);
    stream.least = low.next;
    if (most - stream.least > stream.room)
        stream.room = 0;
}

static void pair_stream(const struct moment *m, size_t n)
{
    measure(m, n);
    stream.left = stream.certain = 0;
    stream.writing = 0;
    stream.reading.n = stream.full.n = stream.made.n = 0;
    for (size_t i = 0; i < n; i++) {
        switch ((enum what)m[i].what) {
        case WAITS: begin_wait(m[i].call); break;
        case WRITES: begin_write(m[i].call); break;
        case WROTE: end_write(m[i].call); break;
        case READS: begin_read(m[i].call); break;
        default: end_read(m[i].call);
        }
    }
}

static struct moment *list_moments(size_t calls, size_t *n)
{
    struct moment *m = gt_need(calloc(3 * calls, sizeof *m));
    for (uint32_t i = 0; i < calls; i++) {
        const struct gt_channel_call *call = call_of(i);
        m[(*n)++] = (struct moment){call->from, i, call->writes ? WRITES : READS};
        m[(*n)++] = (struct moment){call->to, i, call->writes ? WROTE : READ};
        if (!call->writes)
            m[(*n)++] = (struct moment){call->since, i, WAITS};
    }
    qsort(m, *n, sizeof *m, by_stream_and_time);
    return m;
}

void gt_streams_pair(const struct gt_channel_call *call, size_t calls, gt_channel_fn *fn, void *arg)
{
    size_t n = 0, to;
    if (!calls)
        return;
    streams.call = call;
    streams.fn = fn;
    streams.arg = arg;
    struct moment *m = list_moments(calls, &n);
    for (size_t i = 0; i < n; i = to) {
        for (to = i + 1; to < n && call_of(m[to].call)->name == call_of(m[i].call)->name;)
            to++;
        pair_stream(&m[i], to - i);
    }
    free(m);
    free(stream.reading.at);
    free(stream.full.at);
    free(stream.made.at);
}
