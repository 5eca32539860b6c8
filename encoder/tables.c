/* See tables.h. */
#include "tables.h"

#include "arena.h"
#include "buffers.h"
#include "clock.h"
#include "output.h"
#include "samples.h"
#include "stacks.h"
#include "strings.h"
#include "symbols.h"

#include <string.h>

struct batch {
    const struct gt_drain_config *config;
    uint32_t gen;
    uint32_t mark; /* of strings that kept stacks use; 0: they are marked as used in gen */
    enum gt_event_type type;
    uint8_t *pos;
    uint8_t data[GT_BATCH_MAX];
};

static struct batch *batch; /* of the table being written; allocated once */

static void batch_begin(enum gt_event_type type)
{
    batch->type = type;
    batch->pos = batch->data;
    *batch->pos++ = type;
}

static void batch_end_at(uint64_t ts)
{
    if (batch->pos - batch->data > 1)
        gt_tables_write_batch(batch->gen, 0, ts, batch->data, (uint32_t)(batch->pos - batch->data));
}

static void batch_end(void)
{
    batch_end_at(gt_clock_now());
}

static void batch_room(size_t bytes)
{
    if ((size_t)(batch->data + sizeof batch->data - batch->pos) < bytes) {
        batch_end();
        batch_begin(batch->type);
    }
}

uint8_t *gt_tables_batch_header(uint8_t *p, uint32_t gen, uint32_t m, uint64_t ts, uint32_t size)
{
    *p++ = GT_EV_EVENT_BATCH;
    p = gt_varint_put(p, gen);
    p = gt_varint_put(p, m);
    p = gt_varint_put(p, ts);
    return gt_varint_put(p, size);
}

void gt_tables_write_batch(uint32_t gen, uint32_t m, uint64_t ts, const void *data, uint32_t size)
{
    uint8_t header[GT_BATCH_HEADER_MAX];
    uint8_t *end = gt_tables_batch_header(header, gen, m, ts, size);
    gt_output_write(header, (size_t)(end - header));
    gt_output_write(data, size);
}

/* The marks of a generation that is past may belong to a later one by now. */
static uint32_t use(struct gt_string *s)
{
    if (!batch->mark)
        return gt_string_use(s, batch->gen);
    s->written = batch->mark;
    return s->id;
}

static void put_stack(void *unused, struct gt_stack *s)
{
    (void)unused;
    struct gt_symbol *frames[GT_FRAMES_MAX];
    uint32_t n = gt_symbols_of(batch->config, s, frames);
    batch_room(1 + (2 + 4 * (size_t)n) * GT_VARINT_MAX);
    uint8_t *p = batch->pos;
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
    batch->pos = p;
}

static void put_string(void *unused, struct gt_string *s)
{
    (void)unused;
    batch_room(1 + 2 * GT_VARINT_MAX + s->len);
    uint8_t *p = batch->pos;
    *p++ = GT_EV_STRING;
    p = gt_varint_put(p, s->id);
    p = gt_varint_put(p, s->len);
    memcpy(p, s->text, s->len);
    batch->pos = p + s->len;
}

static void put_sample(const struct gt_taken_sample *s)
{
    batch_room(1 + 5 * GT_VARINT_MAX);
    uint8_t *p = batch->pos;
    *p++ = GT_EV_CPU_SAMPLE;
    p = gt_varint_put(gt_varint_put(p, s->ts), s->m);
    p = gt_varint_put(gt_varint_put(p, s->p), s->g);
    batch->pos = gt_varint_put(p, s->stack ? s->stack->id : 0);
}

/* The clock: a lone frequency, or since Go 1.25 a batch that also has the time of day. */
static void put_sync(const struct gt_clock_snapshot *snapshot)
{
    if (!gt_format->snapshot) {
        batch_begin(GT_EV_FREQUENCY);
        batch->pos = gt_varint_put(batch->pos, gt_clock_hz());
        batch_end_at(gt_clock_now());
        return;
    }
    batch_begin(GT_EV_SYNC);
    *batch->pos++ = GT_EV_FREQUENCY;
    batch->pos = gt_varint_put(batch->pos, gt_clock_hz());
    *batch->pos++ = GT_EV_CLOCK_SNAPSHOT;
    batch->pos = gt_varint_put(batch->pos, 0); /* since the batch's time */
    batch->pos = gt_varint_put(batch->pos, snapshot->mono_ns);
    batch->pos = gt_varint_put(batch->pos, snapshot->wall_s);
    batch->pos = gt_varint_put(batch->pos, snapshot->wall_ns);
    batch_end_at(snapshot->units);
}

static bool begin(const struct gt_drain_config *config, uint32_t gen, uint32_t mark)
{
    if (!batch && !(batch = gt_pages_alloc(sizeof *batch)))
        return false;
    batch->config = config;
    batch->gen = gen;
    batch->mark = mark;
    return true;
}

static void end(const struct gt_clock_snapshot *snapshot)
{
    static const uint8_t end_marker = GT_EV_END_OF_GENERATION;
    put_sync(snapshot);
    if (gt_format->end_marker)
        gt_output_write(&end_marker, 1);
}

void gt_tables_write(const struct gt_drain_config *config, uint32_t gen,
                     const struct gt_clock_snapshot *snapshot, uint64_t until)
{
    if (!begin(config, gen, 0))
        return;
    batch_begin(GT_EV_CPU_SAMPLES);
    gt_samples_use(gen, until);
    gt_samples_each(until, put_sample);
    batch_end();
    batch_begin(GT_EV_STACKS); /* after the samples, which use stacks */
    gt_stacks_each(gen, put_stack, NULL);
    batch_end();
    batch_begin(GT_EV_STRINGS); /* after the stacks, which use strings */
    gt_strings_each(gen, put_string, NULL);
    batch_end();
    end(snapshot);
}

void gt_tables_write_kept(const struct gt_drain_config *config, const struct gt_kept *kept)
{
    static uint32_t last_mark;
    if (!begin(config, kept->gen, ++last_mark))
        return;
    batch_begin(GT_EV_CPU_SAMPLES);
    for (uint32_t i = 0; i < kept->n_samples; i++)
        for (uint32_t k = 0; k < kept->samples[i].times; k++)
            put_sample(&kept->samples[i]);
    batch_end();
    batch_begin(GT_EV_STACKS);
    for (uint32_t i = 0; i < kept->n_stacks; i++)
        put_stack(NULL, kept->stacks[i]);
    batch_end();
    for (uint32_t i = 0; i < kept->n_strings; i++)
        use(kept->strings[i]);
    batch_begin(GT_EV_STRINGS);
    gt_strings_each_written(last_mark, put_string, NULL);
    batch_end();
    end(&kept->snapshot);
}
