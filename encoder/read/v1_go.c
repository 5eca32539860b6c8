/* See v1_go.h. */
#include "v1_go.h"

#include "need.h"
#include "v1_events.h"

#include "encoder/base/sort.h"

#include <stdlib.h>

/*
 * EXITS: a number that no P has. In v1 threads are numbered from 0; unknown threads get numbers
 * from FIRST_UNKNOWN_THREAD on.
 */
enum { EXITS = 1 << 30, FIRST_UNKNOWN_THREAD = 3 << 29 };

/* Ends of calls ------------------------------------------------------------------------------ */

GT_ORDER(by_time, struct gt_v1_exit, GT_UP(ts) ?: GT_UP(seq))

/*
 * Keeps the end of a call. ts: the event's time. Its last argument is when the call was over; 0:
 * at ts.
 */
static void keep_exit(struct gt_v1_go *go, const struct gt_v1_record *record, uint64_t ts)
{
    struct gt_bytes args = record->args;
    struct gt_v1_exit exit = {.g = gt_get_varint(&args)};
    if (record->type == GT_V1_GO_SYS_EXIT)
        exit.seq = gt_get_varint(&args);
    exit.ts = gt_get_varint(&args);
    if (!exit.ts || exit.ts > ts)
        exit.ts = ts;
    *GT_ADD(go->exits, go->n_exits) = exit;
}

void gt_v1_go_begin(struct gt_reader *r)
{
    const struct gt_trace *t = r->trace;
    struct gt_bytes bytes = {t->base + GT_HEADER_BYTES, t->base + t->size, false};
    struct gt_v1_record record;
    uint64_t ts = 0;
    while (gt_v1_record_next(&bytes, t->format, &record)) {
        if (record.type == GT_V1_BATCH) {
            gt_get_varint(&record.args);
            ts = gt_get_varint(&record.args);
        }
        if (gt_v1_is_table(record.type))
            continue;
        ts += gt_get_varint(&record.args);
        if (record.type == GT_V1_GO_SYS_EXIT || record.type == GT_V1_GO_SYS_EXIT_LOCAL)
            keep_exit(&r->go, &record, ts);
    }
    if (!r->go.n_exits)
        return;
    qsort(r->go.exits, r->go.n_exits, sizeof *r->go.exits, by_time);
    gt_reader_source(r, EXITS);
}

void gt_v1_go_end(struct gt_reader *r)
{
    gt_memo_free(&r->go.threads);
    gt_memo_free(&r->go.calls);
    free(r->go.exits);
}

bool gt_v1_go_is_exits(const struct gt_reader *r, const struct gt_source *s)
{
    return r->go.exits && s->id == EXITS;
}

bool gt_v1_go_next_exit(struct gt_reader *r, struct gt_source *s)
{
    struct gt_v1_go *go = &r->go;
    if (go->next_exit == go->n_exits) {
        free(go->exits);
        go->exits = NULL;
        go->n_exits = go->next_exit = 0;
        return false;
    }
    const struct gt_v1_exit *exit = &go->exits[go->next_exit++];
    s->next = (struct gt_happening){.type = GT_EV_GO_SYSCALL_END_BLOCKED,
                                    .on = &s->stream,
                                    .thread = GT_NO_THREAD,
                                    .ts = exit->ts,
                                    .g = exit->g,
                                    .seq = exit->seq,
                                    .text = "",
                                    .more = ""};
    s->key = exit->ts;
    return true;
}

/* Where things happen ------------------------------------------------------------------------ */

static struct gt_stream *thread_of(struct gt_reader *r, uint64_t number)
{
    uint64_t *slot = gt_need(gt_memo_at(&r->go.threads, number + 1));
    if (!*slot) {
        struct gt_stream *thread = gt_need(calloc(1, sizeof *thread));
        thread->thread = number;
        thread->p = GT_NO_P;
        *slot = (uintptr_t)thread;
    }
    return (struct gt_stream *)(uintptr_t)*slot;
}

static void take_p(struct gt_source *s, struct gt_stream *thread)
{
    s->place = thread;
    s->left = false;
    s->next.p = s->next.arg[0] = s->id;
}

/*
 * A goroutine that is created before a thread has the P existed when recording began: makes the
 * event a status. The next event may say what the goroutine does. In our own files such events may
 * come later.
 */
static void tell_who_is_there(struct gt_reader *r, struct gt_source *s)
{
    struct gt_happening *h = &s->next;
    struct gt_v1_entry event;
    const struct gt_v1_entry *peeked = gt_v1_event_peek(r, s);
    struct gt_bytes args = peeked ? peeked->record.args : (struct gt_bytes){NULL, NULL, false};
    unsigned type = peeked ? peeked->record.type : 0;
    bool waits =
        (type == GT_V1_GO_WAITING || type == GT_V1_GO_IN_SYSCALL) && gt_get_varint(&args) == h->g;
    if (s->place->thread != GT_NO_THREAD && !waits)
        return;
    h->type = GT_EV_GO_STATUS;
    h->state = GT_G_RUNNABLE;
    h->stack = NULL;
    if (!waits)
        return;
    gt_v1_event_next(r, s, &event);
    h->seq = 1;
    h->state = type == GT_V1_GO_WAITING ? GT_G_WAITING : GT_G_SYSCALL;
}

static void note_call(struct gt_reader *r, uint64_t g, struct gt_stream *thread)
{
    *(uint64_t *)gt_need(gt_memo_at(&r->go.calls, g)) = (uintptr_t)thread;
}

/* A stream for the thread in which goroutine g calls: v1 does not say which thread it is. */
static struct gt_stream *unknown_thread(struct gt_reader *r, uint64_t g)
{
    struct gt_stream *thread = thread_of(r, FIRST_UNKNOWN_THREAD + r->go.unknown++);
    note_call(r, g, thread);
    return thread;
}

/* Begins a call. It is over at once, unless the P's next event says that it lasts. */
static void begin_call(struct gt_reader *r, struct gt_source *s)
{
    const struct gt_v1_entry *after = gt_v1_event_peek(r, s);
    s->next.type = GT_EV_GO_SYSCALL_BEGIN;
    s->next.stack = s->call;
    s->calls = after && after->record.type == GT_V1_GO_SYS_BLOCK;
    s->then = s->calls ? NOTHING_MORE : RETURNS;
}

/* A call lasts. false: the beginning of the call was reported as such already. */
static bool it_lasts(struct gt_reader *r, struct gt_source *s)
{
    bool told = s->calls;
    note_call(r, s->g, s->place);
    s->calls = false;
    s->left = true;
    return !told;
}

/*
 * A thread whose call is over may find its old P with another thread that is in a call, and take
 * the P without an event. false: the thread has another P.
 */
static bool retake_p(struct gt_source *s)
{
    if (!s->left)
        return false;
    s->next.type = GT_EV_PROC_STOP;
    s->then = IS_TAKEN;
    return true;
}

bool gt_v1_go_tell(struct gt_reader *r, struct gt_source *s, const struct gt_v1_entry *event)
{
    struct gt_happening *h = &s->next;
    bool tells = true;
    s->place = s->place ? s->place : &s->stream;
    switch (event->record.type) {
    case GT_V1_PROC_START: take_p(s, thread_of(r, s->stream.thread)); break;
    case GT_V1_PROC_STOP: s->left = false; break;
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: s->g = h->g; break;
    case GT_V1_GO_SYS_CALL: begin_call(r, s); break;
    case GT_V1_GO_SYS_BLOCK: tells = it_lasts(r, s); break;
    case GT_V1_GO_SYS_EXIT:
    case GT_V1_GO_SYS_EXIT_LOCAL:
        s->g = h->g;
        tells = retake_p(s);
        break;
    case GT_V1_GO_CREATE: tell_who_is_there(r, s); break;
    default: break;
    }
    s->stream.thread = GT_NO_THREAD;
    h->on = s->place;
    h->on->p = s->id;
    if (h->type == GT_EV_GO_STATUS && h->state == GT_G_SYSCALL)
        h->on = unknown_thread(r, h->g);
    if (h->type == GT_EV_PROC_STOP)
        s->place = &s->stream;
    return h->type && tells;
}

bool gt_v1_go_tell_more(struct gt_reader *r, struct gt_source *s)
{
    struct gt_happening *h = &s->next;
    struct gt_stream *taker = (void *)(uintptr_t)gt_memo_find(&r->go.calls, s->g);
    switch (s->then) {
    case RETURNS: h->type = GT_EV_GO_SYSCALL_END; break;
    case IS_TAKEN:
        h->type = GT_EV_PROC_START;
        take_p(s, taker ? taker : unknown_thread(r, s->g));
        break;
    default: return false;
    }
    h->on = s->place;
    h->on->p = s->id;
    h->stack = NULL;
    h->g = h->seq = 0;
    s->then = NOTHING_MORE;
    return true;
}
