/* See drain.h. */
#include "drain.h"

#include "buffers.h"
#include "clock.h"
#include "output.h"
#include "samples.h"
#include "switch.h"
#include "symbols.h"
#include "tables.h"
#include "v1.h"

#include <string.h>

/*
 * The first generation is closed at once: from the moment the file has contents it can be read.
 * The next ones are short, so that a program killed early has left something by then.
 */
#define SECOND_GENERATION_NS 100000000
#define GENERATION_NS 1000000000

/* How long the end of the process waits for the drain thread before it gives up. */
#define FINISH_TIMEOUT_NS 20000000000

enum phase { IDLE, RECORDING, FINISHING, FINISHED };

static struct {
    struct gt_drain_config config;
    _Atomic uint32_t phase;
    _Atomic uint32_t threaded;         /* a drain thread runs */
    _Atomic uint32_t sample;           /* requested */
    _Atomic uint32_t flushes;          /* requested */
    _Atomic uint32_t flushed;          /* done */
    uint32_t gen;                      /* the one being written */
    struct gt_clock_snapshot snapshot; /* taken when it began */
    uint64_t start_ns, end_ns;
    int error;
    uint32_t generations; /* whole ones in the file */
    bool has_batches;     /* the one being written has some */
    struct gt_buf *early; /* batches of the next generation, encoded; see keep_early */
    struct gt_buf *early_last;
} drain;

static void put_all(struct gt_buf *buf)
{
    while (buf) {
        struct gt_buf *next = buf->next;
        gt_buffers_put(buf);
        buf = next;
    }
}

static void write_buffer(const struct gt_buf *buf)
{
    uint64_t ts = buf->ts;
    uint32_t from = 0;
    for (uint32_t i = 0; i < buf->cuts; i++) {
        gt_tables_write_batch(buf->gen, buf->m, ts, buf->data + from, buf->cut[i].at - from);
        ts = buf->cut[i].ts;
        from = buf->cut[i].at;
    }
    if (from < buf->used)
        gt_tables_write_batch(buf->gen, buf->m, ts, buf->data + from, buf->used - from);
}

static void write_queue(void)
{
    struct gt_buf *buf = gt_buffers_take(drain.gen);
    while (buf) {
        struct gt_buf *next = buf->next;
        write_buffer(buf);
        drain.has_batches = true;
        gt_buffers_put(buf);
        buf = next;
    }
}

/*
 * Keeps the status batch of a silent writer, encoded, until the old generation is in the file: it
 * must precede whatever that writer itself may queue meanwhile.
 */
static void keep_early(void *unused, struct gt_buf *batch)
{
    (void)unused;
    struct gt_buf *last = drain.early_last;
    if (!last || GT_BUF_ROOM - last->used < GT_BATCH_HEADER_MAX + batch->used) {
        struct gt_buf *fresh = gt_buffers_get(true);
        if (!fresh)
            return;
        if (last)
            last->next = fresh;
        else
            drain.early = fresh;
        drain.early_last = last = fresh;
    }
    uint8_t *p = last->data + last->used;
    p = gt_tables_batch_header(p, batch->gen, batch->m, batch->ts, batch->used);
    memcpy(p, batch->data, batch->used);
    last->used = (uint32_t)(p + batch->used - last->data);
}

static void write_early(void)
{
    drain.has_batches = drain.early != NULL;
    while (drain.early) {
        struct gt_buf *buf = drain.early;
        drain.early = buf->next;
        gt_output_write(buf->data, buf->used);
        gt_buffers_put(buf);
    }
    drain.early_last = NULL;
}

/*
 * Readers refuse a generation without events, which is what is left when no thread that we know of
 * runs any more. P 0, the main thread's, is idle then, and nobody has said so in this generation.
 */
static void write_nothing(void)
{
    static const uint8_t batch[] = {GT_EV_PROC_STATUS, 0, 0, GT_P_IDLE};
    uint32_t main_thread = (uint32_t)gt_syscall(SYS_getpid);
    gt_tables_write_batch(drain.gen, main_thread, gt_clock_now(), batch, sizeof batch);
}

static void open_output(void)
{
    char header[GT_HEADER_BYTES] = "";
    strcpy(header, gt_format->header);
    gt_output_set_limit(drain.config.max_size);
    int error = gt_output_open(drain.config.path);
    if (gt_format->v1)
        gt_v1_open();
    else if (error == 0)
        gt_output_write(header, sizeof header);
}

static void close_v2(uint32_t next, uint64_t until)
{
    struct gt_clock_snapshot snapshot = drain.snapshot;
    gt_switch_all(next, keep_early, NULL);
    drain.snapshot = gt_clock_snapshot();
    write_queue();
    if (!drain.has_batches)
        write_nothing();
    gt_tables_write(&drain.config, drain.gen, &snapshot, until);
}

/* Nothing of a generation can be written before all of it is known. */
static int close_v1(uint32_t next, uint64_t until)
{
    struct gt_buf *early = drain.early;
    drain.early = drain.early_last = NULL;
    gt_switch_all(next, keep_early, NULL);
    struct gt_buf *plain = gt_buffers_take(drain.gen);
    int error = gt_v1_write(&drain.config, drain.gen, early, plain, until);
    put_all(early);
    put_all(plain);
    return error;
}

/* Closes the generation being written and opens `next`; 0 ends recording. */
static void close_generation(uint32_t next)
{
    int error = 0;
    uint64_t until = next ? gt_clock_now() : UINT64_MAX; /* CPU samples of this generation */
    gt_samples_collect();
    if (drain.generations == 0 && drain.gen == 1)
        open_output();
    if (gt_format->v1)
        error = close_v1(next, until);
    else
        close_v2(next, until);
    if (error == 0)
        error = gt_output_commit();
    if (error == 0)
        drain.generations++;
    else if (!drain.error)
        drain.error = error;
    drain.gen = next;
    if (!gt_format->v1)
        write_early();
}

/* Work for now: v2 batches, or more v1 events than should wait in memory. */
static bool write_some(void)
{
    gt_samples_collect();
    if (gt_format->v1)
        return gt_buffers_crowded();
    if (drain.generations)
        write_queue();
    return false;
}

void gt_drain_open(const struct gt_drain_config *config)
{
    drain.config = *config;
    drain.gen = 1;
    drain.generations = 0;
    drain.has_batches = false;
    drain.error = 0;
    drain.start_ns = gt_clock_monotonic_raw();
    drain.snapshot = gt_clock_snapshot();
    gt_format = config->format;
    gt_buffers_reserve();
    gt_switch_init();
    atomic_store(&drain.phase, RECORDING);
    atomic_store(&gt_gen.current, 1);
}

static void finish(void)
{
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    close_generation(0);
    drain.end_ns = gt_clock_monotonic_raw();
    gt_output_close();
    gt_quiet_end(&quiet);
    atomic_store(&drain.phase, FINISHED);
    gt_futex_wake(&drain.phase, INT_MAX);
}

static void answer_flush(uint32_t asked)
{
    atomic_store(&drain.flushed, asked);
    gt_futex_wake(&drain.flushed, INT_MAX);
}

/* With a limit to the file, generations are small parts of that: the last one is lost. */
static bool generation_full(void)
{
    uint64_t limit = drain.config.max_size;
    return limit && gt_output_uncommitted() >= limit / 16;
}

void gt_drain_run(void)
{
    uint64_t length = SECOND_GENERATION_NS;
    uint64_t deadline = 0;
    while (atomic_load(&drain.phase) == RECORDING) {
        if (atomic_exchange(&drain.sample, 0))
            drain.config.sample();
        uint64_t now = gt_clock_monotonic_raw();
        uint32_t asked = atomic_load(&drain.flushes);
        if (write_some() || now >= deadline || asked != atomic_load(&drain.flushed) ||
            generation_full()) {
            close_generation(drain.gen + 1);
            answer_flush(asked);
            deadline = gt_clock_monotonic_raw() + length;
            length = length * 2 < GENERATION_NS ? length * 2 : GENERATION_NS;
        } else {
            gt_buffers_sleep((int64_t)(deadline - now));
        }
        if (drain.error && atomic_exchange(&drain.phase, FINISHING) == RECORDING)
            break; /* nothing can be written any more: stop recording */
    }
    finish();
    answer_flush(atomic_load(&drain.flushes));
}

void gt_drain_set_threaded(void)
{
    atomic_store(&drain.threaded, 1);
}

void gt_drain_set_unthreaded(void)
{
    atomic_store(&drain.threaded, 0);
}

bool gt_drain_finish(void)
{
    uint32_t phase = RECORDING;
    if (!atomic_compare_exchange_strong(&drain.phase, &phase, FINISHING) && phase == IDLE)
        return false;
    if (phase == RECORDING && !atomic_load(&drain.threaded)) {
        finish();
        return true;
    }
    gt_buffers_kick();
    uint64_t deadline = gt_clock_monotonic_raw() + FINISH_TIMEOUT_NS;
    while ((phase = atomic_load(&drain.phase)) == FINISHING && gt_clock_monotonic_raw() < deadline)
        gt_futex_wait(&drain.phase, phase, 100000000);
    return true;
}

bool gt_drain_sample(void)
{
    if (!atomic_load(&drain.threaded))
        return false;
    atomic_store(&drain.sample, 1);
    gt_buffers_kick();
    return true;
}

void gt_drain_flush(void)
{
    if (atomic_load(&drain.phase) != RECORDING)
        return;
    if (!atomic_load(&drain.threaded)) {
        struct gt_quiet quiet;
        gt_quiet_begin(&quiet);
        close_generation(drain.gen + 1);
        gt_quiet_end(&quiet);
        return;
    }
    uint32_t mine = atomic_fetch_add(&drain.flushes, 1) + 1;
    gt_buffers_kick();
    uint32_t done;
    while ((int32_t)(mine - (done = atomic_load(&drain.flushed))) > 0 &&
           atomic_load(&drain.phase) == RECORDING)
        gt_futex_wait(&drain.flushed, done, 100000000);
}

struct gt_drain_summary gt_drain_summary(void)
{
    struct gt_buffers_stats buffers = gt_buffers_stats();
    return (struct gt_drain_summary){
        .path = gt_output_path(),
        .bytes = gt_output_size(),
        .events = gt_switch_events(),
        .duration_ns = drain.end_ns - drain.start_ns,
        .waits = buffers.waits,
        .wait_ns = buffers.wait_ns,
        .lost = gt_lost_count(),
        .generations = drain.generations,
        .finished = atomic_load(&drain.phase) == FINISHED,
        .limited = gt_output_limited(),
        .error = drain.error,
    };
}

void gt_drain_after_fork(void)
{
    atomic_store(&gt_gen.current, 0);
    gt_output_after_fork();
    gt_stacks_after_fork();
    gt_strings_after_fork();
    gt_symbols_after_fork();
    gt_buffers_after_fork();
    gt_samples_after_fork();
    gt_switch_after_fork();
    gt_procs_after_fork();
    put_all(drain.early);
    memset(&drain, 0, sizeof drain);
}
