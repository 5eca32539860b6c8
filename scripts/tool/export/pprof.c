/*
 * Writes a profile for pprof: the message Profile of profile.proto, compressed. Each sample is of
 * one kind and has values in that kind's two columns, nanoseconds and count. Waits also have values
 * in the columns of all time off the CPU.
 */
#include "export.h"
#include "export_modules.h"
#include "export_names.h"
#include "export_stacks.h"
#include "protobuf.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* Fields, as profile.proto numbers them. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION };
enum { PROFILE_FUNCTION = 5, PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10 };
enum { PROFILE_DEFAULT_TYPE = 14 };
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_FROM, MAPPING_TO, MAPPING_FILE = 5, MAPPING_BUILD_ID };
enum { MAPPING_FUNCTIONS = 7, MAPPING_INLINES = 10 };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

/* The columns; a column of a kind of waits has the number of that kind. */
enum column { OFF_CPU, HOLDS = GT_KINDS, CPU, COLUMNS };

static const char *const column_names[COLUMNS] = {
    [OFF_CPU] = "off_cpu", [GT_SCHED] = "sched",     [GT_SYNC] = "sync",
    [GT_SLEEP] = "sleep",  [GT_NETWORK] = "network", [GT_SYSCALL] = "syscall",
    [GT_OTHER] = "other",  [GT_UNSEEN] = "unseen",   [HOLDS] = "holds",
    [CPU] = "cpu"};

struct profile {
    struct gt_trace *trace;
    struct gt_stack_sums sums;        /* of a thread's waits, holds or samples */
    struct gt_memo samples;           /* thread → number of its CPU samples */
    const struct gt_lock_state *held; /* lock of the hold that the next event reports; or NULL */
    struct gt_hold_state hold;
    /* Writing: */
    gzFile out;
    struct gt_message message;
    struct gt_memo texts, functions, locations; /* → id */
    uint64_t n_texts, n_functions, n_locations;
    struct gt_export_modules modules;
};

/* Sums --------------------------------------------------------------------------------------- */

static void add_span(void *arg, const struct gt_span *span)
{
    struct profile *p = arg;
    if (span->kind != GT_RUNNING)
        gt_stack_sums_add_span(
            &p->sums, span,
            &(struct gt_stack_sum){.kind = span->kind,
                                   .ended = span->ended,
                                   .of = span->thread,
                                   .by = span->by ? gt_export_thread(span->by) : NULL,
                                   .stack = span->stack,
                                   .waker = span->waker,
                                   .lock = span->wanted ? span->wanted->lock : NULL,
                                   .value = span->ns,
                                   .count = 1});
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct profile *p = arg;
    (void)ns;
    ++*(uint64_t *)gt_need(gt_memo_at(&p->samples, (uintptr_t)thread));
    gt_stack_sums_add(
        &p->sums, &(struct gt_stack_sum){
                      .kind = GT_RUNNING, .ended = true, .of = thread, .stack = stack, .count = 1});
}

static void note_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct profile *p = arg;
    p->held = lock;
    p->hold = *hold;
}

/* The log event that reports a hold has the stack of the unlock. */
static void add_hold(void *arg, const struct gt_happening *event,
                     const struct gt_thread_state *thread, uint64_t ns)
{
    struct profile *p = arg;
    (void)ns;
    if (p->held)
        gt_stack_sums_add(&p->sums, &(struct gt_stack_sum){.holds = true,
                                                           .ended = true,
                                                           .of = thread,
                                                           .stack = event->stack,
                                                           .lock = p->held,
                                                           .value = p->hold.to - p->hold.from,
                                                           .count = 1});
    p->held = NULL;
}

static enum column column_of(const struct gt_stack_sum *s)
{
    return s->holds ? HOLDS : s->kind == GT_RUNNING ? CPU : (enum column)s->kind;
}

/* Shares a thread's CPU time, as counted by the kernel, out over its samples. */
static void share_cpu(struct profile *p)
{
    for (size_t i = 0; i < p->sums.n; i++) {
        struct gt_stack_sum *s = &p->sums.sum[i];
        uint64_t all = column_of(s) == CPU ? gt_memo_find(&p->samples, (uintptr_t)s->of) : 0;
        if (all)
            s->value = (uint64_t)((double)s->of->shares.cpu * (double)s->count / (double)all);
    }
}

/* Writing ------------------------------------------------------------------------------------ */

enum { FLUSH_AT = 1 << 16 };

static void flush(struct profile *p)
{
    if (p->message.n && gzwrite(p->out, p->message.data, (unsigned)p->message.n) <= 0)
        gt_fail(GT_EXIT_FAILED, "export: %s", strerror(errno));
    p->message.n = 0;
}

static uint64_t text_id(struct profile *p, const char *text)
{
    const char *its = gt_contents_text(&p->trace->contents, text, strlen(text));
    uint64_t *slot = gt_need(gt_memo_at(&p->texts, (uintptr_t)its));
    if (!*slot) {
        gt_message_text(&p->message, PROFILE_STRING, its);
        *slot = ++p->n_texts;
    }
    return *slot - 1; /* the first id is 0, of "" */
}

static void put_type(struct profile *p, const char *name, const char *suffix, const char *unit)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", name, suffix);
    uint64_t name_id = text_id(p, text), unit_id = text_id(p, unit);
    size_t begin = gt_message_begin(&p->message, PROFILE_SAMPLE_TYPE);
    gt_message_number(&p->message, TYPE_NAME, name_id);
    gt_message_number(&p->message, TYPE_UNIT, unit_id);
    gt_message_end(&p->message, begin);
}

static uint64_t function_id(struct profile *p, const struct gt_where *frame)
{
    struct gt_message *m = &p->message;
    uint64_t key = gt_hash_mix(gt_hash_mix(0, (uintptr_t)frame->func), (uintptr_t)frame->file);
    uint64_t *slot = gt_need(gt_memo_at(&p->functions, key));
    if (*slot)
        return *slot;
    *slot = ++p->n_functions;
    uint64_t name = text_id(p, frame->func), file = text_id(p, frame->file);
    size_t begin = gt_message_begin(m, PROFILE_FUNCTION);
    gt_message_number(m, FUNCTION_ID, p->n_functions);
    gt_message_number(m, FUNCTION_NAME, name);
    gt_message_number(m, FUNCTION_SYSTEM_NAME, name);
    gt_message_number(m, FUNCTION_FILE, file);
    gt_message_end(m, begin);
    return p->n_functions;
}

/* A location for each frame: a trace does not say which frames were inlined. */
static uint64_t location_id(struct profile *p, const struct gt_where *frame)
{
    struct gt_message *m = &p->message;
    uint64_t function = function_id(p, frame);
    uint64_t key = gt_hash_mix(gt_hash_mix(gt_hash_mix(0, frame->pc), function), frame->line);
    uint64_t *slot = gt_need(gt_memo_at(&p->locations, key));
    if (*slot)
        return *slot;
    *slot = ++p->n_locations;
    const struct gt_export_module *module = gt_export_module_at(&p->modules, p->trace, frame->pc);
    size_t begin = gt_message_begin(m, PROFILE_LOCATION);
    gt_message_number(m, LOCATION_ID, p->n_locations);
    if (module)
        gt_message_number(m, LOCATION_MAPPING, module->id);
    gt_message_number(m, LOCATION_ADDRESS, frame->pc);
    size_t line = gt_message_begin(m, LOCATION_LINE);
    gt_message_number(m, LINE_FUNCTION, function);
    gt_message_number(m, LINE_NUMBER, frame->line);
    gt_message_end(m, line);
    gt_message_end(m, begin);
    return p->n_locations;
}

static void put_label(struct profile *p, uint64_t key, unsigned field, uint64_t value)
{
    size_t begin = gt_message_begin(&p->message, SAMPLE_LABEL);
    gt_message_number(&p->message, LABEL_KEY, key);
    gt_message_number(&p->message, field, value);
    gt_message_end(&p->message, begin);
}

enum { LABELS = 5 };
struct label {
    uint64_t key, text; /* ids of strings */
};

/* Writes the labels' strings, which must come before the sample, as they are not part of it. */
static size_t find_labels(struct profile *p, const struct gt_stack_sum *s,
                          struct label label[LABELS])
{
    const struct {
        const char *key, *text;
    } all[LABELS] = {{"thread", gt_export_thread(s->of)},
                     {"lock", s->lock && *s->lock->name ? s->lock->name : NULL},
                     {"waker", s->waker ? gt_export_place(s->waker) : NULL},
                     {"waker_thread", s->by},
                     {"state", s->ended ? NULL : "still waits when the trace ends"}};
    size_t n = 0;
    for (size_t i = 0; i < LABELS; i++) {
        if (all[i].text)
            label[n++] = (struct label){text_id(p, all[i].key), text_id(p, all[i].text)};
    }
    return n;
}

static void put_values(struct profile *p, const struct gt_stack_sum *s)
{
    enum column own = column_of(s);
    size_t begin = gt_message_begin(&p->message, SAMPLE_VALUES);
    for (enum column c = 0; c < COLUMNS; c++) {
        bool its = c == own || (c == OFF_CPU && own < HOLDS);
        gt_message_packed(&p->message, its ? s->value : 0);
        gt_message_packed(&p->message, its ? s->count : 0);
    }
    gt_message_end(&p->message, begin);
}

static void put_sample(struct profile *p, const struct gt_stack_sum *s)
{
    static const struct gt_where none = {.func = "[no stack]", .file = ""};
    const struct gt_where *frame = s->stack && s->stack->n ? s->stack->frame : &none;
    uint32_t frames = s->stack && s->stack->n ? s->stack->n : 1;
    struct label label[LABELS];
    size_t labels = find_labels(p, s, label);
    uint64_t tid_key = text_id(p, "tid");
    for (uint32_t i = 0; i < frames; i++)
        location_id(p, &frame[i]); /* writes the location, which must be outside of the sample */
    size_t begin = gt_message_begin(&p->message, PROFILE_SAMPLE);
    size_t packed = gt_message_begin(&p->message, SAMPLE_LOCATIONS);
    for (uint32_t i = 0; i < frames; i++)
        gt_message_packed(&p->message, location_id(p, &frame[i]));
    gt_message_end(&p->message, packed);
    put_values(p, s);
    for (size_t i = 0; i < labels; i++)
        put_label(p, label[i].key, LABEL_TEXT, label[i].text);
    if (s->of->thread != GT_NO_THREAD)
        put_label(p, tid_key, LABEL_NUMBER, s->of->thread);
    gt_message_end(&p->message, begin);
    if (p->message.n >= FLUSH_AT)
        flush(p);
}

static void put_mapping(struct profile *p, const struct gt_export_module *module)
{
    struct gt_message *m = &p->message;
    char build_id[2 * sizeof module->its.build_id + 1] = "";
    for (int i = 0; i < module->its.build_id_len; i++)
        snprintf(build_id + 2 * i, 3, "%02x", module->its.build_id[i]);
    uint64_t file = text_id(p, module->its.path), id = text_id(p, build_id);
    size_t begin = gt_message_begin(m, PROFILE_MAPPING);
    gt_message_number(m, MAPPING_ID, module->id);
    gt_message_number(m, MAPPING_FROM, module->its.lo);
    gt_message_number(m, MAPPING_TO, module->its.hi);
    gt_message_number(m, MAPPING_FILE, file);
    gt_message_number(m, MAPPING_BUILD_ID, id);
    for (unsigned field = MAPPING_FUNCTIONS; field <= MAPPING_INLINES; field++)
        gt_message_number(m, field, 1); /* pprof needs to look up no more names */
    gt_message_end(m, begin);
}

static void put_profile(struct profile *p)
{
    const struct gt_trace *t = p->trace;
    text_id(p, "");
    for (int c = 0; c < COLUMNS; c++) {
        put_type(p, column_names[c], "", "nanoseconds");
        put_type(p, column_names[c], "_count", "count");
    }
    for (size_t i = 0; i < p->sums.n; i++)
        put_sample(p, &p->sums.sum[i]);
    for (size_t i = 0; i < p->modules.n; i++)
        put_mapping(p, &p->modules.at[i]);
    gt_message_number(&p->message, PROFILE_TIME, t->wall_s * 1000000000 + t->wall_ns);
    gt_message_number(&p->message, PROFILE_DURATION, t->ns);
    uint64_t type = text_id(p, column_names[OFF_CPU]);
    gt_message_number(&p->message, PROFILE_DEFAULT_TYPE, type);
    flush(p);
}

void gt_export_pprof(const struct gt_export *x)
{
    struct profile p = {.trace = x->trace, .sums.how = x};
    struct gt_threads threads = {
        .span = add_span, .sample = add_sample, .hold = note_hold, .event = add_hold, .arg = &p};
    gt_read_threads(&threads, x->trace);
    share_cpu(&p);
    int fd = dup(fileno(x->file));
    p.out = fd < 0 ? NULL : gzdopen(fd, "wb");
    if (!p.out)
        gt_fail(GT_EXIT_FAILED, "export: %s", strerror(errno));
    put_profile(&p);
    if (gzclose(p.out) != Z_OK)
        gt_fail(GT_EXIT_FAILED, "export: %s", strerror(errno));
}
