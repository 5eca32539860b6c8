/* See tables.h. */
#include "tables.h"

#include "arena.h"
#include "buffers.h"
#include "clock.h"
#include "output.h"
#include "strings.h"

#include <string.h>

/* Symbolized PCs -------------------------------------------------------------------------------
 *
 * Readers key frames by PC, the first one wins: every inlined frame needs a PC of its own. Those
 * come from a range no code can have; so do all frames of later module-map epochs, whose addresses
 * may have belonged to another library before.
 */

#define INLINES_MAX 32
#define SYNTHETIC_PC (1ull << 47)

struct symbol {
    uint64_t pc;
    struct gt_string *func, *file;
    uint32_t line;
};

struct resolved {
    struct resolved *next;
    uint64_t pc;
    uint32_t epoch;
    uint32_t n;
    struct symbol frame[];
};

#define BUCKETS 16384u

static struct {
    struct resolved *bucket[BUCKETS];
    uint64_t last_synthetic;
    struct gt_arena arena;
} symbols;

/* A return address belongs to the call before it: readers and other tools expect that PC. */
static uint64_t code_address(const struct gt_stack *s, uint32_t index)
{
    return index == 0 ? s->pcs[0] : s->pcs[index] - 1;
}

static struct resolved *resolve_new(const struct gt_drain_config *config, const struct gt_stack *s,
                                    uint32_t index, uint64_t pc)
{
    struct gt_frame found[INLINES_MAX];
    int n = config->resolve(s, index, found, INLINES_MAX);
    struct resolved *r = gt_arena_alloc(&symbols.arena, sizeof *r + (size_t)n * sizeof *r->frame);
    if (!r)
        return NULL;
    r->pc = pc;
    r->epoch = s->epoch;
    r->n = (uint32_t)n;
    for (int i = 0; i < n; i++) {
        bool real = i == n - 1 && s->epoch <= 1;
        r->frame[i] = (struct symbol){
            .pc = real ? pc : SYNTHETIC_PC + ++symbols.last_synthetic,
            .func = gt_strings_intern(found[i].func),
            .file = gt_strings_intern(found[i].file),
            .line = found[i].line,
        };
        if (!r->frame[i].func || !r->frame[i].file)
            return NULL;
    }
    return r;
}

static struct resolved *resolve(const struct gt_drain_config *config, const struct gt_stack *s,
                                uint32_t index)
{
    uint64_t pc = code_address(s, index);
    struct resolved **bucket =
        &symbols.bucket[((pc ^ s->epoch) * 0x9e3779b97f4a7c15u >> 32) % BUCKETS];
    for (struct resolved *r = *bucket; r; r = r->next) {
        if (r->pc == pc && r->epoch == s->epoch)
            return r;
    }
    struct resolved *r = resolve_new(config, s, index, pc);
    if (r) {
        r->next = *bucket;
        *bucket = r;
    }
    return r;
}

/* Batches ------------------------------------------------------------------------------------ */

struct batch {
    const struct gt_drain_config *config;
    uint32_t gen;
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

static void batch_end(void)
{
    if (batch->pos - batch->data > 1)
        gt_tables_write_batch(batch->gen, 0, gt_clock_now(), batch->data,
                              (uint32_t)(batch->pos - batch->data));
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

static void put_stack(void *unused, const struct gt_stack *s)
{
    (void)unused;
    struct symbol *frames[GT_FRAMES_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct resolved *r = resolve(batch->config, s, i);
        for (uint32_t k = 0; r && k < r->n && n < GT_FRAMES_MAX; k++)
            frames[n++] = &r->frame[k];
    }
    batch_room(1 + (2 + 4 * (size_t)n) * GT_VARINT_MAX);
    uint8_t *p = batch->pos;
    *p++ = GT_EV_STACK;
    p = gt_varint_put(p, s->id);
    p = gt_varint_put(p, n);
    for (uint32_t i = 0; i < n; i++) {
        p = gt_varint_put(p, frames[i]->pc);
        p = gt_varint_put(p, gt_string_use(frames[i]->func, batch->gen));
        p = gt_varint_put(p, gt_string_use(frames[i]->file, batch->gen));
        p = gt_varint_put(p, frames[i]->line);
    }
    batch->pos = p;
}

static void put_string(void *unused, const struct gt_string *s)
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

void gt_tables_write(const struct gt_drain_config *config, uint32_t gen)
{
    if (!batch && !(batch = gt_pages_alloc(sizeof *batch)))
        return;
    batch->config = config;
    batch->gen = gen;
    batch_begin(GT_EV_STACKS);
    gt_stacks_each(gen, put_stack, NULL);
    batch_end();
    batch_begin(GT_EV_STRINGS); /* after the stacks, which use strings */
    gt_strings_each(gen, put_string, NULL);
    batch_end();
    batch_begin(GT_EV_FREQUENCY);
    batch->pos = gt_varint_put(batch->pos, gt_clock_hz());
    batch_end();
}
