/*
 * A recording: a file and the generations in it, from its start to its end; or the flight
 * recorder, from which files are made. Also decides when generations and recordings end. Drain
 * side only, but for what says otherwise.
 */
#pragma once

#include "drain_config.h"
#include "rotation.h"

/*
 * Called before writers are entered. Begins the first recording, unless that is for later. need:
 * called, in any context, when there is work that only the drain side can do.
 */
void gt_recording_init(const struct gt_drain_config *config, void (*need)(void));

/* enum gt_drain_command says what these do and return. */
int gt_recording_start(void);
int gt_recording_stop(void);
int gt_recording_toggle(void);
int gt_recording_snapshot(const char *path);
int gt_recording_settle(void);
int gt_recording_leave(void);
int gt_recording_sample(uint32_t hz);

/*
 * Ends the samples that GT_DRAIN_SAMPLE began during a recording: samples are as often as before.
 * false: it began no samples, or began the recording itself; then nothing is changed.
 */
bool gt_recording_end_samples(void);

/*
 * Does what is due without a client that waits: a toggle that was asked for, and what is due by
 * the clock.
 */
void gt_recording_attend(bool toggle, uint64_t now);

/* Whether anything but the end of a generation will be due by the clock. Any thread. */
bool gt_recording_is_timed(void);

/* How long until anything is due by the clock; -1: never. Filled buffers may come before. */
int64_t gt_recording_idle_ns(uint64_t now);

/* Writes what can be written now. Returns whether the generation was due to end. */
bool gt_recording_advance(uint64_t now);

/*
 * Writes what can be written without looking up names. Closes the generation only for want of
 * memory.
 */
void gt_recording_relieve(void);

/*
 * Whether the file has a generation of this recording, or the flight recorder has kept one. Any
 * thread.
 */
bool gt_recording_has_written(void);

/* Does what is due for memory (renewal.h) and for a file's age and size, and nothing else. */
void gt_recording_renew(uint64_t now);

/* Ends a recording whose file cannot be written any more. */
void gt_recording_give_up(void);

/* All recording will end soon: stops looking names up ahead. Any thread. */
void gt_recording_hasten(void);

/* Ends all recording; threads are not followed any more. */
void gt_recording_finish(void);

/* Any thread. */
bool gt_recording_is_on(void);

/* Whether a recording has ended that the user does not know of. Any thread. */
bool gt_recording_is_unreported(void);

/*
 * Describes the recording under way or the last one. With a flight recorder, describes its file.
 * Any thread.
 */
struct gt_recording_summary {
    const char *path;
    uint64_t bytes, events, duration_ns, waits, wait_ns;
    uint64_t lost, stacks_lost, samples_lost; /* events, stacks, CPU samples */
    uint64_t sched_gaps, sched_unwatched;     /* gaps in the kernel's records; threads (sched.h) */
    uint32_t generations;
    struct gt_rotation_files files; /* including this one, unless it could not be written */
    bool finished;                  /* false: writing it took too long to wait for */
    bool limited;                   /* recording stopped at max_size */
    int error;                      /* 0 or the -errno that ended the file early */
};
struct gt_recording_summary gt_recording_summary(void);

/* In a forked child: there is no recording. */
void gt_recording_after_fork(void);
