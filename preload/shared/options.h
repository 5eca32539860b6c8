/* The environment switches; one table in options.c, one in libgotrace(7). Read once, at start. */
#pragma once

#include "encoder/drain/rotation.h"
#include "encoder/format/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum gt_children { GT_CHILDREN_NONE, GT_CHILDREN_WITH_THREADS, GT_CHILDREN_ALL };

struct gt_options {
    bool on;
    bool heap, sched;
    bool names_later;          /* names are looked up when the trace is first read */
    enum gt_children children; /* which descendants are traced too */
    uint64_t max_processes;    /* recorded processes of a family; 0: no limit */
    uint64_t max_size;         /* of the file, in bytes; 0: no limit */
    uint64_t max_mem;          /* of event buffers, in bytes */
    const struct gt_format *format;
    bool calls;          /* calls into the kernel are shown */
    bool every_call;     /* also calls that do not block */
    bool channels;       /* calls show their pipe or socket (waits/channels.h) */
    uint64_t call_min;   /* in ns: shorter calls and yields are not shown */
    uint64_t hold_min;   /* in ns: holds of a hot lock of at least this length are recorded */
    bool manual;         /* recording starts on request */
    uint64_t delay;      /* recording starts so many ns after the program; 0: no delay */
    uint64_t duration;   /* of a recording, in ns; 0: no limit */
    uint64_t ring_bytes; /* the flight recorder's memory; 0: no flight recorder */
    uint64_t ring_time;  /* in ns: the time that the flight recorder keeps; 0: all that fits */
    struct gt_rotation_config rotation; /* of a recording's files; all 0: a single file */
    uint64_t hang;                      /* in ns: a deadlock of this length is reported; 0: never */
    int signal;                         /* starts and stops recording; 0: none */
    bool boxed;                         /* there is a black box (encoder/base/box.c) */
    uint32_t cpu_hz;                    /* samples in a second of a thread's CPU time; 0: none */
    const char *path;      /* the variable PATH as of the start; "" after gotrace attach */
    const char *merged;    /* the trace into which this process's trace is merged; "": none */
    const char *live;      /* directory of the black box; "": beside the output */
    char output[PATH_MAX]; /* pattern, absolute */
};
extern struct gt_options gt_options;

/* The output pattern where the user gives none. */
#define GT_OUTPUT_DEFAULT "trace.out"

/* The variable with the output pattern of the process that the user started, absolute; set by
 * descent.h. */
#define GT_ROOT_OUTPUT "GOTRACE_ROOT_OUTPUT"

/* The variable with the file into which `gotrace -f` merges the traces of all processes, which it
 * then removes. */
#define GT_ROOT_MERGED "GOTRACE_ROOT_MERGED"

/* Reads the switches from `settings`: strings "NAME=value", each with its zero, then an empty
 * string. NULL: reads the environment. */
void gt_options_read(const char *settings);

/* Sets the output pattern of later recordings. false: too long. */
bool gt_options_set_output(const char *pattern);

/*
 * The version of this library, and the switches that were set when gt_options_read read them, as
 * lines of a setup (encoder/format/setup.h). GOTRACE_OUTPUT is left out, and a value that is a path
 * is told as "...".
 */
const char *gt_options_setup(void);

/* The name by which the program was called, as of gt_options_read. */
const char *gt_options_program(void);

/* For the launcher: NULL if the switch takes the value, else the values that it takes; "": there is
 * no such switch. */
const char *gt_options_refusal(const char *name, const char *value);

/* Reads the value of GOTRACE_CPU_HZ: CPU samples in a second of CPU time. */
bool gt_options_hz(const char *value, uint32_t *hz);

/* Reads a time: a number, perhaps with a fraction, and a unit: ns, us, ms, s (the default), m or h.
 */
bool gt_options_time(const char *value, uint64_t *ns);

/*
 * Expands the output pattern for the nth file of this process; the path is absolute. false: longer
 * than PATH_MAX.
 * - %p: if the pattern has none, a descendant of the process that the user started gets .<pid>
 *   appended.
 * - %n: if the pattern has none, files after the first one get .<n> appended.
 * - %u: the first number for which there is no file yet.
 */
bool gt_options_output_path(char path[PATH_MAX], bool descendant, unsigned n);

/* Whether the output pattern has %u, so that no trace overwrites another one. */
bool gt_options_output_is_unused(void);
