/*
 * The drain side: starts and stops recordings (recording.h), closes generations (generation.h),
 * turns filled buffers and the tables into a file. The drain thread is that, in gt_drain_run. In a
 * program that never had a second thread there is none: the thread that fills a buffer, or asks for
 * something, acts in its place.
 *
 * From gt_drain_open to gt_drain_finish threads are followed; while nothing is recorded, in a mute
 * generation (writer.h). Each recording is a file of its own.
 */
#ifndef GT_DRAIN_H
#define GT_DRAIN_H

#include "account.h"
#include "format.h"
#include "held.h"
#include "rotation.h"
#include "sched.h"
#include "stacks.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_writer;

struct gt_frame {
    const char *func, *file; /* valid until the next call of resolve */
    uint32_t line;
    /*
     * For the outermost of several, or 0: the address to show, of which no other code has ever had
     * the like in this process.
     */
    uint64_t pc;
    bool passing; /* at this address there may be something else at another time */
    /*
     * NULL, or what a reader has to know to find that code again. It stands in the table of strings
     * and no event refers to it.
     */
    const char *module;
};

struct gt_drain_config {
    const char *path; /* of a recording that begins at once; valid for ever */
    /* The same for every other one, asked when it begins; NULL: it cannot be named. */
    const char *(*next_path)(void);
    /* Where the black box is (live.h): a directory, "": beside the file; NULL: there is none. */
    const char *live;
    uint64_t leaves;     /* and of all names that numbers in a stack may stand for */
    const char *program; /* what it is called; valid for ever. NULL: nobody knows */
    uint64_t max_size;   /* of the file; 0: any */
    const struct gt_format *format;
    bool manual;          /* nothing is recorded until gt_drain_command says so */
    uint64_t delay_ns;    /* or this time is over; 0: never */
    uint64_t duration_ns; /* every recording ends after so long; 0: never */
    uint64_t ring_bytes;  /* a flight recorder, which keeps so much at most; 0: none */
    uint64_t ring_ns;     /* and at most so long; 0: any time */
    struct gt_rotation_config rotation;
    size_t memory;         /* of which stacks and strings have a share: see renewal.h */
    void (*started)(void); /* called when a recording has begun after gt_drain_open; or NULL */
    void (*rotated)(void); /* called when it goes on in another file; or NULL */
    bool (*stopped)(void); /* called when one was ended; whether the user knows now; or NULL */
    void (*serve)(void);   /* called by the drain thread when woken, by gt_drain_attend; or NULL */
    /*
     * The frames at s->pcs[index], innermost inlined function first; fills at most max, returns
     * the number, at least 1.
     */
    int (*resolve)(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max);
    /* From here on resolve is asked for stacks of that time, CLOCK_MONOTONIC; or NULL. 0, 0: of a
     * time that is not over: what may be something else at another time is not wanted. */
    void (*of_time)(uint64_t begin_ns, uint64_t end_ns);
    bool names_later;      /* those are addresses: the file says that who reads it looks names up */
    gt_lock_name_fn *lock; /* see held.h; or NULL */
    gt_place_fn *function; /* likewise */
    void (*at_end)(gt_tell_fn *tell); /* tells what a trace says at its end, see held.h; or NULL */
    void (*hold)(void);               /* what resolve may have to read is to be read now; or NULL */
    /* Whether there is the same code in both epochs, so that its frames are; NULL: never known. */
    bool (*same)(uint64_t pc, uint32_t one, uint32_t other);
    /*
     * For renewal.h; all NULL: nothing is ever given back. inside: whether w's thread, which is not
     * the caller, is in a hook, where it may have something of the tables. aged: a new epoch of the
     * module map is to begin. forget: what else is kept for stacks that are gone can go, too.
     */
    bool (*inside)(const struct gt_writer *w);
    void (*aged)(void);
    void (*forget)(void);
    gt_usage_fn *usage; /* see account.h; or NULL */
    /* See watch.h; copies.h for `walk`; and sched.h, which `where` is for. */
    bool (*may_watch)(void);
    uint32_t cpu_hz;
    gt_walk_fn *walk;
    gt_by_copy_fn *by_copy;
    gt_by_timers_fn *by_timers;
    bool (*is_taken)(const void *mutex, uint32_t tid); /* see gt_ev_is_taken */
    bool sched;
    gt_where_fn *where;
    void (*sample)(void); /* see gt_drain_sample */
    void (*look)(void);   /* called by the drain thread about once a second; or NULL */
    bool (*alone)(void);  /* or NULL; whether the drain thread is the process's last */
};

/* From here on writers can be entered; unless config->manual, this is recorded. */
void gt_drain_open(const struct gt_drain_config *config);

enum gt_drain_command {
    GT_DRAIN_START,  /* -EALREADY: one is under way; else why the file cannot be made */
    GT_DRAIN_STOP,   /* -EALREADY: there is none */
    GT_DRAIN_TOGGLE, /* one or the other */
    /*
     * What the flight recorder holds becomes a file: at path, where none must be, or if that is
     * NULL at the next one. Without a flight recorder the file is complete up to now, and the path
     * is -ENOTSUP. -EALREADY: nothing is recorded.
     */
    GT_DRAIN_SNAPSHOT,
    /*
     * Files may be out of reach from now on: opens that of the recording under way, unless it is
     * the flight recorder, and has names held. -EALREADY: nothing is recorded.
     */
    GT_DRAIN_SETTLE,
    /*
     * CPU samples from here on, as many in a second of CPU time as the path says in digits; of what
     * is recorded, or a recording begins (see GT_DRAIN_START). They end with the recording, or by
     * gt_recording_end_samples.
     */
    GT_DRAIN_SAMPLE,
    GT_DRAIN_PASS,  /* nothing: what the drain side was at when it was asked is over */
    GT_DRAIN_LEAVE, /* see gt_drain_leave */
};

/*
 * Does it and waits until it is done. Any thread, not in signal handlers; never gt_drain_run's. 0
 * or -errno; -ESHUTDOWN: before the beginning or after the end; -ETIMEDOUT: 20 s were not enough,
 * or nothing could be written for 10 s. It may yet be done then, if it was begun.
 */
int gt_drain_command(enum gt_drain_command command, const char *path);

/* The same for the drain side itself, from `serve`. */
int gt_drain_execute(enum gt_drain_command command, const char *path);

/* GT_DRAIN_TOGGLE, soon. Async-signal-safe. */
void gt_drain_toggle(void);

/*
 * In a program without drain thread: does what was asked for by gt_drain_toggle or of `serve`, or
 * is due by the clock. gt_drain_attend is to be called when that may be so; it is false otherwise.
 * A client that wants to be served may set it, also from another process, and again until served.
 */
extern _Atomic uint32_t gt_drain_unattended;
void gt_drain_attend(void);

/*
 * In a program without drain thread: buffers are full, the caller does what such a thread would.
 * anywhere: in a signal handler, which may have interrupted the allocator or the loader.
 */
void gt_drain_relieve(bool anywhere);

/* There is something to be done that only the drain side can. Any context. */
void gt_drain_need(void);

/* The body of the drain thread; returns after gt_drain_finish. Announced by set_threaded first. */
void gt_drain_run(void);
void gt_drain_set_threaded(void);
void gt_drain_set_unthreaded(void); /* it could not be made */
bool gt_drain_is_threaded(void);    /* any thread */

/*
 * The end: threads are not followed any more; a recording is completed. Any thread, once; later
 * calls and calls of other threads wait for the first. With a drain thread running waits for it,
 * as long as gt_drain_command. false: the user knows of all recordings there were.
 */
bool gt_drain_finish(void);

/* From here on gt_drain_finish waits for so many ns at most: the process dies. Any context. */
void gt_drain_hurry(int64_t ns);

/*
 * Has the drain thread call config.sample soon: what needs a descriptor is looked at there, where
 * it takes no number of the program's. false: there is no such thread. Any thread.
 */
bool gt_drain_sample(void);

/*
 * The process may become another program in a moment, without another word. All that is recorded is
 * in the file then, also of a flight recorder, and the black box is gone. Should the process stay,
 * recording goes on, without a black box. 0 or -errno, as gt_drain_command.
 */
int gt_drain_leave(void);

/* In a forked child: no trace is open, nothing queued, all locks free. */
void gt_drain_after_fork(void);

#endif
