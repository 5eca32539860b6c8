/*
 * Go's trace formats as data: the versions, the events of the two families (v2:
 * internal/trace/tracev2/events.go in the Go sources; v1: internal/trace/parser.go up to Go 1.22),
 * named as upstream names them.
 *
 * Writers write v2 events whatever the version. v2 versions differ in a few things that struct
 * gt_format says; for v1 versions v1.c translates.
 */
#ifndef GT_FORMAT_H
#define GT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What follows the end of a system call. That carries no stack, and the tools of Go 1.22 to 1.25
 * end a wait in their profiles only at an event that has one.
 */
enum gt_after_call {
    GT_AFTER_CALL_NOTHING,    /* no such reader takes this version */
    GT_AFTER_CALL_STOP_START, /* the goroutine stops and starts at once */
    GT_AFTER_CALL_STATUS,     /* its status, which may have a stack since Go 1.23 */
};

/* A version of the format: a row of the table in format.c. */
struct gt_format {
    const char *name;   /* as in GOTRACE_FORMAT */
    const char *header; /* the file's first 16 bytes, filled up with zeros */
    uint8_t minor;      /* go 1.minor: the first Go whose traces look like this */
    bool v1;
    enum gt_after_call after_call;
    bool snapshot;      /* a generation tells the time of day */
    bool end_marker;    /* a generation ends with an event that says so */
    uint8_t v1_marking; /* "mark termination" among the kinds of STWStart */
};

#define GT_HEADER_BYTES 16

/* The row named `name`, or NULL; the default. */
const struct gt_format *gt_format_find(const char *name);
/* The row of a file that begins with these GT_HEADER_BYTES, or NULL. */
const struct gt_format *gt_format_of_header(const void *header);
#define GT_FORMAT_DEFAULT "go1.23"

/* All names, for messages. */
const char *gt_format_names(void);

/*
 * What readers skip and `gotrace info` looks for, at the end of a file that nothing is missing
 * from: in v2 a string that no event uses, in its last generation; in v1, whose first version has
 * no strings, a stack of one frame with the id 0 and this PC, and no event after it.
 */
#define GT_WHOLE "gotrace-whole"
#define GT_V1_WHOLE 0x656c6f6877u /* "whole" */

/* What is being recorded. Set before recording starts. */
extern const struct gt_format *gt_format;

/* v2 events ---------------------------------------------------------------------------------- */

enum gt_event_type {
    GT_EV_EVENT_BATCH = 1,
    GT_EV_STACKS = 2,
    GT_EV_STACK = 3,
    GT_EV_STRINGS = 4,
    GT_EV_STRING = 5,
    GT_EV_CPU_SAMPLES = 6,
    GT_EV_CPU_SAMPLE = 7,
    GT_EV_FREQUENCY = 8,
    GT_EV_PROCS_CHANGE = 9,
    GT_EV_PROC_START = 10,
    GT_EV_PROC_STOP = 11,
    GT_EV_PROC_STATUS = 13,
    GT_EV_GO_CREATE = 14,
    GT_EV_GO_START = 16,
    GT_EV_GO_DESTROY = 17,
    GT_EV_GO_STOP = 19,
    GT_EV_GO_BLOCK = 20,
    GT_EV_GO_UNBLOCK = 21,
    GT_EV_GO_SYSCALL_BEGIN = 22,
    GT_EV_GO_SYSCALL_END = 23,
    GT_EV_GO_SYSCALL_END_BLOCKED = 24,
    GT_EV_GO_STATUS = 25,
    GT_EV_STW_BEGIN = 26,
    GT_EV_STW_END = 27,
    GT_EV_GC_BEGIN = 29,
    GT_EV_GC_END = 30,
    GT_EV_HEAP_ALLOC = 37,
    GT_EV_HEAP_GOAL = 38,
    GT_EV_GO_LABEL = 39,
    GT_EV_USER_TASK_BEGIN = 40,
    GT_EV_USER_TASK_END = 41,
    GT_EV_USER_REGION_BEGIN = 42,
    GT_EV_USER_REGION_END = 43,
    GT_EV_USER_LOG = 44,
    GT_EV_GO_STATUS_STACK = 48,
    GT_EV_EXPERIMENTAL_BATCH = 49,
    GT_EV_SYNC = 50,
    GT_EV_CLOCK_SNAPSHOT = 51,
    GT_EV_END_OF_GENERATION = 52,
    GT_EVENTS_END
};

enum { GT_EVENT_ARGS_MAX = 4 };

/* Arguments after the time of v2 events; -1: not an event of a thread, or never written. */
extern const int8_t gt_event_args[GT_EVENTS_END];

/* Wire values of GoStatus; GT_G_NONE never reaches the wire. */
enum gt_g_state { GT_G_NONE, GT_G_RUNNABLE, GT_G_RUNNING, GT_G_SYSCALL, GT_G_WAITING };

/* Wire values of ProcStatus. */
enum gt_p_state { GT_P_NONE, GT_P_RUNNING, GT_P_IDLE, GT_P_SYSCALL };

enum {
    GT_BATCH_MAX = 64 << 10, /* bytes of a batch's payload, a hard limit of the readers */
    GT_FRAMES_MAX = 128,
    GT_STRING_MAX = 1024,
};

/*
 * Why a goroutine does not run. The viewers match these texts (FORMAT-FACTS): the profiles of
 * `go tool trace` look for "sync" and "network", gotraceui knows a fixed list.
 */
enum gt_reason {
    GT_REASON_NONE,
    GT_REASON_SYNC,
    GT_REASON_COND,
    GT_REASON_SLEEP,
    GT_REASON_YIELD,
    GT_REASON_NETWORK,
    GT_REASON_PREEMPTED,
    GT_REASON_GC, /* of a stopped world */
    GT_REASONS_END
};

/* v1 events ---------------------------------------------------------------------------------- */

enum gt_v1_type {
    GT_V1_BATCH = 1,
    GT_V1_FREQUENCY = 2,
    GT_V1_STACK = 3,
    GT_V1_GOMAXPROCS = 4,
    GT_V1_PROC_START = 5,
    GT_V1_PROC_STOP = 6,
    GT_V1_GC_START = 7,
    GT_V1_GC_DONE = 8,
    GT_V1_STW_START = 9,
    GT_V1_STW_DONE = 10,
    GT_V1_GO_CREATE = 13,
    GT_V1_GO_START = 14,
    GT_V1_GO_END = 15,
    GT_V1_GO_STOP = 16, /* this and some others only Go itself writes */
    GT_V1_GO_SCHED = 17,
    GT_V1_GO_PREEMPT = 18,
    GT_V1_GO_SLEEP = 19,
    GT_V1_GO_BLOCK = 20,
    GT_V1_GO_UNBLOCK = 21,
    GT_V1_GO_BLOCK_SEND = 22,
    GT_V1_GO_BLOCK_RECV = 23,
    GT_V1_GO_BLOCK_SELECT = 24,
    GT_V1_GO_BLOCK_SYNC = 25,
    GT_V1_GO_BLOCK_COND = 26,
    GT_V1_GO_BLOCK_NET = 27,
    GT_V1_GO_SYS_CALL = 28,
    GT_V1_GO_SYS_EXIT = 29,
    GT_V1_GO_SYS_BLOCK = 30,
    GT_V1_GO_WAITING = 31,
    GT_V1_GO_IN_SYSCALL = 32,
    GT_V1_HEAP_ALLOC = 33,
    GT_V1_HEAP_GOAL = 34,
    GT_V1_STRING = 37,
    GT_V1_GO_START_LOCAL = 38,
    GT_V1_GO_UNBLOCK_LOCAL = 39,
    GT_V1_GO_SYS_EXIT_LOCAL = 40,
    GT_V1_GO_START_LABEL = 41,
    GT_V1_GO_BLOCK_GC = 42,
    GT_V1_USER_TASK_CREATE = 45,
    GT_V1_USER_TASK_END = 46,
    GT_V1_USER_REGION = 47,
    GT_V1_USER_LOG = 48,
    GT_V1_CPU_SAMPLE = 49,
    GT_V1_EVENTS_END
};

enum { GT_V1_ARGS_MAX = 4 };

/*
 * A v1 event: the version that has it first, and the same of its arguments, which follow the time.
 * 0: no such argument.
 */
struct gt_v1_event {
    uint8_t since;
    uint8_t arg[GT_V1_ARGS_MAX];
};
extern const struct gt_v1_event gt_v1_events[GT_V1_EVENTS_END];

/* Whether this version has the event. */
static inline bool gt_v1_has(const struct gt_format *f, enum gt_v1_type type)
{
    return gt_v1_events[type].since && gt_v1_events[type].since <= f->minor;
}

/* Go 1.5: a sequence number on every event, no strings. */
static inline bool gt_v1_global_order(const struct gt_format *f)
{
    return f->minor < 7;
}

#endif
