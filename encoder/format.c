/* The tables of format.h. The next Go version is a row here, and what is new in it. */
#include "format.h"

#include <string.h>

/* clang-format off */
static const struct gt_format formats[] = {
    /* name, header, minor, v1, after_call, snapshot, end_marker, v1_marking */
    {"go1.5",  "go 1.5 trace",   5,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.7",  "go 1.7 trace",   7,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.8",  "go 1.8 trace",   8,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.9",  "go 1.9 trace",   9,  true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.10", "go 1.10 trace",  10, true,  GT_AFTER_CALL_NOTHING,    false, false, 0},
    {"go1.11", "go 1.11 trace",  11, true,  GT_AFTER_CALL_STOP_START, false, false, 0},
    {"go1.19", "go 1.19 trace",  19, true,  GT_AFTER_CALL_STOP_START, false, false, 0},
    {"go1.21", "go 1.21 trace",  21, true,  GT_AFTER_CALL_STOP_START, false, false, 1},
    {"go1.22", "go 1.22 trace",  22, false, GT_AFTER_CALL_STOP_START, false, false, 0},
    {"go1.23", "go 1.23 trace",  23, false, GT_AFTER_CALL_STATUS,     false, false, 0},
    {"go1.25", "go 1.25 trace",  25, false, GT_AFTER_CALL_STATUS,     true,  false, 0},
    {"go1.26", "go 1.26 trace",  26, false, GT_AFTER_CALL_NOTHING,    true,  true, 0},
};
/* clang-format on */

enum { FORMATS = sizeof formats / sizeof *formats };

const struct gt_format *gt_format;

const struct gt_format *gt_format_find(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

const struct gt_format *gt_format_of_header(const void *header)
{
    for (size_t i = 0; i < FORMATS; i++) {
        char expected[GT_HEADER_BYTES] = {0};
        memcpy(expected, formats[i].header, strlen(formats[i].header));
        if (memcmp(header, expected, sizeof expected) == 0)
            return &formats[i];
    }
    return NULL;
}

const char *gt_format_names(void)
{
    static char text[256];
    char *p = text;
    *p = 0;
    for (size_t i = 0; i < FORMATS; i++) {
        p = stpcpy(p, formats[i].name);
        if (i + 1 < FORMATS)
            p = stpcpy(p, i + 2 < FORMATS ? ", " : " or ");
    }
    return text;
}

/* clang-format off */
const int8_t gt_event_args[GT_EVENTS_END] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1,
    [GT_EV_PROCS_CHANGE] = 2,      /* procs, stack */
    [GT_EV_PROC_START] = 2,        /* P, P's seq */
    [GT_EV_PROC_STOP] = 0,
    [12] = 3,                      /* ProcSteal: P, P's seq, M */
    [GT_EV_PROC_STATUS] = 2,       /* P, status */
    [GT_EV_GO_CREATE] = 3,         /* G, its stack, stack */
    [15] = 1,                      /* GoCreateSyscall: G */
    [GT_EV_GO_START] = 2,          /* G, G's seq */
    [GT_EV_GO_DESTROY] = 0,
    [18] = 0,                      /* GoDestroySyscall */
    [GT_EV_GO_STOP] = 2,           /* reason, stack */
    [GT_EV_GO_BLOCK] = 2,          /* reason, stack */
    [GT_EV_GO_UNBLOCK] = 3,        /* G, G's seq, stack */
    [GT_EV_GO_SYSCALL_BEGIN] = 2,  /* P's seq, stack */
    [GT_EV_GO_SYSCALL_END] = 0,
    [GT_EV_GO_SYSCALL_END_BLOCKED] = 0,
    [GT_EV_GO_STATUS] = 3,         /* G, M, status */
    [26] = 2,                      /* STWBegin: kind, stack */
    [27] = 0,                      /* STWEnd */
    [28] = 1,                      /* GCActive: seq */
    [29] = 2,                      /* GCBegin: seq, stack */
    [30] = 1,                      /* GCEnd: seq */
    [31] = 1,                      /* GCSweepActive: P */
    [32] = 1,                      /* GCSweepBegin: stack */
    [33] = 2,                      /* GCSweepEnd: swept, reclaimed */
    [34] = 1,                      /* GCMarkAssistActive: G */
    [35] = 1,                      /* GCMarkAssistBegin: stack */
    [36] = 0,                      /* GCMarkAssistEnd */
    [GT_EV_HEAP_ALLOC] = 1,        /* bytes */
    [GT_EV_HEAP_GOAL] = 1,         /* bytes */
    [GT_EV_GO_LABEL] = 1,          /* string */
    [GT_EV_USER_TASK_BEGIN] = 4,   /* task, parent, name, stack */
    [GT_EV_USER_TASK_END] = 2,     /* task, stack */
    [GT_EV_USER_REGION_BEGIN] = 3, /* task, name, stack */
    [GT_EV_USER_REGION_END] = 3,   /* task, name, stack */
    [GT_EV_USER_LOG] = 4,          /* task, key, value, stack */
    [45] = 2,                      /* GoSwitch: G, G's seq */
    [46] = 2,                      /* GoSwitchDestroy: G, G's seq */
    [47] = 3,                      /* GoCreateBlocked: G, its stack, stack */
    [GT_EV_GO_STATUS_STACK] = 4,   /* G, M, status, stack */
    [49] = -1, [GT_EV_SYNC] = -1, [GT_EV_CLOCK_SNAPSHOT] = -1, [GT_EV_END_OF_GENERATION] = -1,
};

/* Batch, Frequency, Stack and String have forms of their own: v1/pages.c. */
const struct gt_v1_event gt_v1_events[GT_V1_EVENTS_END] = {
    [GT_V1_GOMAXPROCS] = {5, {5, 5}},            /* procs, stack */
    [GT_V1_PROC_START] = {5, {5}},               /* thread */
    [GT_V1_PROC_STOP] = {5, {0}},
    [GT_V1_GC_START] = {5, {7, 5}},              /* number from 0 on, stack */
    [GT_V1_GC_DONE] = {5, {0}},
    [GT_V1_STW_START] = {5, {10}},               /* kind */
    [GT_V1_STW_DONE] = {5, {0}},
    [GT_V1_GO_CREATE] = {5, {5, 5, 5}},          /* G, its stack (1.5: PC), stack */
    [GT_V1_GO_START] = {5, {5, 7}},              /* G, G's seq */
    [GT_V1_GO_END] = {5, {0}},
    [GT_V1_GO_SCHED] = {5, {5}},                 /* stack; likewise the next ones */
    [GT_V1_GO_PREEMPT] = {5, {5}},
    [GT_V1_GO_SLEEP] = {5, {5}},
    [GT_V1_GO_BLOCK] = {5, {5}},
    [GT_V1_GO_BLOCK_SYNC] = {5, {5}},
    [GT_V1_GO_BLOCK_COND] = {5, {5}},
    [GT_V1_GO_BLOCK_NET] = {5, {5}},
    [GT_V1_GO_SYS_CALL] = {5, {5}},
    [GT_V1_GO_UNBLOCK] = {5, {5, 7, 5}},         /* G, G's seq, stack */
    [GT_V1_GO_SYS_EXIT] = {5, {5, 5, 5}},        /* G, G's seq (1.5: the global one), real time */
    [GT_V1_GO_SYS_BLOCK] = {5, {0}},
    [GT_V1_GO_WAITING] = {5, {5}},               /* G */
    [GT_V1_GO_IN_SYSCALL] = {5, {5}},            /* G */
    [GT_V1_HEAP_ALLOC] = {5, {5}},               /* bytes */
    [GT_V1_HEAP_GOAL] = {5, {5}},                /* bytes; NextGC in 1.5 */
    [GT_V1_GO_START_LOCAL] = {7, {7}},           /* G */
    [GT_V1_GO_UNBLOCK_LOCAL] = {7, {7, 7}},      /* G, stack */
    [GT_V1_GO_START_LABEL] = {8, {8, 8, 8}},     /* G, G's seq, string */
    [GT_V1_USER_TASK_CREATE] = {11, {11, 11, 11, 11}}, /* task, parent, name, stack */
    [GT_V1_USER_TASK_END] = {11, {11, 11}},      /* task, stack */
    [GT_V1_USER_REGION] = {11, {11, 11, 11, 11}}, /* task, mode, name, stack */
    [GT_V1_USER_LOG] = {11, {11, 11, 11}},       /* task, key, stack; the value's text follows */
    [GT_V1_CPU_SAMPLE] = {19, {19, 19, 19, 19}}, /* time, P, G, stack */
};
/* clang-format on */
