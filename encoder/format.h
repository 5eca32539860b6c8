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
 * Says at the end of a file that nothing is missing from it: in v2 a string that no event uses, in
 * v1, whose first version has none, the PC of a stack of one frame with the id 0.
 */
#define GT_OWN "gotrace-" /* begins what only we say */
#define GT_WHOLE GT_OWN "whole"
#define GT_V1_WHOLE 0x656c6f6877u /* "whole" */

/*
 * Says of a file that we have written what a Go program recorded: in v2 a string of each generation
 * that no event uses, in v1 a number as above.
 */
#define GT_OF_GO GT_OWN "of-go"
#define GT_V1_OF_GO 0x6f67666fu /* "ofgo" */

/*
 * Says of a file that its frames and some texts (symbolize/phrases.h) have addresses, for who reads
 * it to look up; in its first generation, as GT_OF_GO.
 */
#define GT_LATER GT_OWN "later"
#define GT_V1_LATER 0x726574616cu /* "later" */

/*
 * The reason of a wait that the kernel has recorded and no hook has seen. v1 has no reasons: there
 * it is a GoBlock, of which ours have no other kind.
 */
#define GT_UNSEEN_TEXT "unseen"

/* What is being recorded. Before recording starts it is a format without events, never NULL. */
extern const struct gt_format *gt_format;

/* v2 events ---------------------------------------------------------------------------------- */

enum gt_event_type {
#define GT_EVENT(number, id, name, args) GT_EV_##id = number,
#include "format_v2.def"
#undef GT_EVENT
    GT_EVENTS_END
};

enum { GT_EVENT_ARGS_MAX = 4 };

/* Arguments after the time of v2 events; -1: not an event of a thread. */
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
    GT_REASON_GC,     /* of a stopped world */
    GT_REASON_UNSEEN, /* off the CPU, not in a call that is known */
    /* Not reasons: kinds of logs about locks (held.h), strings that are always there as these. */
    GT_LOG_HELD_BY,
    GT_LOG_WAITS_FOR,
    GT_LOG_WAKES,
    GT_LOG_WAKES_ALL,
    GT_REASONS_END
};

/* v1 events ---------------------------------------------------------------------------------- */

enum gt_v1_type {
#define GT_EVENT(number, id, name, since, ...) GT_V1_##id = number,
#include "format_v1.def"
#undef GT_EVENT
    GT_V1_EVENTS_END
};

enum { GT_V1_ARGS_MAX = 4 };

struct gt_v1_event { /* as in format_v1.def */
    uint8_t since;
    uint8_t arg[GT_V1_ARGS_MAX];
};
extern const struct gt_v1_event gt_v1_events[GT_V1_EVENTS_END];

/* Why the world stops: the kinds of STWStart, as Go 1.21 numbers them. */
enum { GT_V1_STW_MARKING = 1, GT_V1_STW_SWEEPING, GT_V1_STW_KINDS = 17 };
extern const char *const gt_v1_stw_kinds[GT_V1_STW_KINDS];

/* Whether this version has the event. */
static inline bool gt_v1_has(const struct gt_format *f, enum gt_v1_type type)
{
    return gt_v1_events[type].since && gt_v1_events[type].since <= f->minor;
}

/* What is beside such a file: see v1/elf.h. */
#define GT_V1_ELF_SUFFIX ".elf"

/* Go 1.5: a sequence number on every event, no strings. */
static inline bool gt_v1_global_order(const struct gt_format *f)
{
    return f->minor < 7;
}

#endif
