/* See writing.h. Replaces the recording threads and the drain side of a recording. */
#include "writing.h"

#include "encoder/base/clock.h"
#include "encoder/base/hash.h"
#include "encoder/base/varint.h"
#include "encoder/cpu/merge.h"
#include "encoder/cpu/samples.h"
#include "encoder/file/frames.h"
#include "encoder/file/output.h"
#include "encoder/file/v1/v1.h"
#include "encoder/file/v2.h"
#include "encoder/format/setup.h"
#include "encoder/read/need.h"
#include "encoder/thread/held.h"
#include "encoder/thread/procs.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/texts.h"
#include "encoder/thread/writer.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_MAX = 1 + (1 + GT_EVENT_ARGS_MAX) * GT_VARINT_MAX, LEAST_ROOM = 512 };
enum { TEXT_MAX = 1 + 2 * GT_VARINT_MAX + GT_STRING_MAX };
enum { TRACER = 0, ANY_THREAD = 1 }; /* the M of a batch of strings */

/*
 * In a trace by Go an address may have several names, and inlined functions share addresses. So the
 * tables get twice a frame's number instead of an address, plus one for return addresses: see
 * gt_frames_of. In this epoch of the module map no address is a real one.
 */
enum { EPOCH = 2 };

struct frame {
    struct gt_where where;
    const char *module;
    uint32_t same_hash;
};

struct gt_writing_lane {
    struct gt_writing_lane *next;
    uint32_t thread;
    uint64_t last; /* time of the last event */
    struct gt_buf *buf;
    uint32_t room; /* bytes allocated for buf's data */
};

static struct {
    uint32_t gen;
    uint64_t from, last; /* begin of the generation; time of the latest event */
    struct gt_writing_lane *lanes;
    struct gt_memo by_thread;
    struct gt_buf *first, **link; /* the generation's full buffers */
    struct gt_buf *texts, *accounts;
    struct gt_writing_source *source;
    struct gt_contents names;     /* of functions and files */
    struct gt_memo frame_numbers; /* by hash */
    struct frame *frames;         /* from 1 on */
    size_t n_frames;
    const char **at_end;
    size_t n_at_end;
    size_t bytes;
    uint64_t wall_s, wall_ns, mono_ns; /* at ns 0; 0: not known */
    const char *blamed;
    uint64_t mended;    /* events that contradicted others, and were mended before they came here */
    bool of_go, strict; /* see gt_writing_of_go */
    const struct gt_writing_lane *latest; /* the thread of the last event */
} out;

/* Names --------------------------------------------------------------------------------------- */

static bool same_where(const struct gt_where *a, const struct gt_where *b)
{
    return a->pc == b->pc && a->line == b->line && strcmp(a->func, b->func) == 0 &&
           strcmp(a->file, b->file) == 0;
}

static uint64_t hash_of(const struct gt_where *w)
{
    uint64_t hash = gt_hash_mix(w->pc, w->line);
    for (const char *p = w->func; *p; p++)
        hash = gt_hash_mix(hash, (uint8_t)*p);
    return hash;
}

static const char *keep_name(const char *name)
{
    return gt_contents_text(&out.names, name, strlen(name));
}

static uint32_t number_of(const struct gt_where *where, const char *module)
{
    uint64_t *slot = gt_need(gt_memo_at(&out.frame_numbers, hash_of(where)));
    for (uint32_t i = (uint32_t)*slot; i; i = out.frames[i].same_hash) {
        if (same_where(&out.frames[i].where, where))
            return i;
    }
    uint32_t number = (uint32_t)++out.n_frames;
    out.frames = gt_need_more(out.frames, number, sizeof *out.frames);
    struct frame *frame = &out.frames[number];
    *frame = (struct frame){*where, module, (uint32_t)*slot};
    frame->where.func = keep_name(where->func);
    frame->where.file = keep_name(where->file);
    *slot = number;
    return number;
}

/* The number of the frame at the address where its module is shown. */
static uint32_t place(const struct gt_where *where)
{
    const struct gt_placed *module = gt_placing_find(&out.source->modules, where->pc);
    struct gt_where shown = *where;
    shown.pc += module ? module->away : 0;
    return number_of(&shown, module ? module->description : NULL);
}

/* The `resolve` of gt_frame_names. */
static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *found, int max)
{
    (void)max;
    const struct frame *frame = &out.frames[s->pcs[index] / 2];
    const struct gt_where *w = &frame->where;
    *found = (struct gt_frame){.func = w->func,
                               .file = w->file,
                               .line = (uint32_t)w->line,
                               .pc = w->pc,
                               .module = frame->module};
    return 1;
}

static uint32_t pcs_of(const struct gt_callers *stack, uint64_t pcs[GT_FRAMES_MAX])
{
    uint32_t n = stack->n < GT_FRAMES_MAX ? stack->n : GT_FRAMES_MAX;
    for (uint32_t i = 0; i < n; i++)
        pcs[i] = 2 * (uint64_t)place(&stack->frame[i]) + (i > 0);
    return n;
}

uint64_t gt_writing_stack(const struct gt_callers *stack)
{
    uint64_t pcs[GT_FRAMES_MAX];
    if (!stack || !stack->n)
        return 0;
    uint64_t *slot = gt_need(gt_memo_at(&out.source->stacks, (uintptr_t)stack));
    if (!*slot)
        *slot = (uintptr_t)gt_need(gt_stacks_get(pcs, pcs_of(stack, pcs), EPOCH));
    return gt_stack_use((struct gt_stack *)(uintptr_t)*slot, out.gen);
}

uint64_t gt_writing_string(const char *text)
{
    if (!*text)
        return 0;
    uint64_t *slot = gt_need(gt_memo_at(&out.source->strings, (uintptr_t)text));
    if (!*slot)
        *slot = (uintptr_t)gt_need(gt_strings_intern(text));
    return gt_string_use((struct gt_string *)(uintptr_t)*slot, out.gen);
}

void gt_writing_module(const char *description)
{
    gt_placing_add(&out.source->modules, description);
}

void gt_writing_from(struct gt_writing_source *source)
{
    out.source = source;
}

void gt_writing_forget(struct gt_writing_source *source)
{
    gt_memo_free(&source->strings);
    gt_memo_free(&source->stacks);
    gt_memo_free(&source->texts);
    gt_placing_free(&source->modules);
}

void gt_writing_set_origin(const struct gt_origin *origin)
{
    gt_origin_use(origin);
}

void gt_writing_set_setup(const char *setup)
{
    gt_setup_use(setup);
}

void gt_writing_at_end(const char *text)
{
    *GT_ADD(out.at_end, out.n_at_end) = text;
}

static void tell_at_end(gt_tell_fn *tell)
{
    for (size_t i = 0; i < out.n_at_end; i++)
        tell(out.at_end[i], gt_texts_length(out.at_end[i]));
}

/* Buffers ------------------------------------------------------------------------------------- */

static struct gt_buf *new_buf(uint32_t thread, uint64_t ts, uint32_t room)
{
    struct gt_buf *buf = gt_need(malloc(sizeof *buf + room));
    memset(buf, 0, sizeof *buf);
    buf->gen = out.gen;
    buf->m = thread;
    buf->ts = ts;
    return buf;
}

static void push(struct gt_buf **buf)
{
    if (!*buf)
        return;
    out.bytes += (*buf)->used;
    *out.link = *buf;
    out.link = &(*buf)->next;
    *buf = NULL;
}

/* Buffers begin small and grow to a batch's size: most threads have few events. */
static void make_room(struct gt_writing_lane *lane)
{
    if (lane->buf && lane->buf->used + EVENT_MAX > GT_BUF_ROOM)
        push(&lane->buf);
    if (!lane->buf) {
        lane->room = LEAST_ROOM;
        uint64_t since = lane->last > out.from ? lane->last : out.from;
        lane->buf = new_buf(lane->thread, since, lane->room);
    } else if (lane->buf->used + EVENT_MAX > lane->room) {
        lane->room = lane->room * 2 < GT_BUF_ROOM ? lane->room * 2 : (uint32_t)GT_BUF_ROOM;
        lane->buf = gt_need(realloc(lane->buf, sizeof *lane->buf + lane->room));
    }
}

void gt_writing_blame(const char *path)
{
    out.blamed = path;
}

void gt_writing_mend(void)
{
    out.mended++;
}

struct gt_writing_lane *gt_writing_lane(uint64_t thread)
{
    uint64_t *slot = gt_need(gt_memo_at(&out.by_thread, thread + 1));
    if (!*slot) {
        struct gt_writing_lane *lane = gt_need(calloc(1, sizeof *lane));
        lane->thread = (uint32_t)thread;
        lane->next = out.lanes;
        out.lanes = lane;
        *slot = (uintptr_t)lane;
    }
    return (struct gt_writing_lane *)(uintptr_t)*slot;
}

uint64_t gt_writing_event(struct gt_writing_lane *lane, enum gt_event_type type, uint64_t ts,
                          const uint64_t args[GT_EVENT_ARGS_MAX])
{
    ts = ts > lane->last ? ts : lane->last;
    ts = ts > out.from ? ts : out.from;
    if (lane->thread == GT_WRITING_FIRST)
        ts = out.from;
    else if (out.strict && lane != out.latest && ts <= out.last)
        ts = out.last + 1;
    out.latest = lane->thread == GT_WRITING_FIRST ? out.latest : lane;
    make_room(lane);
    uint64_t before = lane->buf->used ? lane->last : lane->buf->ts;
    uint8_t *p = lane->buf->data + lane->buf->used;
    *p++ = (uint8_t)type;
    p = gt_varint_put(p, ts - before);
    for (int i = 0; i < gt_event_args[type]; i++)
        p = gt_varint_put(p, args[i]);
    lane->buf->used = (uint32_t)(p - lane->buf->data);
    lane->last = ts;
    out.last = ts > out.last ? ts : out.last;
    return ts;
}

static uint64_t put_text(struct gt_buf **buf, uint32_t thread, const char *text, uint32_t len)
{
    if (*buf && GT_BUF_ROOM - (*buf)->used < TEXT_MAX)
        push(buf);
    if (!*buf) {
        *buf = new_buf(thread, out.from, GT_BUF_ROOM);
        gt_texts_begin(*buf, out.gen, thread, out.from);
    }
    return gt_texts_append(*buf, text, len).id;
}

uint64_t gt_writing_text(const char *text)
{
    if (!*text)
        return 0;
    struct gt_writing_source *source = out.source;
    if (source->gen != out.gen)
        gt_memo_free(&source->texts);
    source->gen = out.gen;
    uint64_t *slot = gt_need(gt_memo_at(&source->texts, (uintptr_t)text));
    if (!*slot)
        *slot = put_text(&out.texts, ANY_THREAD, text, gt_texts_length(text));
    return *slot;
}

uint64_t gt_writing_text_again(uint64_t id, const char *text)
{
    return gt_format->v1 && id ? id : gt_writing_text(text);
}

void gt_writing_sample(const struct gt_cpu_sample *s, uint64_t ts)
{
    uint64_t pcs[GT_FRAMES_MAX];
    gt_samples_take(&(struct gt_sample){.ts = ts,
                                        .g = s->g,
                                        .m = s->thread == GT_NO_THREAD ? 0 : (uint32_t)s->thread,
                                        .p = (uint32_t)s->p,
                                        .epoch = EPOCH,
                                        .times = 1,
                                        .n = s->stack ? pcs_of(s->stack, pcs) : 0},
                    pcs);
}

void gt_writing_account(const struct gt_account_row *row)
{
    uint8_t text[sizeof GT_ACCOUNT + GT_ACCOUNT_ROW_MAX] = GT_ACCOUNT;
    const uint8_t *end = gt_account_row_put(text + sizeof GT_ACCOUNT - 1, row);
    put_text(&out.accounts, TRACER, (const char *)text, (uint32_t)(end - text));
}

/* Generations --------------------------------------------------------------------------------- */

size_t gt_writing_size(void)
{
    return out.bytes;
}

/* Marks the generation as a Go program's; each generation needs the mark. */
static void say_of_go(void)
{
    if (out.of_go && !gt_format->v1)
        gt_string_use(gt_need(gt_strings_intern(GT_OF_GO)), out.gen);
}

static void begin_generation(uint64_t ts)
{
    out.gen++;
    out.from = ts;
    out.first = NULL;
    out.link = &out.first;
    out.bytes = 0;
    say_of_go();
}

void gt_writing_set_host(uint64_t cpus, uint64_t wall_s, uint64_t wall_ns, uint64_t mono_ns)
{
    gt_v1_set_cpus(cpus);
    out.wall_s = wall_s;
    out.wall_ns = wall_ns;
    out.mono_ns = mono_ns;
}

void gt_writing_begin(const char *path, const struct gt_format *format, uint64_t from)
{
    static const struct gt_frame_names names = {.resolve = resolve};
    static const struct gt_held_texts texts = {.at_end = tell_at_end};
    gt_format = format;
    gt_origin_use(NULL);
    gt_clock_use_ns();
    gt_merge_be_lenient();
    gt_frames_init(&names, false);
    gt_held_init(&texts);
    atomic_store(&gt_gen.from, from);
    if (gt_output_open(path, false) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(-gt_output_commit()));
    if (format->v1)
        gt_v1_open();
    else
        gt_v2_open();
    begin_generation(from);
}

void gt_writing_of_go(void)
{
    out.of_go = true;
    out.strict = gt_format->v1;
    if (gt_format->v1)
        gt_v1_of_go();
    say_of_go();
}

static struct gt_clock_snapshot snapshot_at(uint64_t ts)
{
    enum { S = 1000000000 };
    uint64_t ns = out.wall_ns + ts;
    return (struct gt_clock_snapshot){
        .units = ts, .mono_ns = out.mono_ns + ts, .wall_s = out.wall_s + ns / S, .wall_ns = ns % S};
}

/* Readers require an event in each generation: the status of a P that no thread ever has. */
static void tell_nothing(void)
{
    struct gt_writing_lane *lane = gt_writing_lane(ANY_THREAD);
    gt_writing_event(lane, GT_EV_PROC_STATUS, out.from,
                     (const uint64_t[GT_EVENT_ARGS_MAX]){GT_PROCS_MAX, GT_P_IDLE});
    push(&lane->buf);
}

static void write_generation(bool whole)
{
    struct gt_clock_snapshot snapshot = snapshot_at(out.from);
    int error = 0;
    for (struct gt_writing_lane *lane = out.lanes; lane; lane = lane->next)
        push(&lane->buf);
    bool nothing = out.link == &out.first;
    push(&out.texts);
    push(&out.accounts);
    if (nothing && !gt_format->v1)
        tell_nothing();
    *out.link = NULL;
    if (gt_format->v1) {
        error = gt_v1_write(out.gen, NULL, NULL, out.first, UINT64_MAX);
    } else {
        gt_v2_begin(NULL);
        gt_v2_write(out.first);
        gt_v2_end(out.gen, &snapshot, UINT64_MAX, whole);
    }
    for (struct gt_buf *buf = out.first, *next; buf; buf = next) {
        next = buf->next;
        free(buf);
    }
    if (!error)
        error = gt_output_commit();
    if (error)
        gt_fail(GT_EXIT_FAILED, "%s: %s", gt_output_path(), strerror(-error));
}

void gt_writing_next(uint64_t ts)
{
    write_generation(false);
    begin_generation(ts > out.last ? ts : out.last);
}

void gt_writing_end(uint64_t ts, bool whole)
{
    ts = ts > out.last ? ts : out.last;
    write_generation(whole && !gt_format->v1 && !out.mended);
    uint64_t mended = out.mended + gt_merge_mended();
    if (mended)
        gt_say("%s: damaged: %llu events contradict others, and are left out or mended",
               out.blamed ? out.blamed : gt_output_path(), (unsigned long long)mended);
    if (gt_format->v1)
        gt_v1_end(ts, whole && !mended);
    if (gt_output_commit() != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", gt_output_path(), strerror(-gt_output_commit()));
    gt_output_close();
}
