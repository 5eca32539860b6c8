/* With what a trace was recorded (encoder/format/setup.h), for commands that show it. */
#pragma once

#include "encoder/format/setup.h"
#include "encoder/read/threads.h"

/* The facts as printable texts; NULL: not known. */
struct gt_setup_facts {
    const char *library, *kernel, *machine, *glibc, *cpu;
    const char *switches; /* "GOTRACE_CPU_HZ=200 GOTRACE_LIVE=on"; "": none was set */
    char text[GT_SETUP_MAX];
};

/* Finds the facts in a trace that was read, or whose first generation was. */
void gt_setup_read(struct gt_setup_facts *facts, const struct gt_trace *trace);

/* The facts as members of a JSON object. */
void gt_setup_put(const struct gt_threads *threads);

/* The facts as lines of `gotrace info`; of a trace that does not have them only the CPUs' number.
 */
void gt_setup_print(const struct gt_threads *threads);
