/*
 * How the drain side is configured at its beginning: the library says how the process does these
 * things; tests say how they simulate them.
 */
#pragma once

#include "encoder/thread/account.h"
#include "encoder/file/frames.h"
#include "encoder/format/format.h"
#include "encoder/thread/held.h"
#include "rotation.h"
#include "encoder/cpu/sched.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_writer;

struct gt_drain_config {
    const char *path; /* the file of a recording that begins at once; valid for ever */
    /* Returns the path of each later recording's file when it begins; NULL: it has no name. */
    const char *(*next_path)(void);
    /* The directory of the black box (live.h). "": beside the file; NULL: no black box. */
    const char *live;
    uint64_t leaves;     /* a hash of all names that numbers in a stack may stand for */
    const char *program; /* its name; valid for ever. NULL: not known */
    const char *setup;   /* see gt_setup_open */
    uint64_t max_size;   /* of the file; 0: no limit */
    uint64_t spares;     /* see gt_output_spare; but for files that a command names */
    const struct gt_format *format;
    bool manual;          /* nothing is recorded until gt_drain_command says so */
    uint64_t delay_ns;    /* or until so long after the start; 0: never */
    uint64_t duration_ns; /* the length of every recording; 0: no limit */
    uint64_t ring_bytes;  /* the most that the flight recorder keeps; 0: there is none */
    uint64_t ring_ns;     /* and the longest time it keeps; 0: no limit */
    struct gt_rotation_config rotation;
    size_t memory;         /* stacks and strings have a share of it: see renewal.h */
    void (*started)(void); /* called when a recording has begun after gt_drain_open; or NULL */
    void (*rotated)(void); /* called when a recording goes on in another file; or NULL */
    bool (*stopped)(void); /* called when a recording has ended: whether the user knows; or NULL */
    void (*serve)(void);   /* called by the drain thread when woken, by gt_drain_attend; or NULL */
    const struct gt_frame_names *names;
    bool names_later;      /* frames are addresses only: the file asks its reader for their names */
    gt_lock_name_fn *lock; /* see held.h; or NULL */
    gt_place_fn *function; /* see held.h; or NULL */
    void (*at_end)(gt_tell_fn *tell); /* tells the texts of a trace's end, see held.h; or NULL */
    void (*hold)(void);               /* reads now whatever resolve may need later; or NULL */
    /*
     * For renewal.h; all NULL: stacks and strings are never given back. inside: whether w's
     * thread, which is not the caller, is in a hook, where it may use an entry of the tables.
     * aged: starts a new epoch of the module map. forget: gives back what else is kept for stacks
     * that are gone.
     */
    bool (*inside)(const struct gt_writer *w);
    void (*aged)(void);
    void (*forget)(void);
    gt_usage_fn *usage; /* see account.h; or NULL */
    gt_halts_fn *halts; /* see account.h; or NULL */
    /* See watch.h, copies.h for `walk`, and sched.h for `where`. */
    bool (*may_watch)(void);
    uint32_t cpu_hz;
    gt_walk_fn *walk;
    gt_by_copy_fn *by_copy;
    gt_by_timers_fn *by_timers;
    bool (*is_taken)(const void *mutex, uint32_t tid); /* see gt_ev_is_taken */
    bool (*is_asleep)(struct gt_writer *w);            /* see gt_ev_is_asleep */
    bool sched;
    gt_where_fn *where;
    void (*sample)(void); /* see gt_drain_sample */
    void (*look)(void);   /* called by the drain thread about once a second; or NULL */
    bool (*alone)(void);  /* or NULL; whether the drain thread is the process's last */
};
