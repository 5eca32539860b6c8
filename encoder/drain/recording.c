/* See recording.h. */
#include "recording.h"

#include "generation.h"
#include "live.h"
#include "renewal.h"
#include "ring.h"
#include "rotation.h"

#include "encoder/base/clock.h"
#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/base/sparse.h"
#include "encoder/cpu/samples.h"
#include "encoder/cpu/sched.h"
#include "encoder/cpu/watch.h"
#include "encoder/file/frames.h"
#include "encoder/file/output.h"
#include "encoder/file/v1/elf.h"
#include "encoder/file/v1/v1.h"
#include "encoder/file/v2.h"
#include "encoder/format/origin.h"
#include "encoder/format/setup.h"
#include "encoder/thread/account.h"
#include "encoder/thread/buffers.h"
#include "encoder/thread/states.h"

#include <string.h>

/*
 * The first generation is closed at once, so that the file can be read as soon as it has contents.
 * The next ones are short, so that a program killed early has left a part by then.
 */
#define SECOND_GENERATION_NS 100000000
#define GENERATION_NS 1000000000

static struct {
    const struct gt_drain_config *config;
    const char *path; /* of its file */
    bool on;
    _Atomic bool ending;        /* its file is not complete yet */
    _Atomic bool hasty;         /* the program ends */
    bool unreported;            /* a recording has ended, and the user does not know */
    bool samples_apart;         /* CPU samples may end before the recording */
    uint64_t start_at, stop_at; /* by the clock; 0: never */

    uint64_t start_ns, end_ns;
    uint64_t length;                      /* of the generation, in ns */
    uint64_t deadline;                    /* when it is to be closed */
    uint64_t renew_at;                    /* without a recording: no renewal before that */
    uint64_t events_before;               /* written in other recordings */
    struct gt_buffers_stats stats_before; /* how often and how long threads waited */
    uint64_t lost_before, stacks_lost_before, samples_lost_before;
    int error;
    uint32_t generations; /* complete ones in the file */
    bool opened;          /* the file was opened */
    bool kept_on;         /* recording goes on in this file: no other could be made */

    /* The flight recorder. */
    uint64_t ring_events, ring_ns; /* in the flight recorder's last file */
    bool left;                     /* that file was for an exec, which has failed */
} recording;
static char path_given[PATH_MAX] GT_SPARSE; /* the path given for the flight recorder's file */

bool gt_recording_is_on(void)
{
    return recording.on;
}

bool gt_recording_is_unreported(void)
{
    return recording.unreported;
}

static bool in_ring(void)
{
    return recording.config->memory.ring_bytes != 0;
}

/* Its file ----------------------------------------------------------------------------------- */

/* Chooses the path of the next file. false: there is none. */
static bool name_file(const char *path)
{
    const char *name = recording.path;
    gt_output_spare(path ? 0 : recording.config->file.spares);
    if (path)
        name = strcpy(path_given, path);
    else if (recording.config->host.next_path)
        name = recording.config->host.next_path();
    recording.path = name ? name : recording.path;
    return name;
}

/*
 * Chooses the path of the flight recorder's next file. If the last file was for an exec that has
 * failed, the next one replaces it.
 */
static bool name_ring(const char *path)
{
    bool again = recording.left && !path;
    recording.left = false;
    return again || name_file(path);
}

static void begin_file(void)
{
    if (gt_format->v1)
        gt_v1_open();
    else
        gt_v2_open();
}

static void close_file(void)
{
    gt_output_close();
    if (gt_format->v1)
        gt_v1_elf_close();
    if (gt_rotation_is_on() && gt_output_size())
        gt_rotation_note(gt_output_path(), gt_output_size());
}

static int open_file(bool fresh)
{
    recording.opened = true;
    gt_output_set_limit(recording.config->file.max_size);
    int error = gt_output_open(recording.path, fresh);
    begin_file();
    return error;
}

static int write_kept_from(const struct gt_kept *first)
{
    int error = 0;
    recording.ring_events = recording.ring_ns = 0;
    for (const struct gt_kept *k = first; k && !error; k = k->next) {
        recording.ring_events += k->events;
        recording.ring_ns = k->end_ns - first->begin_ns;
        error = gt_generation_write_kept(k);
        error = error ? error : gt_output_commit();
    }
    return error ? error : gt_generation_write_end(true);
}

/* Writes the flight recorder's file; leaves out the oldest generations if it gets too large. */
static int write_ring(bool fresh)
{
    size_t bytes = gt_ring_memory();
    const struct gt_kept *first = gt_ring_newest(bytes);
    gt_generation_look_up_kept(first);
    int error = open_file(fresh);
    error = error ? error : write_kept_from(first);
    while (error == -EFBIG && first && first->next) {
        bytes -= bytes / 4;
        first = gt_ring_newest(bytes);
        gt_generation_look_up_kept(first);
        if (gt_output_rewind() != 0)
            break;
        begin_file();
        error = write_kept_from(first);
    }
    close_file();
    return error;
}

/* Its generations ---------------------------------------------------------------------------- */

/*
 * Writes the closed generation. The file is made only when its first generation is closed and its
 * names are known, which may take long. A process killed meanwhile leaves no file; any file that
 * exists can be read.
 */
static int write_generation(bool whole)
{
    bool first = !recording.opened;
    if (first) {
        gt_output_reserve(); /* the program may run out of memory later */
        gt_v2_reserve();
    }
    gt_generation_look_up();
    if (first)
        open_file(false);
    int error = gt_generation_write(whole);
    recording.generations += error == 0;
    if (first && !error)
        gt_rotation_trim();
    return error;
}

static void note(int error)
{
    recording.error = recording.error ? recording.error : error;
}

/* whole: see gt_generation_write. */
static void next_generation(bool whole)
{
    if (in_ring()) {
        gt_generation_keep(GT_SUCCESSOR_WRITTEN);
    } else {
        gt_generation_close(GT_SUCCESSOR_WRITTEN);
        note(write_generation(whole));
    }
    recording.deadline = gt_clock_monotonic_raw() + recording.length;
    recording.length = recording.length * 2 < GENERATION_NS ? recording.length * 2 : GENERATION_NS;
}

static void last_generation(enum gt_successor next)
{
    if (in_ring()) {
        gt_generation_keep(next);
        return;
    }
    gt_generation_close(next);
    int error = write_generation(false);
    note(error ? error : gt_generation_write_end(false));
}

/* About the size of the file, with the buffers that are queued for it. */
static uint64_t file_bytes(void)
{
    uint64_t queued = atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed);
    return gt_output_size() + gt_output_uncommitted() + queued;
}

static bool rotation_is_due(uint64_t now)
{
    return gt_rotation_is_due(now, recording.opened ? file_bytes() : 0);
}

/*
 * Opens the file that follows. If that fails, recording goes on in the current file. 0 or -errno.
 */
static int prepare_next_file(void)
{
    uint64_t device, inode;
    gt_output_identify(&device, &inode);
    int error = !inode            ? -ESPIPE
                : name_file(NULL) ? gt_output_prepare(recording.path)
                                  : -ENAMETOOLONG;
    if (error && !recording.kept_on)
        gt_log("GOTRACE_ROTATE: %s: %s; recording goes on in %s",
               inode ? recording.path : gt_output_path(),
               inode ? gt_libc_error(-error) : "no regular file", gt_output_path());
    recording.kept_on |= error != 0;
    return error;
}

/* Goes on in another file. Its first generation is closed at once, like any file's. */
static void rotate(uint64_t now)
{
    if (!recording.opened) /* without a drain thread no generation was due yet */
        next_generation(false);
    if (recording.error)
        return;
    int error = prepare_next_file();
    gt_rotation_next(now, error ? file_bytes() : 0);
    if (error)
        return;
    gt_generation_close(GT_SUCCESSOR_ELSEWHERE);
    note(gt_generation_write_last(recording.path));
    if (recording.error)
        return;
    close_file();
    recording.opened = false;
    if (recording.config->host.rotated)
        recording.config->host.rotated();
    next_generation(false);
}

/*
 * Whether generations wait in memory until they are over: for a flight recorder, a v1 format, real
 * CPU state or a black box.
 */
static bool wait_in_memory(void)
{
    return in_ring() || gt_format->v1 || gt_sched_is_on() || gt_box_is_open();
}

/* The most bytes that the flight recorder can keep, in memory and in its file. */
static uint64_t kept_at_most(void)
{
    uint64_t file = recording.config->file.max_size, ring = recording.config->memory.ring_bytes;
    return file && file < ring ? file : ring;
}

static bool memory_full(void)
{
    size_t queued = atomic_load_explicit(&gt_buffers_queued, memory_order_relaxed);
    if (in_ring() && queued + gt_samples_memory() >= kept_at_most() / 16)
        return true;
    if (gt_sched_is_on() && queued >= GT_SCHED_BYTES)
        return true;
    return wait_in_memory() && gt_buffers_crowded();
}

/*
 * With a limit of the file's size, generations are small parts of it, because the last one is
 * lost.
 */
static bool file_full(void)
{
    uint64_t limit = recording.config->file.max_size;
    return limit && gt_output_uncommitted() >= limit / 16;
}

/*
 * Writes what waits, if it may be written before its generation ends. Returns whether too much
 * still waits.
 */
static bool write_what_waits(void)
{
    gt_samples_collect();
    bool full = memory_full();
    if (!wait_in_memory() && recording.generations)
        gt_generation_write_queued();
    return full || gt_buffers_crowded();
}

#define RENEW_EVERY_NS 100000000

static bool renewal_is_due(uint64_t now)
{
    uint64_t due = gt_renewal_due_ns();
    return due && now >= due;
}

void gt_recording_renew(uint64_t now)
{
    GT_ASSERT_DRAIN_SIDE();
    if (recording.on && rotation_is_due(now))
        rotate(now);
    else if (recording.on && renewal_is_due(now))
        next_generation(false);
    if (recording.on || !gt_renewal_is_under_way() || now < recording.renew_at)
        return;
    recording.renew_at = now + RENEW_EVERY_NS;
    gt_generation_renew();
}

void gt_recording_hasten(void)
{
    atomic_store(&recording.hasty, true);
}

/* Looking up names may take long, and rings fill up meanwhile. */
static bool has_time(void)
{
    gt_watch_poll(gt_clock_monotonic_raw());
    return !atomic_load(&recording.hasty) && !gt_buffers_crowded();
}

bool gt_recording_advance(uint64_t now)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!recording.on) {
        gt_recording_renew(now);
        return false;
    }
    gt_watch_poll(now);
    bool full = write_what_waits() || file_full() || renewal_is_due(now);
    bool rotates = rotation_is_due(now), due = full || rotates || now >= recording.deadline;
    bool ahead = due && !full && recording.opened && !in_ring();
    if (ahead)
        gt_generation_look_ahead(has_time);
    if (due && !(ahead && atomic_load(&recording.hasty)))
        rotates ? rotate(now) : next_generation(false);
    return due;
}

void gt_recording_relieve(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (recording.on && write_what_waits())
        next_generation(false);
}

bool gt_recording_has_written(void)
{
    return recording.generations > 0 || (recording.on && in_ring() && gt_ring_memory() > 0);
}

int64_t gt_recording_idle_ns(uint64_t now)
{
    bool renews = !recording.on && gt_renewal_is_under_way();
    uint64_t due[] = {recording.on ? recording.deadline : 0, recording.start_at, recording.stop_at,
                      gt_rotation_due_ns(),
                      recording.on ? gt_renewal_due_ns()
                      : renews     ? recording.renew_at
                                   : 0};
    int64_t least = -1;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        int64_t ns = due[i] > now ? (int64_t)(due[i] - now) : 0;
        if (due[i] && (least < 0 || ns < least))
            least = ns;
    }
    int64_t rings = recording.on ? gt_watch_idle_ns(now) : -1;
    return rings >= 0 && (least < 0 || rings < least) ? rings : least;
}

/* Its start and end -------------------------------------------------------------------------- */

static void begin(void)
{
    const struct gt_drain_config *config = recording.config;
    recording.generations = 0;
    recording.error = 0;
    recording.opened = recording.kept_on = false;
    recording.samples_apart = false;
    recording.start_ns = gt_clock_monotonic_raw();
    recording.deadline = 0;
    recording.length = SECOND_GENERATION_NS;
    recording.stop_at =
        config->times.duration_ns ? recording.start_ns + config->times.duration_ns : 0;
    recording.events_before = gt_generation_events();
    recording.stats_before = gt_buffers_stats();
    recording.lost_before = gt_lost_count();
    recording.stacks_lost_before = gt_stacks_lost();
    recording.samples_lost_before = gt_samples_lost();
    recording.on = true;
    gt_rotation_begin(recording.start_ns);
    gt_account_open();
    gt_sched_open();
    if (in_ring())
        gt_ring_open(config->memory.ring_bytes, config->memory.ring_ns);
}

static void end(enum gt_successor next)
{
    recording.ending = true;
    recording.end_ns = gt_clock_monotonic_raw();
    last_generation(next);
    recording.stop_at = 0;
    recording.on = false;
    gt_rotation_end();
    recording.unreported = true;
    close_file();
    if (in_ring()) {
        recording.error = name_ring(NULL) ? write_ring(false) : -ENAMETOOLONG;
        if (next == GT_SUCCESSOR_NONE)
            gt_live_remove(); /* before this all is in the file or in the box */
        gt_ring_clear();
    }
    gt_generation_forget();
    gt_sched_close();
    gt_watch_end();
    recording.ending = false;
}

int gt_recording_start(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (recording.on)
        return -EALREADY;
    recording.start_at = 0;
    if (!in_ring() && !name_file(NULL))
        return -ENAMETOOLONG;
    begin();
    gt_live_commit(atomic_load(&gt_gen.current), recording.path);
    gt_generation_begin();
    if (recording.config->host.started)
        recording.config->host.started();
    if (in_ring())
        return 0;
    next_generation(false); /* creates the file */
    if (!recording.error || gt_output_limited())
        return 0;
    end(GT_SUCCESSOR_MUTE);
    recording.unreported = false;
    return recording.error;
}

int gt_recording_stop(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!recording.on)
        return -EALREADY;
    end(GT_SUCCESSOR_MUTE);
    recording.unreported = !recording.config->host.stopped || !recording.config->host.stopped();
    return recording.error;
}

int gt_recording_sample(uint32_t hz)
{
    GT_ASSERT_DRAIN_SIDE();
    bool was_on = recording.on;
    int error = was_on ? 0 : gt_recording_start();
    recording.samples_apart |= was_on;
    if (!error)
        gt_watch_sample(hz);
    return error;
}

bool gt_recording_end_samples(void)
{
    GT_ASSERT_DRAIN_SIDE();
    bool apart = recording.on && recording.samples_apart;
    recording.samples_apart = false;
    if (apart)
        gt_watch_sample(recording.config->cpu.hz);
    return apart;
}

int gt_recording_toggle(void)
{
    return recording.on ? gt_recording_stop() : gt_recording_start();
}

int gt_recording_snapshot(const char *path)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!recording.on)
        return -EALREADY;
    if (!in_ring() && path)
        return -ENOTSUP;
    next_generation(false);
    if (in_ring())
        return name_ring(path) ? write_ring(path) : -ENAMETOOLONG;
    next_generation(true); /* in v2 this one says that waits have lasted until now */
    return recording.error;
}

int gt_recording_leave(void)
{
    GT_ASSERT_DRAIN_SIDE();
    int error = gt_recording_snapshot(NULL);
    recording.left = recording.on && in_ring();
    if (!error || error == -EALREADY)
        gt_live_remove();
    return error;
}

int gt_recording_settle(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!recording.on)
        return -EALREADY;
    if (!in_ring() && !recording.opened)
        next_generation(false);
    return recording.error;
}

void gt_recording_attend(bool toggle, uint64_t now)
{
    GT_ASSERT_DRAIN_SIDE();
    int error = 0;
    if (toggle)
        error = gt_recording_toggle();
    if (recording.start_at && now >= recording.start_at)
        error = gt_recording_start();
    if (recording.stop_at && now >= recording.stop_at)
        error = gt_recording_stop();
    if (error)
        gt_log("%s: %s; nothing is recorded", recording.path, gt_libc_error(-error));
}

bool gt_recording_is_timed(void)
{
    bool renews = recording.on ? gt_renewal_due_ns() : gt_renewal_is_under_way();
    return recording.start_at || recording.stop_at || gt_rotation_due_ns() || renews;
}

void gt_recording_give_up(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (recording.on && recording.error)
        end(GT_SUCCESSOR_MUTE);
}

static void open_box(const struct gt_drain_config *config)
{
    if (!gt_gen_stays())
        gt_log_note("GOTRACE_LIVE: this kernel is too old");
    else
        gt_live_open(config, gt_buffers_limit(), gt_generation_past());
}

void gt_recording_init(const struct gt_drain_config *config, void (*need)(void))
{
    bool waits = config->times.manual || config->times.delay_ns;
    recording.config = config;
    gt_output_spare(config->file.spares);
    recording.path = config->file.path;
    gt_format = config->file.format;
    gt_rotation_init(&config->file.rotation);
    gt_origin_open(config->file.program);
    gt_setup_open(config->file.setup);
    if (config->memory.live)
        open_box(config);
    gt_buffers_reserve();
    gt_frames_init(&config->names, config->file.names_later);
    gt_held_init(&config->texts);
    gt_ev_is_taken = config->waits.is_taken;
    gt_ev_is_asleep = config->waits.is_asleep;
    gt_copies_init(config->cpu.copies ? config->cpus.walk : NULL);
    gt_watch_init(&(struct gt_watch_config){.switches = config->cpu.sched
                                                            ? gt_sched_init(config->cpus.where)
                                                            : (struct gt_watch_switches){0},
                                            .hz = config->cpu.hz,
                                            .by_copy = config->cpus.by_copy,
                                            .by_timers = config->cpus.by_timers,
                                            .may_watch = config->cpus.may_watch});
    gt_generation_init(waits);
    gt_renewal_init(config, need);
    if (!waits)
        begin();
    else if (config->times.delay_ns)
        recording.start_at = gt_clock_monotonic_raw() + config->times.delay_ns;
}

void gt_recording_finish(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (recording.on)
        end(GT_SUCCESSOR_NONE);
    else
        gt_generation_stop();
    gt_live_remove();
}

struct gt_recording_summary gt_recording_summary(void)
{
    struct gt_buffers_stats buffers = gt_buffers_stats();
    struct gt_rotation_files files = gt_rotation_files();
    bool ring = recording.config && in_ring();
    return (struct gt_recording_summary){
        .path = recording.opened ? gt_output_path() : recording.path,
        .bytes = files.n ? files.bytes : gt_output_size(),
        .files = files,
        .events = ring ? recording.ring_events : gt_generation_events() - recording.events_before,
        .duration_ns = ring ? recording.ring_ns : recording.end_ns - recording.start_ns,
        .waits = buffers.waits - recording.stats_before.waits,
        .wait_ns = buffers.wait_ns - recording.stats_before.wait_ns,
        .lost = gt_lost_count() - recording.lost_before,
        .stacks_lost = gt_stacks_lost() - recording.stacks_lost_before,
        .samples_lost = gt_samples_lost() - recording.samples_lost_before,
        .sched_gaps = gt_sched_gaps(),
        .sched_unwatched = gt_watch_unwatched(),
        .generations = recording.generations,
        .finished = !recording.on && !recording.ending,
        .limited = gt_output_limited(),
        .error = recording.error,
    };
}

void gt_recording_after_fork(void)
{
    memset(&recording, 0, sizeof recording);
}
