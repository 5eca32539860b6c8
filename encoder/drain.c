/* See drain.h. */
#include "drain.h"

#include "buffers.h"
#include "clock.h"
#include "log.h"
#include "merge.h"
#include "output.h"
#include "ring.h"
#include "samples.h"
#include "switch.h"
#include "symbols.h"
#include "tables.h"
#include "v1.h"

#include <string.h>
#include <unistd.h>

/*
 * The first generation is closed at once: from the moment the file has contents it can be read.
 * The next ones are short, so that a program killed early has left something by then.
 */
#define SECOND_GENERATION_NS 100000000
#define GENERATION_NS 1000000000

/* How long the end of the process waits for the drain thread before it gives up. */
#define FINISH_TIMEOUT_NS 20000000000

enum phase { IDLE, OPEN, FINISHING, FINISHED };

static struct {
    struct gt_drain_config config;
    _Atomic uint32_t phase;
    _Atomic uint32_t threaded; /* a drain thread runs */
    _Atomic uint32_t sample;   /* requested */
    bool recording;
    bool unreported; /* one has ended, and the user does not know */

    /* Held by whoever acts as the drain side: its thread, or without one who asks for something. */
    struct gt_lock side;

    /* What others want. One of them at a time has `client`, but for toggles. */
    struct gt_lock client;
    enum gt_drain_command command;
    const char *path;
    int result;
    _Atomic uint32_t asked, answered;
    _Atomic uint32_t toggles;
    uint64_t start_at, stop_at; /* by the clock; 0: never */

    /* The recording. */
    uint64_t start_ns, end_ns;
    uint64_t length;                      /* of the generation, in ns */
    uint64_t deadline;                    /* when it is to be closed */
    uint64_t events_before;               /* written in other recordings */
    struct gt_buffers_stats stats_before; /* waited */
    uint64_t lost_before;
    int error;
    uint32_t generations; /* whole ones in the file */
    bool opened;          /* the file */

    /* The flight recorder. */
    char path_given[PATH_MAX];
    uint64_t events_then;          /* written when the generation began */
    uint64_t generation_start_ns;  /* and that was then */
    uint64_t from;                 /* gt_gen.from of it */
    uint64_t ring_events, ring_ns; /* in the last file */

    uint32_t gen;                      /* the one being written */
    struct gt_clock_snapshot snapshot; /* taken when it began */
    bool has_batches;                  /* it has some */
    struct gt_buf *early;              /* batches of the next one, encoded; see keep_early */
    struct gt_buf *early_last;
} drain;

_Atomic uint32_t gt_drain_unattended;

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

static void write_batches(const struct gt_buf *buf)
{
    for (; buf; buf = buf->next) {
        write_buffer(buf);
        drain.has_batches = true;
    }
}

static void write_queue(void)
{
    struct gt_buf *queue = gt_buffers_take(drain.gen);
    write_batches(queue);
    put_all(queue);
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

static void write_encoded(const struct gt_buf *buf)
{
    drain.has_batches = buf != NULL;
    for (; buf; buf = buf->next)
        gt_output_write(buf->data, buf->used);
}

static struct gt_buf *take_early(void)
{
    struct gt_buf *early = drain.early;
    drain.early = drain.early_last = NULL;
    return early;
}

static void write_early(void)
{
    struct gt_buf *early = take_early();
    write_encoded(early);
    put_all(early);
}

/*
 * Readers refuse a generation without events, which is what is left when no thread that we know of
 * runs any more. P 0, the main thread's, is idle then, and nobody has said so in this generation.
 */
static void write_nothing(uint32_t gen)
{
    static const uint8_t batch[] = {GT_EV_PROC_STATUS, 0, 0, GT_P_IDLE};
    uint32_t main_thread = (uint32_t)gt_syscall(SYS_getpid);
    gt_tables_write_batch(gen, main_thread, gt_clock_now(), batch, sizeof batch);
}

static void begin_file(void)
{
    char header[GT_HEADER_BYTES] = "";
    strcpy(header, gt_format->header);
    if (gt_format->v1)
        gt_v1_open();
    else
        gt_output_write(header, sizeof header);
}

static int open_output(bool fresh)
{
    drain.opened = true;
    gt_output_set_limit(drain.config.max_size);
    int error = gt_output_open(drain.config.path, fresh);
    begin_file();
    return error;
}

/* Whether a recording ends with the generation before this one. */
static bool is_end(uint32_t next)
{
    return next == 0 || gt_gen_is_mute(next);
}

static void close_v2(uint32_t next, uint64_t until)
{
    struct gt_clock_snapshot snapshot = drain.snapshot;
    gt_switch_all(next, keep_early, NULL);
    drain.snapshot = gt_clock_snapshot();
    write_queue();
    if (!drain.has_batches)
        write_nothing(drain.gen);
    gt_tables_write(&drain.config, drain.gen, &snapshot, until);
}

/* Nothing of a generation can be written before all of it is known. */
static int close_v1(uint32_t next, uint64_t until)
{
    struct gt_buf *early = take_early();
    gt_switch_all(next, keep_early, NULL);
    struct gt_buf *plain = gt_buffers_take(drain.gen);
    int error = gt_v1_write(&drain.config, drain.gen, early, plain, until);
    put_all(early);
    put_all(plain);
    return error;
}

/* The flight recorder ------------------------------------------------------------------------ */

static bool in_ring(void)
{
    return drain.config.ring_bytes != 0;
}

/* In generation `next` a reader may begin. */
static void tell_all(uint32_t next)
{
    static uint32_t procs;
    if (!procs)
        procs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store(&gt_gen.from, gt_clock_now());
    atomic_store(&gt_gen.procs, procs);
    atomic_store(&gt_gen.first, next);
}

static void close_ring(uint32_t next, uint64_t until)
{
    struct gt_kept kept = {.gen = drain.gen,
                           .snapshot = drain.snapshot,
                           .begin_ns = drain.generation_start_ns,
                           .from = drain.from};
    struct gt_buf *early = take_early();
    if (!is_end(next))
        tell_all(next);
    drain.from = atomic_load(&gt_gen.from);
    gt_switch_all(next, keep_early, NULL);
    drain.snapshot = gt_clock_snapshot();
    uint64_t events = gt_switch_events();
    kept.events = events - drain.events_then;
    drain.events_then = events;
    kept.end_ns = drain.generation_start_ns = gt_clock_monotonic_raw();
    struct gt_buf *plain = gt_buffers_take(drain.gen);
    if (!gt_ring_keep(&kept, early, plain, until)) {
        gt_ring_clear(); /* what is before a gap is of no use */
        gt_samples_move(until, NULL);
    }
    put_all(early);
    put_all(plain);
    drain.gen = next;
}

static int write_kept(const struct gt_kept *k)
{
    drain.ring_events += k->events;
    if (gt_format->v1)
        return gt_v1_write_kept(&drain.config, k);
    write_encoded(k->early);
    write_batches(k->plain);
    if (!drain.has_batches)
        write_nothing(k->gen);
    gt_tables_write_kept(&drain.config, k);
    return 0;
}

static int write_kept_from(const struct gt_kept *k)
{
    int error = 0;
    drain.ring_events = 0;
    drain.ring_ns = k ? drain.generation_start_ns - k->begin_ns : 0;
    for (; k && !error; k = k->next) {
        error = write_kept(k);
        error = error ? error : gt_output_commit();
    }
    return error;
}

/* What does not fit the file is the oldest. */
static int write_ring(bool fresh)
{
    int error = open_output(fresh);
    size_t bytes = gt_ring_memory();
    error = error ? error : write_kept_from(gt_ring_newest(bytes));
    while (error == -EFBIG && gt_ring_newest(bytes)->next && gt_output_rewind() == 0) {
        bytes -= bytes / 4;
        begin_file();
        error = write_kept_from(gt_ring_newest(bytes));
    }
    gt_output_close();
    return error;
}

/* The file's name; NULL: there is none. */
static const char *name_file(const char *path)
{
    if (path)
        drain.config.path = strcpy(drain.path_given, path);
    else if (drain.config.next_path)
        drain.config.path = drain.config.next_path();
    return drain.config.path;
}

/* Generations -------------------------------------------------------------------------------- */

/* Closes the generation being written and opens `next`. */
static void close_generation(uint32_t next)
{
    int error = 0;
    uint64_t until = is_end(next) ? UINT64_MAX : gt_clock_now(); /* CPU samples of it */
    gt_samples_collect();
    if (in_ring()) {
        close_ring(next, until);
        return;
    }
    if (!drain.opened)
        open_output(false);
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

/* Of the flight recorder's memory, at its end or in its file. */
static uint64_t kept_at_most(void)
{
    uint64_t file = drain.config.max_size, ring = drain.config.ring_bytes;
    return file && file < ring ? file : ring;
}

/* Work for now: v2 batches, or more v1 events than should wait in memory. */
static bool write_some(void)
{
    size_t queued = atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed) * GT_BUF_BYTES;
    gt_samples_collect();
    if (in_ring() && queued + gt_samples_memory() >= kept_at_most() / 16)
        return true;
    if (gt_format->v1 || in_ring())
        return gt_buffers_crowded();
    if (drain.generations)
        write_queue();
    return false;
}

/* Recordings --------------------------------------------------------------------------------- */

static void begin_recording(void)
{
    struct gt_buffers_stats stats = gt_buffers_stats();
    drain.generations = 0;
    drain.error = 0;
    drain.opened = false;
    drain.has_batches = false;
    drain.start_ns = gt_clock_monotonic_raw();
    drain.deadline = 0;
    drain.length = SECOND_GENERATION_NS;
    drain.stop_at = drain.config.duration_ns ? drain.start_ns + drain.config.duration_ns : 0;
    drain.events_before = drain.events_then = gt_switch_events();
    drain.generation_start_ns = drain.start_ns;
    drain.from = atomic_load(&gt_gen.from);
    drain.stats_before = stats;
    drain.lost_before = gt_lost_count();
    drain.snapshot = gt_clock_snapshot();
    drain.recording = true;
    if (in_ring())
        gt_ring_open(drain.config.ring_bytes, drain.config.ring_ns);
}

/* From a mute generation to one that is written. Everybody's state is told in it. */
static int start(void)
{
    if (drain.recording)
        return -EALREADY;
    drain.start_at = 0;
    if (!in_ring() && !name_file(NULL))
        return -ENAMETOOLONG;
    begin_recording();
    int error = in_ring() ? 0 : open_output(false);
    if (error) {
        drain.recording = false;
        drain.stop_at = 0;
        return error;
    }
    uint32_t next = drain.gen + 1;
    tell_all(next);
    drain.from = atomic_load(&gt_gen.from);
    gt_samples_forget();
    gt_switch_all(next, keep_early, NULL);
    drain.gen = next;
    if (!gt_format->v1 && !in_ring())
        write_early();
    if (drain.config.started)
        drain.config.started();
    return 0;
}

static void complete(void)
{
    drain.end_ns = gt_clock_monotonic_raw();
    drain.stop_at = 0;
    drain.recording = false;
    drain.unreported = true;
    gt_output_close();
    if (in_ring()) {
        drain.error = name_file(NULL) ? write_ring(false) : -ENAMETOOLONG;
        gt_ring_clear();
    }
}

static void go_mute(void)
{
    uint32_t next = drain.gen + 1;
    atomic_store(&gt_gen.mute, next);
    close_generation(next);
    complete();
}

static int stop(void)
{
    if (!drain.recording)
        return -EALREADY;
    go_mute();
    drain.unreported = !drain.config.stopped || !drain.config.stopped();
    return drain.error;
}

static void next_generation(void)
{
    close_generation(drain.gen + 1);
    drain.deadline = gt_clock_monotonic_raw() + drain.length;
    drain.length = drain.length * 2 < GENERATION_NS ? drain.length * 2 : GENERATION_NS;
}

static int flush(void)
{
    if (!drain.recording)
        return -EALREADY;
    next_generation();
    return drain.error;
}

static int snapshot(const char *path)
{
    if (!drain.recording)
        return -EALREADY;
    if (!in_ring())
        return path ? -ENOTSUP : flush();
    next_generation();
    return name_file(path) ? write_ring(path) : -ENAMETOOLONG;
}

int gt_drain_execute(enum gt_drain_command command, const char *path)
{
    switch (command) {
    case GT_DRAIN_START: return start();
    case GT_DRAIN_STOP: return stop();
    case GT_DRAIN_TOGGLE: return drain.recording ? stop() : start();
    default: return snapshot(path);
    }
}

/* What is due without anybody waiting for it. */
static void attend(uint64_t now)
{
    int error = 0;
    if (atomic_exchange(&drain.toggles, 0) & 1)
        error = gt_drain_execute(GT_DRAIN_TOGGLE, NULL);
    if (drain.start_at && now >= drain.start_at)
        error = start();
    if (drain.stop_at && now >= drain.stop_at)
        error = stop();
    if (error)
        gt_log("%s: %s; nothing is recorded", drain.config.path, strerrordesc_np(-error));
}

static void note_unattended(void)
{
    atomic_store(&gt_drain_unattended,
                 !atomic_load(&drain.threaded) && (drain.start_at || drain.stop_at));
}

void gt_drain_open(const struct gt_drain_config *config)
{
    bool waits = config->manual || config->delay_ns;
    drain.config = *config;
    gt_format = config->format;
    drain.gen = 1;
    gt_buffers_reserve();
    gt_switch_init();
    atomic_store(&gt_gen.mute, waits ? drain.gen : 0);
    atomic_store(&gt_gen.first, drain.gen);
    atomic_store(&gt_gen.procs, 0);
    atomic_store(&gt_gen.from, 0);
    if (!waits)
        begin_recording();
    else if (config->delay_ns)
        drain.start_at = gt_clock_monotonic_raw() + config->delay_ns;
    note_unattended();
    atomic_store(&drain.phase, OPEN);
    atomic_store(&gt_gen.current, drain.gen);
}

static void finish(void)
{
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    if (drain.recording) {
        close_generation(0);
        complete();
    } else {
        gt_switch_all(0, keep_early, NULL);
    }
    gt_quiet_end(&quiet);
    atomic_store(&drain.phase, FINISHED);
    gt_futex_wake(&drain.phase, INT_MAX);
}

/* The drain thread --------------------------------------------------------------------------- */

static void answer(uint32_t asked, int result)
{
    drain.result = result;
    atomic_store(&drain.answered, asked);
    gt_futex_wake(&drain.answered, INT_MAX);
}

/* With a limit to the file, generations are small parts of that: the last one is lost. */
static bool generation_full(void)
{
    uint64_t limit = drain.config.max_size;
    return limit && gt_output_uncommitted() >= limit / 16;
}

static bool generation_due(uint64_t now)
{
    return drain.recording && (write_some() || now >= drain.deadline || generation_full());
}

/* Until something is due; -1: for ever. */
static int64_t idle_ns(uint64_t now)
{
    uint64_t due[] = {drain.recording ? drain.deadline : 0, drain.start_at, drain.stop_at};
    int64_t least = -1;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        int64_t ns = due[i] > now ? (int64_t)(due[i] - now) : 0;
        if (due[i] && (least < 0 || ns < least))
            least = ns;
    }
    return least;
}

/* Whether there is no thread for it, and the caller may act as the drain side. */
static bool take_side(int64_t patience_ns)
{
    if (atomic_load(&drain.threaded) || !gt_lock_within(&drain.side, patience_ns))
        return false;
    if (!atomic_load(&drain.threaded))
        return true;
    gt_unlock(&drain.side);
    return false;
}

void gt_drain_run(void)
{
    gt_lock(&drain.side);
    note_unattended();
    while (atomic_load(&drain.phase) == OPEN) {
        if (atomic_exchange(&drain.sample, 0))
            drain.config.sample();
        uint64_t now = gt_clock_monotonic_raw();
        uint32_t asked = atomic_load(&drain.asked);
        attend(now);
        if (drain.config.serve)
            drain.config.serve();
        if (asked != atomic_load(&drain.answered))
            answer(asked, gt_drain_execute(drain.command, drain.path));
        else if (generation_due(now))
            next_generation();
        else
            gt_buffers_sleep(idle_ns(now));
        if (drain.recording && drain.error)
            go_mute(); /* nothing can be written any more */
    }
    if (atomic_load(&drain.phase) != FINISHED)
        finish();
    gt_unlock(&drain.side);
    answer(atomic_load(&drain.asked), -ESHUTDOWN);
}

void gt_drain_set_threaded(void)
{
    atomic_store(&drain.threaded, 1);
}

void gt_drain_set_unthreaded(void)
{
    atomic_store(&drain.threaded, 0);
    note_unattended();
}

bool gt_drain_finish(void)
{
    uint32_t phase = OPEN;
    if (!atomic_compare_exchange_strong(&drain.phase, &phase, FINISHING) && phase == IDLE)
        return false;
    if (phase == OPEN && take_side(GT_LOCK_PATIENCE_NS)) {
        finish();
        gt_unlock(&drain.side);
        return drain.unreported;
    }
    if (phase == OPEN && !atomic_load(&drain.threaded))
        return false; /* a signal handler ends the process in the middle of a command */
    gt_buffers_kick();
    uint64_t deadline = gt_clock_monotonic_raw() + FINISH_TIMEOUT_NS;
    while ((phase = atomic_load(&drain.phase)) == FINISHING && gt_clock_monotonic_raw() < deadline)
        gt_futex_wait(&drain.phase, phase, 100000000);
    return drain.unreported || drain.recording;
}

/* Commands ----------------------------------------------------------------------------------- */

/* The drain thread does it; `client` is held. */
static int ask_locked(enum gt_drain_command command, const char *path)
{
    drain.command = command;
    drain.path = path;
    uint32_t mine = atomic_fetch_add(&drain.asked, 1) + 1, done;
    while ((done = atomic_load(&drain.answered)) != mine) {
        if (atomic_load(&drain.phase) != OPEN || !atomic_load(&drain.threaded))
            return -ESHUTDOWN;
        gt_buffers_kick();
        gt_futex_wait(&drain.answered, done, 100000000);
    }
    return drain.result;
}

static int execute_or_ask(enum gt_drain_command command, const char *path)
{
    if (!take_side(GT_LOCK_PATIENCE_NS))
        return atomic_load(&drain.threaded) ? ask_locked(command, path) : -EBUSY;
    int r = gt_drain_execute(command, path);
    gt_unlock(&drain.side);
    return r;
}

int gt_drain_command(enum gt_drain_command command, const char *path)
{
    int r = -ESHUTDOWN;
    struct gt_quiet quiet;
    gt_lock(&drain.client);
    gt_quiet_begin(&quiet);
    if (path && strlen(path) >= PATH_MAX)
        r = -ENAMETOOLONG;
    else if (atomic_load(&drain.phase) == OPEN)
        r = execute_or_ask(command, path);
    note_unattended();
    gt_quiet_end(&quiet);
    gt_unlock(&drain.client);
    return r;
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
    if (!in_ring())
        gt_drain_command(GT_DRAIN_SNAPSHOT, NULL);
}

void gt_drain_toggle(void)
{
    if (atomic_load(&drain.phase) != OPEN)
        return;
    atomic_fetch_add(&drain.toggles, 1);
    atomic_store(&gt_drain_unattended, !atomic_load(&drain.threaded));
    gt_buffers_kick();
}

void gt_drain_attend(void)
{
    if (!take_side(0)) {
        if (atomic_load(&drain.threaded))
            note_unattended();
        return;
    }
    struct gt_quiet quiet;
    gt_quiet_begin(&quiet);
    if (atomic_load(&drain.phase) == OPEN) {
        attend(gt_clock_monotonic_raw());
        if (drain.config.serve)
            drain.config.serve();
    }
    note_unattended();
    gt_quiet_end(&quiet);
    gt_unlock(&drain.side);
}

struct gt_drain_summary gt_drain_summary(void)
{
    struct gt_buffers_stats buffers = gt_buffers_stats();
    return (struct gt_drain_summary){
        .path = gt_output_path(),
        .bytes = gt_output_size(),
        .events = in_ring() ? drain.ring_events : gt_switch_events() - drain.events_before,
        .duration_ns = in_ring() ? drain.ring_ns : drain.end_ns - drain.start_ns,
        .waits = buffers.waits - drain.stats_before.waits,
        .wait_ns = buffers.wait_ns - drain.stats_before.wait_ns,
        .lost = gt_lost_count() - drain.lost_before,
        .generations = drain.generations,
        .finished = !drain.recording,
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
    gt_merge_after_fork();
    gt_samples_after_fork();
    gt_switch_after_fork();
    gt_procs_after_fork();
    gt_writer_after_fork();
    put_all(drain.early);
    gt_buffers_after_fork();
    gt_ring_clear();
    memset(&drain, 0, sizeof drain);
    atomic_store(&gt_drain_unattended, 0);
}
