/*
 * How the drain side is configured at its beginning: what the user wants, and what the process does
 * for the drain side. preload/life/process_start.c gives the library's functions; tests simulate
 * them.
 */
#pragma once

#include "rotation.h"

#include "encoder/cpu/copies.h"
#include "encoder/cpu/sched.h"
#include "encoder/file/frames.h"
#include "encoder/format/format.h"
#include "encoder/thread/account.h"
#include "encoder/thread/held.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_writer;

/* The files. */
struct gt_drain_file {
    const char *path; /* the file of a recording that begins at once; valid for ever */
    const struct gt_format *format;
    uint64_t max_size; /* of the file; 0: no limit */
    uint64_t spares;   /* see gt_output_spare; but for files that a command names */
    struct gt_rotation_config rotation;
    const char *program; /* its name; valid for ever. NULL: not known */
    const char *setup;   /* see gt_setup_open */
    bool names_later;    /* frames are addresses only: the file asks its reader for their names */
};

/* When something is recorded. */
struct gt_drain_times {
    bool manual;          /* nothing is recorded until gt_drain_command says so */
    uint64_t delay_ns;    /* or until so long after the start; 0: never */
    uint64_t duration_ns; /* the length of every recording; 0: no limit */
};

/* What is kept in memory. */
struct gt_drain_memory {
    uint64_t ring_bytes; /* the most that the flight recorder keeps; 0: there is none */
    uint64_t ring_ns;    /* and the longest time it keeps; 0: no limit */
    size_t tables;       /* stacks and strings have a share of it: see renewal.h */
    const char *live;    /* the black box's directory (live.h). "": beside the file; NULL: no box */
    uint64_t leaves;     /* a hash of all names that numbers in a stack may stand for */
};

/* What is wanted to be known of CPUs. */
struct gt_drain_cpu {
    uint32_t hz; /* CPU samples a second of CPU time; 0: none */
    bool copies; /* `walk` samples copies of stacks */
    bool sched;  /* when threads have a CPU */
};

/* The process. The drain side calls these, from no hook. All may be NULL. */
struct gt_drain_host {
    /* Returns the path of each later recording's file when it begins; NULL: it has no name. */
    const char *(*next_path)(void);
    void (*started)(void); /* a recording has begun after gt_drain_open */
    void (*rotated)(void); /* a recording goes on in another file */
    bool (*stopped)(void); /* a recording has ended: whether the user knows */
    void (*serve)(void);   /* called by the drain thread when woken, by gt_drain_attend */
    void (*hold)(void);    /* reads now whatever gt_frame_names.resolve may need later */
    void (*sample)(void);  /* see gt_drain_sample */
    void (*look)(void);    /* called by the drain thread about once a second */
    bool (*alone)(void);   /* whether the drain thread is the process's last */
};

/*
 * What is known of the program's waits (preload/waits/wait.c): see gt_ev_is_taken, gt_ev_is_asleep.
 * The drain side calls these when it moves a silent thread to the next generation, and is_taken is
 * called by a thread that moves itself. Both may be NULL.
 */
struct gt_drain_waits {
    bool (*is_taken)(const void *mutex, uint32_t tid);
    bool (*is_asleep)(struct gt_writer *w);
};

/*
 * What the kernel tells of threads, and sampling (process/read_usage.c, thread/sampler.c): see
 * account.h for `usage` and `halts`, sched.h for `where`, copies.h for `walk`, and watch.h. The
 * drain side calls these, and `usage` is also called by a thread that begins or ends. All may be
 * NULL, if nothing is wanted of CPUs.
 */
struct gt_drain_cpus {
    gt_usage_fn *usage;
    gt_halts_fn *halts;
    gt_where_fn *where;
    bool (*may_watch)(void);
    gt_walk_fn *walk;
    gt_by_copy_fn *by_copy;
    gt_by_timers_fn *by_timers;
};

/*
 * For renewal.h, by the drain side; all NULL: stacks and strings are never given back. inside:
 * whether w's thread, which is not the caller, is in a hook, where it may use an entry of the
 * tables. aged: starts a new epoch of the module map. forget: gives back what else is kept for
 * stacks that are gone.
 */
struct gt_drain_renewal {
    bool (*inside)(const struct gt_writer *w);
    void (*aged)(void);
    void (*forget)(void);
};

struct gt_drain_config {
    struct gt_drain_file file;
    struct gt_drain_times times;
    struct gt_drain_memory memory;
    struct gt_drain_cpu cpu;
    struct gt_drain_host host;
    struct gt_frame_names names;
    struct gt_held_texts texts;
    struct gt_drain_waits waits;
    struct gt_drain_cpus cpus;
    struct gt_drain_renewal renewal;
};
