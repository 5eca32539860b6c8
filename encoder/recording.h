/*
 * A recording: a file and the generations in it, from its start to its end; or the flight recorder,
 * of which files are made. When both end. Drain side only, but for what says otherwise.
 */
#ifndef GT_RECORDING_H
#define GT_RECORDING_H

#include "drain.h"
#include "rotation.h"

/* Before writers are entered. The first recording begins, unless that is for later. */
void gt_recording_init(const struct gt_drain_config *config);

/* enum gt_drain_command says what they do and return. */
int gt_recording_start(void);
int gt_recording_stop(void);
int gt_recording_toggle(void);
int gt_recording_snapshot(const char *path);
int gt_recording_settle(void);
int gt_recording_leave(void);
int gt_recording_sample(uint32_t hz);

/*
 * Where GT_DRAIN_SAMPLE found a recording under way: samples are as before. false: it did not, and
 * nothing is done.
 */
bool gt_recording_end_samples(void);

/* What is due without anybody waiting for it: a toggle that was asked for, and by the clock. */
void gt_recording_attend(bool toggle, uint64_t now);

/* Whether something will be due by the clock, but for the end of a generation. Any thread. */
bool gt_recording_is_timed(void);

/* How long nothing will be, if no buffers come; -1: for ever. */
int64_t gt_recording_idle_ns(uint64_t now);

/* Writes what there is to be written for now. Whether a generation was over with that. */
bool gt_recording_advance(uint64_t now);

/* The same where names are better not looked up: generations go on, as long as there is memory. */
void gt_recording_relieve(void);

/* Whether a part of this one is in the file, or the flight recorder has kept one. Any thread. */
bool gt_recording_has_written(void);

/* What is due for the sake of memory (renewal.h) and of a file's age and size alone. */
void gt_recording_renew(uint64_t now);

/* Ends a recording whose file cannot be written any more. */
void gt_recording_give_up(void);

/* Soon it will be the end of all recording: names can wait. Any thread. */
void gt_recording_hasten(void);

/* The end of all recording; threads are not followed any more. */
void gt_recording_finish(void);

/* Any thread. */
bool gt_recording_is_on(void);

/* Whether one has ended of which the user does not know. Any thread. */
bool gt_recording_is_unreported(void);

/* Of the last recording, or the one under way; with a flight recorder, of the file. Any thread. */
struct gt_recording_summary {
    const char *path;
    uint64_t bytes, events, duration_ns, waits, wait_ns;
    uint64_t lost, stacks_lost, samples_lost; /* events; of others; CPU samples */
    uint64_t sched_gaps, sched_unwatched;     /* in the kernel's records; threads (sched.h) */
    uint32_t generations;
    struct gt_rotation_files files; /* with this one, unless it could not be written */
    bool finished;                  /* false: its writing took too long to be waited for */
    bool limited;                   /* recording stopped at max_size */
    int error;                      /* 0 or the -errno that ended the file early */
};
struct gt_recording_summary gt_recording_summary(void);

/* In a forked child: there is none. */
void gt_recording_after_fork(void);

#endif
