/*
 * Writes a trace for Perfetto: its message Trace, packet by packet, in one sequence. Each thread
 * has a track with its states as slices. Below it are a track of its regions and a track for each
 * lock that it held. Tasks are tracks of the process. An arrow leads from the waker to the time
 * when the woken thread became runnable. Names and stacks are written once, before the first packet
 * that refers to them.
 */
#include "export.h"
#include "export_modules.h"
#include "export_names.h"
#include "protobuf.h"
#include "timeline.h"

#include "encoder/base/hash.h"
#include "encoder/base/path.h"
#include "encoder/read/need.h"

#include <string.h>

/* Fields, as Perfetto's descriptions number them. */
enum { TRACE_PACKET = 1 };
enum { PACKET_CLOCKS = 6, PACKET_TIME = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11 };
enum { PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_TRACK = 60, PACKET_SAMPLE = 66 };
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME };
enum { CLOCK_REALTIME = 1, CLOCK_BOOT = 6 };
enum { EVENT_CATEGORY = 3, EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME = 10 };
enum { EVENT_TRACK = 11, EVENT_COUNT = 30, EVENT_FLOW = 47, EVENT_FLOW_ENDS = 48 };
enum { EVENT_STACK = 56 };
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { ANNOTATION_NAME = 1, ANNOTATION_NUMBER = 3, ANNOTATION_TEXT = 17 };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { PROCESS_ID = 1, PROCESS_NAME = 6, THREAD_PROCESS = 1, THREAD_ID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { SAMPLE_PROCESS = 2, SAMPLE_THREAD = 3, SAMPLE_STACK = 4, SAMPLE_MODE = 5, MODE_USER = 2 };

/* InternedData: tables of things with a number and a text... */
enum table { CATEGORIES = 1, NAMES, ANNOTATIONS, FUNCTIONS = 5, FRAMES, STACKS };
enum { BUILD_IDS = 16, PATHS, SOURCES, MAPPINGS, TEXTS = 29, TABLES = 30 };
enum { INTERNED_ID = 1, INTERNED_TEXT };
/* ... and the tables for stacks. */
enum { FRAME_FUNCTION = 2, FRAME_MAPPING, FRAME_PC, FRAME_SOURCE, FRAME_LINE };
enum { STACK_FRAME = 2 };
enum { MAPPING_BUILD_ID = 2, MAPPING_FROM = 4, MAPPING_TO, MAPPING_PATH = 7 };

enum { SEQUENCE = 1, FLAG_BEGINS = 1, FLAG_GOES_ON = 2 };

/* The ids of tracks, each unique. */
enum { PROCESS_TRACK = 1, COUNTER_TRACKS = 2, FIRST_THREAD = 16, THREAD_TRACKS = 2 };
#define LOCK_TRACKS (1ull << 60)
#define TASK_TRACKS (1ull << 61)

/* The state of a thread. */
struct its {
    uint64_t tid;  /* a number that no other thread has in this file */
    uint64_t flow; /* the arrow to its next slice; 0: none */
    bool has_regions;
};

struct held_track {
    uint64_t number, until; /* until: end of the last hold on this track */
};

struct perfetto {
    const struct gt_export *x;
    struct gt_message packet, interned, event;
    struct gt_memo ids[TABLES]; /* key of a row that was written → its number */
    uint64_t last_id[TABLES];
    struct gt_threads threads;
    struct gt_memo its, held; /* thread → struct its; thread and lock → struct held_track */
    struct gt_memo tids;      /* tid plus 1 → the thread that has it */
    struct gt_memo tasks;     /* tasks that have a track */
    struct gt_export_modules modules;
    uint64_t process, flows, locks;
    bool begun;
};

/* Packets ------------------------------------------------------------------------------------ */

static void put_packet(struct perfetto *f, unsigned field, uint64_t ns)
{
    struct gt_message *p = &f->packet;
    p->n = 0;
    size_t begin = gt_message_begin(p, TRACE_PACKET);
    gt_message_number(p, PACKET_TIME, ns);
    gt_message_number(p, PACKET_SEQUENCE, SEQUENCE);
    gt_message_number(p, PACKET_FLAGS, f->begun ? FLAG_GOES_ON : FLAG_BEGINS);
    if (f->interned.n)
        gt_message_bytes(p, PACKET_INTERNED, f->interned.data, f->interned.n);
    gt_message_bytes(p, field, f->event.data, f->event.n);
    gt_message_end(p, begin);
    fwrite(p->data, 1, p->n, f->x->file);
    f->begun = true;
    f->interned.n = f->event.n = 0;
}

/* Names and stacks --------------------------------------------------------------------------- */

/* The number of the row with this key; *fresh: it is new, and the caller must write it. */
static uint64_t id_in(struct perfetto *f, int table, uint64_t key, bool *fresh)
{
    uint64_t *slot = gt_need(gt_memo_at(&f->ids[table], key));
    *fresh = !*slot;
    if (*fresh)
        *slot = ++f->last_id[table];
    return *slot;
}

static uint64_t text_in(struct perfetto *f, int table, const char *text)
{
    bool fresh;
    const char *its = gt_contents_text(&f->x->trace->contents, text, strlen(text));
    uint64_t id = id_in(f, table, (uintptr_t)its, &fresh);
    if (fresh) {
        size_t begin = gt_message_begin(&f->interned, (unsigned)table);
        gt_message_number(&f->interned, INTERNED_ID, id);
        gt_message_text(&f->interned, INTERNED_TEXT, its);
        gt_message_end(&f->interned, begin);
    }
    return id;
}

static uint64_t build_id_in(struct perfetto *f, const struct gt_module *module)
{
    uint64_t id = ++f->last_id[BUILD_IDS];
    size_t begin = gt_message_begin(&f->interned, BUILD_IDS);
    gt_message_number(&f->interned, INTERNED_ID, id);
    gt_message_bytes(&f->interned, INTERNED_TEXT, module->build_id, module->build_id_len);
    gt_message_end(&f->interned, begin);
    return id;
}

/* The mapping of the code at pc; all code of unknown modules shares one mapping. */
static uint64_t mapping_of(struct perfetto *f, uint64_t pc, uint64_t *from)
{
    static const struct gt_export_module nowhere = {.its = {.path = "[unknown]"}};
    bool fresh;
    const struct gt_export_module *at = gt_export_module_at(&f->modules, f->x->trace, pc);
    const struct gt_module *module = at ? &at->its : &nowhere.its;
    uint64_t id = id_in(f, MAPPINGS, at ? at->id : UINT64_MAX, &fresh);
    *from = module->lo;
    if (!fresh)
        return id;
    uint64_t path = text_in(f, PATHS, module->path);
    uint64_t build_id = module->build_id_len ? build_id_in(f, module) : 0;
    size_t begin = gt_message_begin(&f->interned, MAPPINGS);
    gt_message_number(&f->interned, INTERNED_ID, id);
    if (build_id)
        gt_message_number(&f->interned, MAPPING_BUILD_ID, build_id);
    gt_message_number(&f->interned, MAPPING_FROM, module->lo);
    gt_message_number(&f->interned, MAPPING_TO, module->hi);
    gt_message_number(&f->interned, MAPPING_PATH, path);
    gt_message_end(&f->interned, begin);
    return id;
}

static uint64_t frame_in(struct perfetto *f, const struct gt_where *frame)
{
    bool fresh;
    uint64_t key = gt_hash_mix(gt_hash_mix(0, frame->pc), (uintptr_t)frame->func);
    key = gt_hash_mix(gt_hash_mix(key, (uintptr_t)frame->file), frame->line);
    uint64_t id = id_in(f, FRAMES, key, &fresh), from;
    if (!fresh)
        return id;
    uint64_t function = text_in(f, FUNCTIONS, frame->func);
    uint64_t source = *frame->file ? text_in(f, SOURCES, frame->file) : 0;
    uint64_t mapping = mapping_of(f, frame->pc, &from);
    size_t begin = gt_message_begin(&f->interned, FRAMES);
    gt_message_number(&f->interned, INTERNED_ID, id);
    gt_message_number(&f->interned, FRAME_FUNCTION, function);
    gt_message_number(&f->interned, FRAME_MAPPING, mapping);
    gt_message_number(&f->interned, FRAME_PC, frame->pc - from);
    if (source)
        gt_message_number(&f->interned, FRAME_SOURCE, source);
    if (frame->line)
        gt_message_number(&f->interned, FRAME_LINE, frame->line);
    gt_message_end(&f->interned, begin);
    return id;
}

/* The number of the stack; 0: there is no stack. */
static uint64_t stack_in(struct perfetto *f, const struct gt_callers *stack)
{
    bool fresh;
    if (!stack || !stack->n)
        return 0;
    uint64_t id = id_in(f, STACKS, stack->number, &fresh);
    if (!fresh)
        return id;
    for (uint32_t i = 0; i < stack->n; i++)
        frame_in(f, &stack->frame[i]); /* writes the frame, which must be outside of the stack */
    size_t begin = gt_message_begin(&f->interned, STACKS);
    gt_message_number(&f->interned, INTERNED_ID, id);
    for (uint32_t i = stack->n; i-- > 0;) /* the outermost first */
        gt_message_number(&f->interned, STACK_FRAME, frame_in(f, &stack->frame[i]));
    gt_message_end(&f->interned, begin);
    return id;
}

/* Threads ------------------------------------------------------------------------------------ */

static struct its *its_of(struct perfetto *f, const struct gt_thread_state *t)
{
    uint64_t *slot = gt_need(gt_memo_at(&f->its, (uintptr_t)t));
    if (!*slot)
        *slot = (uintptr_t)gt_need(calloc(1, sizeof(struct its)));
    return (void *)(uintptr_t)*slot;
}

static uint64_t track_of(const struct gt_thread_state *t)
{
    return FIRST_THREAD + t->g * THREAD_TRACKS;
}

/*
 * The kernel's thread number, for the first thread that has it. The kernel reuses numbers of ended
 * threads, and goroutines of a Go program take turns on its threads. All later ones get a number
 * that no thread has.
 */
static uint64_t tid_of(struct perfetto *f, const struct gt_thread_state *t)
{
    struct its *its = its_of(f, t);
    if (its->tid)
        return its->tid;
    its->tid = (1u << 30) + t->g;
    if (t->thread == GT_NO_THREAD)
        return its->tid;
    uint64_t *owner = gt_need(gt_memo_at(&f->tids, t->thread + 1));
    if (!*owner) {
        *owner = (uintptr_t)t;
        its->tid = t->thread;
    }
    return its->tid;
}

/* The pid: the number of the main thread, or 1 if the trace does not have it. */
static uint64_t process_of(struct perfetto *f)
{
    const struct gt_thread_state *first = gt_threads_find(&f->threads, 1);
    if (!f->process)
        f->process = first && first->thread != GT_NO_THREAD ? first->thread : 1;
    return f->process;
}

/* Events ------------------------------------------------------------------------------------- */

static void annotate(struct perfetto *f, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    uint64_t name_id = text_in(f, ANNOTATIONS, name), text_id = text_in(f, TEXTS, text);
    size_t begin = gt_message_begin(&f->event, EVENT_ANNOTATION);
    gt_message_number(&f->event, ANNOTATION_NAME, name_id);
    gt_message_number(&f->event, ANNOTATION_TEXT, text_id);
    gt_message_end(&f->event, begin);
}

static void annotate_number(struct perfetto *f, const char *name, uint64_t number)
{
    uint64_t name_id = text_in(f, ANNOTATIONS, name);
    size_t begin = gt_message_begin(&f->event, EVENT_ANNOTATION);
    gt_message_number(&f->event, ANNOTATION_NAME, name_id);
    gt_message_number(&f->event, ANNOTATION_NUMBER, number);
    gt_message_end(&f->event, begin);
}

/* Begins an event. The caller adds more fields, and calls put_packet. */
static void begin_event(struct perfetto *f, unsigned type, uint64_t track, const char *category,
                        const char *name)
{
    gt_message_number(&f->event, EVENT_TYPE, type);
    gt_message_number(&f->event, EVENT_TRACK, track);
    gt_message_number(&f->event, EVENT_CATEGORY, text_in(f, CATEGORIES, category));
    gt_message_number(&f->event, EVENT_NAME, text_in(f, NAMES, name));
}

static void end_slice(struct perfetto *f, uint64_t track, uint64_t ns)
{
    gt_message_number(&f->event, EVENT_TYPE, TYPE_END);
    gt_message_number(&f->event, EVENT_TRACK, track);
    put_packet(f, PACKET_EVENT, ns);
}

static void put_wake(struct perfetto *f, const struct gt_span *span, uint64_t ns)
{
    uint64_t stack = stack_in(f, span->waker);
    its_of(f, span->thread)->flow = ++f->flows;
    begin_event(f, TYPE_INSTANT, track_of(span->by), "wake", "wakes");
    annotate(f, "whom", gt_export_thread_id(span->thread));
    annotate(f, "where", gt_export_place(span->waker));
    gt_message_fixed(&f->event, EVENT_FLOW, f->flows);
    if (stack)
        gt_message_number(&f->event, EVENT_STACK, stack);
    put_packet(f, PACKET_EVENT, ns);
}

static void put_span(void *arg, const struct gt_span *span)
{
    struct perfetto *f = arg;
    struct its *its = its_of(f, span->thread);
    bool waits = span->kind != GT_RUNNING;
    uint64_t stack = waits ? stack_in(f, span->stack) : 0;
    begin_event(f, TYPE_BEGIN, track_of(span->thread), gt_kind_names[span->kind],
                gt_export_state(span));
    if (waits && span->stack)
        annotate(f, "where", gt_export_place(span->stack));
    if (span->wanted) {
        annotate(f, "lock", span->wanted->lock->name);
        annotate(f, "owner", gt_export_holder(span->wanted));
    }
    if (span->by)
        annotate(f, "ended by", gt_export_thread_id(span->by));
    if (waits && !span->ended)
        annotate(f, "state", "still waits when the trace ends");
    if (its->flow)
        gt_message_fixed(&f->event, EVENT_FLOW_ENDS, its->flow);
    its->flow = 0;
    if (stack)
        gt_message_number(&f->event, EVENT_STACK, stack);
    put_packet(f, PACKET_EVENT, span->from);
    end_slice(f, track_of(span->thread), span->from + span->ns);
    if (span->by)
        put_wake(f, span, span->from + span->ns);
}

static void put_track(struct perfetto *f, uint64_t track, uint64_t parent, const char *name)
{
    gt_message_number(&f->event, TRACK_ID, track);
    gt_message_number(&f->event, TRACK_PARENT, parent);
    gt_message_text(&f->event, TRACK_NAME, name);
    put_packet(f, PACKET_TRACK, 0);
}

static struct held_track *held_track(struct perfetto *f, const struct gt_lock_state *lock,
                                     const struct gt_thread_state *thread)
{
    char name[512];
    uint64_t key = gt_hash_mix(gt_hash_mix(0, thread->g), (uintptr_t)lock);
    uint64_t *slot = gt_need(gt_memo_at(&f->held, key));
    if (*slot)
        return (void *)(uintptr_t)*slot;
    struct held_track *track = gt_need(calloc(1, sizeof *track));
    *slot = (uintptr_t)track;
    track->number = LOCK_TRACKS + ++f->locks;
    snprintf(name, sizeof name, "holds %s", lock->name);
    put_track(f, track->number, track_of(thread), name);
    return track;
}

/* Times of holds are rounded, so a hold is moved to begin after the last one's end. */
static void put_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct perfetto *f = arg;
    struct held_track *track = held_track(f, lock, hold->thread);
    uint64_t from = hold->from > track->until ? hold->from : track->until;
    begin_event(f, TYPE_BEGIN, track->number, "hold", lock->name);
    annotate(f, "taken in", hold->place);
    put_packet(f, PACKET_EVENT, from);
    end_slice(f, track->number, hold->to > from ? hold->to : from);
    track->until = hold->to;
}

static void put_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct perfetto *f = arg;
    uint64_t id = stack_in(f, stack);
    if (!id)
        return;
    gt_message_number(&f->event, SAMPLE_PROCESS, process_of(f));
    gt_message_number(&f->event, SAMPLE_THREAD, tid_of(f, thread));
    gt_message_number(&f->event, SAMPLE_STACK, id);
    gt_message_number(&f->event, SAMPLE_MODE, MODE_USER);
    put_packet(f, PACKET_SAMPLE, ns);
}

static void put_task(struct perfetto *f, const struct gt_mark *mark)
{
    uint64_t track = TASK_TRACKS + mark->task;
    bool below = gt_memo_find(&f->tasks, mark->parent + 1);
    uint64_t *known = gt_need(gt_memo_at(&f->tasks, mark->task + 1));
    if (mark->ends) {
        if (*known) /* else the task began before the recording */
            end_slice(f, track, mark->ns);
        return;
    }
    *known = 1;
    put_track(f, track, below ? TASK_TRACKS + mark->parent : PROCESS_TRACK, mark->name);
    begin_event(f, TYPE_BEGIN, track, "task", mark->name);
    annotate_number(f, "task", mark->task);
    put_packet(f, PACKET_EVENT, mark->ns);
}

static void put_region(struct perfetto *f, const struct gt_mark *mark)
{
    struct its *its = its_of(f, mark->thread);
    uint64_t track = track_of(mark->thread) + 1;
    if (!its->has_regions)
        put_track(f, track, track_of(mark->thread), "regions");
    its->has_regions = true;
    if (mark->ends) {
        end_slice(f, track, mark->ns);
        return;
    }
    begin_event(f, TYPE_BEGIN, track, "region", mark->name);
    if (mark->task)
        annotate_number(f, "task", mark->task);
    put_packet(f, PACKET_EVENT, mark->ns);
}

static void put_log(struct perfetto *f, const struct gt_mark *mark)
{
    begin_event(f, TYPE_INSTANT, track_of(mark->thread), "log", *mark->name ? mark->name : "log");
    annotate(f, "message", mark->more);
    if (mark->task)
        annotate_number(f, "task", mark->task);
    put_packet(f, PACKET_EVENT, mark->ns);
}

static void put_mark(void *arg, const struct gt_mark *mark)
{
    if (mark->kind == GT_MARK_TASK)
        put_task(arg, mark);
    else if (mark->thread && mark->kind == GT_MARK_REGION)
        put_region(arg, mark);
    else if (mark->thread)
        put_log(arg, mark);
}

static void put_count(void *arg, enum gt_counter counter, uint64_t ns, uint64_t value)
{
    struct perfetto *f = arg;
    gt_message_number(&f->event, EVENT_TYPE, TYPE_COUNTER);
    gt_message_number(&f->event, EVENT_TRACK, COUNTER_TRACKS + counter);
    gt_message_number(&f->event, EVENT_COUNT, value);
    put_packet(f, PACKET_EVENT, ns);
}

/* Tracks ------------------------------------------------------------------------------------- */

/* Writes the counters' tracks, before their first values. Other tracks may follow their events. */
static void put_counters(struct perfetto *f)
{
    for (int c = 0; c < GT_COUNTERS; c++) {
        bool bytes = c == GT_COUNT_HEAP || c == GT_COUNT_GOAL;
        gt_message_number(&f->event, TRACK_ID, COUNTER_TRACKS + (uint64_t)c);
        gt_message_number(&f->event, TRACK_PARENT, PROCESS_TRACK);
        gt_message_text(&f->event, TRACK_NAME, gt_counter_names[c]);
        size_t begin = gt_message_begin(&f->event, TRACK_COUNTER);
        gt_message_number(&f->event, COUNTER_UNIT, bytes ? UNIT_BYTES : UNIT_COUNT);
        gt_message_end(&f->event, begin);
        put_packet(f, PACKET_TRACK, 0);
    }
}

static void put_thread(struct perfetto *f, const struct gt_thread_state *t)
{
    gt_message_number(&f->event, TRACK_ID, track_of(t));
    size_t begin = gt_message_begin(&f->event, TRACK_THREAD);
    gt_message_number(&f->event, THREAD_PROCESS, process_of(f));
    gt_message_number(&f->event, THREAD_ID, tid_of(f, t));
    gt_message_text(&f->event, THREAD_NAME, gt_export_thread(t));
    gt_message_end(&f->event, begin);
    put_packet(f, PACKET_TRACK, 0);
}

static void put_process(struct perfetto *f)
{
    gt_message_number(&f->event, TRACK_ID, PROCESS_TRACK);
    size_t begin = gt_message_begin(&f->event, TRACK_PROCESS);
    gt_message_number(&f->event, PROCESS_ID, process_of(f));
    gt_message_text(&f->event, PROCESS_NAME, gt_path_name(f->x->trace->path));
    gt_message_end(&f->event, begin);
    put_packet(f, PACKET_TRACK, 0);
}

static void put_clock(struct gt_message *m, uint64_t clock, uint64_t ns)
{
    size_t begin = gt_message_begin(m, CLOCKS_CLOCK);
    gt_message_number(m, CLOCK_ID, clock);
    gt_message_number(m, CLOCK_TIME, ns);
    gt_message_end(m, begin);
}

/* Writes the time of day, if the trace has it. */
static void put_clocks(struct perfetto *f)
{
    const struct gt_trace *t = f->x->trace;
    if (!t->wall_s)
        return;
    put_clock(&f->event, CLOCK_BOOT, 0);
    put_clock(&f->event, CLOCK_REALTIME, t->wall_s * 1000000000 + t->wall_ns);
    put_packet(f, PACKET_CLOCKS, 0);
}

void gt_export_perfetto(const struct gt_export *x)
{
    struct perfetto f = {.x = x};
    struct gt_timeline timeline = {.span = put_span,
                                   .hold = put_hold,
                                   .sample = put_sample,
                                   .mark = put_mark,
                                   .count = put_count,
                                   .arg = &f};
    put_counters(&f);
    gt_timeline_read(&timeline, &f.threads, x->trace);
    put_process(&f);
    for (const struct gt_thread_state *t = f.threads.first; t; t = t->next)
        put_thread(&f, t); /* names and numbers of threads are known only now */
    put_clocks(&f);
}
