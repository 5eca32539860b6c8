/* See v2.h. */
#include "v2.h"

#include "frames.h"
#include "output.h"

#include "encoder/base/arena.h"
#include "encoder/base/libc.h"
#include "encoder/cpu/samples.h"
#include "encoder/format/origin.h"
#include "encoder/format/setup.h"
#include "encoder/thread/batch.h"
#include "encoder/thread/held.h"
#include "encoder/thread/procs.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/texts.h"

#include <string.h>

static bool has_batches; /* the generation under way has batches in the file */
static bool has_origin;  /* the file has its origin */

void gt_v2_open(void)
{
    char header[GT_HEADER_BYTES] = "";
    strcpy(header, gt_format->header);
    gt_output_write(header, sizeof header);
    has_batches = has_origin = false;
}

void gt_v2_go_on(void)
{
    has_batches = false;
    has_origin = true;
}

/* Batches of threads ------------------------------------------------------------------------- */

static void write_batch(uint32_t gen, uint32_t m, uint64_t ts, const void *data, uint32_t size)
{
    uint8_t header[GT_BATCH_HEADER_MAX];
    uint8_t *end = gt_batch_header(header, gen, m, ts, size);
    gt_output_write(header, (size_t)(end - header));
    gt_output_write(data, size);
}

static void write_buffer(const struct gt_buf *buf)
{
    uint64_t ts = buf->ts;
    uint32_t from = 0;
    for (uint32_t i = 0; i < buf->cuts; i++) {
        write_batch(buf->gen, buf->m, ts, buf->data + from, buf->cut[i].at - from);
        ts = buf->cut[i].ts;
        from = buf->cut[i].at;
    }
    if (from < buf->used)
        write_batch(buf->gen, buf->m, ts, buf->data + from, buf->used - from);
}

void gt_v2_begin(const struct gt_buf *encoded)
{
    has_batches = encoded != NULL;
    for (; encoded; encoded = encoded->next)
        gt_output_write(encoded->data, encoded->used);
}

void gt_v2_write(const struct gt_buf *plain)
{
    for (; plain; plain = plain->next) {
        write_buffer(plain);
        has_batches |= plain->used && !gt_texts_in(plain);
    }
}

/*
 * Writes the status of an idle P that no thread ever has. Readers refuse a generation without
 * events, such as one in which no known thread runs, or an empty last one.
 */
static void write_nothing(uint32_t gen)
{
    uint8_t batch[2 + 2 * GT_VARINT_MAX] = {GT_EV_PROC_STATUS, 0};
    uint8_t *end = gt_varint_put(batch + 2, GT_PROCS_MAX);
    *end++ = GT_P_IDLE;
    uint32_t main_thread = (uint32_t)gt_syscall(SYS_getpid);
    write_batch(gen, main_thread, gt_clock_now(), batch, (uint32_t)(end - batch));
}

/* Tables ------------------------------------------------------------------------------------- */

struct table {
    uint32_t gen;
    uint32_t mark; /* of strings that kept stacks use; 0: strings are marked with gen */
    enum gt_event_type type;
    uint8_t *pos;
    uint8_t data[GT_BATCH_MAX];
};

static struct table *table; /* being written; allocated once */

bool gt_v2_reserve(void)
{
    if (!table)
        table = gt_pages_alloc(sizeof *table);
    return table;
}

static void table_end(uint64_t ts)
{
    if (table->pos - table->data > 1)
        write_batch(table->gen, 0, ts, table->data, (uint32_t)(table->pos - table->data));
    table->pos = table->data;
}

/* Ends the table before, and begins another. */
static void table_begin(enum gt_event_type type)
{
    table_end(gt_clock_now());
    table->type = type;
    *table->pos++ = type;
}

static void table_room(size_t bytes)
{
    if ((size_t)(table->data + sizeof table->data - table->pos) < bytes)
        table_begin(table->type);
}

/*
 * Marks a string as used. For a kept generation the mark is another one: by now a later generation
 * may have marked the string.
 */
static uint32_t use(struct gt_string *s)
{
    if (!table->mark)
        return gt_string_use(s, table->gen);
    s->written = table->mark;
    return s->id;
}

static void put_stack(void *unused, struct gt_stack *s)
{
    (void)unused;
    struct gt_named_frame *frames[GT_FRAMES_MAX];
    uint32_t n = gt_frames_of(s, frames);
    table_room(1 + (2 + 4 * (size_t)n) * GT_VARINT_MAX);
    uint8_t *p = table->pos;
    *p++ = GT_EV_STACK;
    p = gt_varint_put(p, s->id);
    p = gt_varint_put(p, n);
    for (uint32_t i = 0; i < n; i++) {
        p = gt_varint_put(p, frames[i]->pc);
        p = gt_varint_put(p, use(frames[i]->func));
        p = gt_varint_put(p, use(frames[i]->file));
        p = gt_varint_put(p, frames[i]->line);
        if (frames[i]->module)
            use(frames[i]->module);
    }
    table->pos = p;
}

static void put_text(uint64_t id, const char *text, uint32_t len)
{
    table_room(1 + 2 * GT_VARINT_MAX + len);
    uint8_t *p = table->pos;
    *p++ = GT_EV_STRING;
    p = gt_varint_put(p, id);
    p = gt_varint_put(p, len);
    memcpy(p, text, len);
    table->pos = p + len;
}

static void put_string(void *unused, struct gt_string *s)
{
    (void)unused;
    const char *text;
    uint32_t len = gt_held_text(s, &text);
    put_text(s->id, text, len);
}

static void put_setup(void)
{
    enum { HEAD = sizeof GT_SETUP - 1 };
    char text[HEAD + GT_SETUP_MAX] = GT_SETUP;
    uint32_t length = gt_setup_text(text + HEAD);
    if (length)
        put_text(gt_texts_new_id(), text, HEAD + length);
}

static void put_origin(void)
{
    uint8_t text[GT_ORIGIN_MAX];
    if (has_origin)
        return;
    put_text(gt_texts_new_id(), (const char *)text, gt_origin_text(text));
    put_setup();
    if (gt_frames_named_later())
        put_text(gt_texts_new_id(), GT_LATER, sizeof GT_LATER - 1);
    has_origin = true;
}

static void put_sample(const struct gt_taken_sample *s)
{
    table_room(1 + 5 * GT_VARINT_MAX);
    uint8_t *p = table->pos;
    *p++ = GT_EV_CPU_SAMPLE;
    p = gt_varint_put(gt_varint_put(p, s->ts), s->m);
    p = gt_varint_put(gt_varint_put(p, s->p), s->g);
    table->pos = gt_varint_put(p, s->stack ? s->stack->id : 0);
}

/* The clock: a lone frequency, or since Go 1.25 a batch that also has the time of day. */
static void put_sync(const struct gt_clock_snapshot *snapshot)
{
    if (!gt_format->snapshot) {
        table_begin(GT_EV_FREQUENCY);
        table->pos = gt_varint_put(table->pos, gt_clock_hz());
        table_end(gt_clock_now());
        return;
    }
    table_begin(GT_EV_SYNC);
    *table->pos++ = GT_EV_FREQUENCY;
    table->pos = gt_varint_put(table->pos, gt_clock_hz());
    *table->pos++ = GT_EV_CLOCK_SNAPSHOT;
    table->pos = gt_varint_put(table->pos, 0); /* ticks since the batch's time */
    table->pos = gt_varint_put(table->pos, snapshot->mono_ns);
    table->pos = gt_varint_put(table->pos, snapshot->wall_s);
    table->pos = gt_varint_put(table->pos, snapshot->wall_ns);
    table_end(snapshot->units);
}

/* Begins what follows the batches of threads. */
static bool begin_tables(uint32_t gen, uint32_t mark)
{
    if (!has_batches)
        write_nothing(gen);
    if (!gt_v2_reserve())
        return false;
    table->pos = table->data;
    table->gen = gen;
    table->mark = mark;
    return true;
}

static void end_generation(const struct gt_clock_snapshot *snapshot)
{
    static const uint8_t end_marker = GT_EV_END_OF_GENERATION;
    put_sync(snapshot);
    if (gt_format->end_marker)
        gt_output_write(&end_marker, 1);
}

void gt_v2_end(uint32_t gen, const struct gt_clock_snapshot *snapshot, uint64_t until, bool whole)
{
    if (!begin_tables(gen, 0))
        return;
    table_begin(GT_EV_CPU_SAMPLES);
    gt_samples_use(gen, until);
    gt_samples_each(until, put_sample);
    table_begin(GT_EV_STACKS); /* after the samples, which use stacks */
    gt_stacks_each(gen, put_stack, NULL);
    struct gt_string *mark = whole ? gt_strings_intern(GT_WHOLE) : NULL;
    table_begin(GT_EV_STRINGS); /* after the stacks, which use strings */
    gt_strings_each(gen, put_string, NULL);
    put_origin();
    if (mark)
        put_string(NULL, mark); /* not marked as used: the flight recorder would keep it */
    if (whole)
        gt_held_tell_end(put_text);
    end_generation(snapshot);
}

void gt_v2_write_kept(const struct gt_kept *kept)
{
    static uint32_t last_mark;
    gt_v2_begin(kept->early);
    gt_v2_write(kept->plain);
    if (!begin_tables(kept->gen, ++last_mark))
        return;
    table_begin(GT_EV_CPU_SAMPLES);
    gt_samples_tell(kept->samples, kept->n_samples, put_sample);
    table_begin(GT_EV_STACKS);
    for (uint32_t i = 0; i < kept->n_stacks; i++)
        put_stack(NULL, kept->stacks[i]);
    for (uint32_t i = 0; i < kept->n_strings; i++)
        use(kept->strings[i]);
    table_begin(GT_EV_STRINGS);
    gt_strings_each_written(last_mark, put_string, NULL);
    put_origin();
    end_generation(&kept->snapshot);
}
