/* The environment switches; one table in options.c, one in the README. Read once, at start. */
#ifndef GT_OPTIONS_H
#define GT_OPTIONS_H

#include "encoder/format.h"
#include "encoder/rotation.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum gt_children { GT_CHILDREN_NONE, GT_CHILDREN_WITH_THREADS, GT_CHILDREN_ALL };

struct gt_options {
    bool on;
    bool heap, sched;
    bool names_later;          /* who reads a trace looks them up */
    enum gt_children children; /* which descendants are traced too */
    uint64_t max_processes;    /* of a family that are recorded; 0: no limit */
    uint64_t max_size;         /* of the file, in bytes; 0: no limit */
    uint64_t max_mem;          /* of event buffers, in bytes */
    const struct gt_format *format;
    bool calls;          /* calls into the kernel are shown */
    bool every_call;     /* all of them */
    bool channels;       /* with what they are about (hooks/channels.h) */
    uint64_t call_min;   /* unless they are shorter, in ns; and yields */
    uint64_t hold_min;   /* in ns: a lock held so long is told, if anybody waited for it lately */
    bool manual;         /* recording starts when told to */
    uint64_t delay;      /* or so many ns after the program; 0: never */
    uint64_t duration;   /* of a recording, in ns; 0: any */
    uint64_t ring_bytes; /* the flight recorder's memory; 0: there is none */
    uint64_t ring_time;  /* and in ns how long it remembers; 0: as long as that lasts */
    struct gt_rotation_config rotation; /* of a recording's files; all 0: there is one */
    uint64_t hang;         /* in ns: a deadlock that has lasted so long is told; 0: never */
    int signal;            /* starts and stops; 0: none */
    bool boxed;            /* there is one */
    uint32_t cpu_hz;       /* samples in a second of a thread's CPU time; 0: none */
    char output[PATH_MAX]; /* pattern, absolute */
    char live[PATH_MAX];   /* where the black box is; "": beside the output */
};
extern struct gt_options gt_options;

/* The output pattern of the process that the user started, absolute: by descent.h. */
#define GT_ROOT_OUTPUT "GOTRACE_ROOT_OUTPUT"

/* settings: "NAME=value", each with its zero, then an empty one; NULL: the environment is read. */
void gt_options_read(const char *settings);

/* Another pattern for what is recorded from here on. false: too long. */
bool gt_options_set_output(const char *pattern);

/* What the program was called by when that was read. */
const char *gt_options_program(void);

/* For the launcher. NULL: the switch takes the value; else what it takes; "": no such switch. */
const char *gt_options_refusal(const char *name, const char *value);

/* How many CPU samples in a second of CPU time: GOTRACE_CPU_HZ. */
bool gt_options_hz(const char *value, uint32_t *hz);

/* A number, perhaps with a fraction, and a unit: ns, us, ms, s (which may be left out), m or h. */
bool gt_options_time(const char *value, uint64_t *ns);

/*
 * The output pattern expanded for the nth file of this process, absolute. A descendant of the
 * process the user started gets .<pid> appended where the pattern has no %p, files after the first
 * one .<n> where it has no %n; %u is the first number of which there is no file yet. false: longer
 * than PATH_MAX.
 */
bool gt_options_output_path(char path[PATH_MAX], bool descendant, unsigned n);

/* Whether it has %u: no trace takes the place of another one. */
bool gt_options_output_is_unused(void);

#endif
