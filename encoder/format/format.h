/*
 * Go's trace formats as data: the versions, and the events of the two families (v2:
 * internal/trace/tracev2/events.go in the Go sources; v1: internal/trace/parser.go up to Go 1.22).
 * Events have upstream's names.
 *
 * Writers write v2 events for every version. v2 versions differ in the few things that struct
 * gt_format says; v1.c translates for v1 versions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What follows the end of a system call. The end carries no stack, and in their profiles the tools
 * of Go 1.22 to 1.25 end a wait only at an event with a stack.
 */
enum gt_after_call {
    GT_AFTER_CALL_NOTHING,    /* no such tool reads this version */
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
    bool snapshot;      /* a generation contains the time of day */
    bool end_marker;    /* a generation ends with an event of its own */
    uint8_t v1_marking; /* "mark termination" among the kinds of STWStart */
};

#define GT_HEADER_BYTES 16

/* Returns the row named `name`, or NULL. GT_FORMAT_DEFAULT is the default name. */
const struct gt_format *gt_format_find(const char *name);
/* The row of a file that begins with these GT_HEADER_BYTES, or NULL. */
const struct gt_format *gt_format_of_header(const void *header);
#define GT_FORMAT_DEFAULT "go1.23"

/* All names, for messages. */
const char *gt_format_names(void);

/*
 * The mark at the end of a file from which nothing is missing. In v2 it is a string that no event
 * uses. In v1, whose first version has no strings, it is the PC of a stack of one frame with the id
 * 0.
 */
#define GT_OWN "gotrace-" /* prefix of texts that only gotrace writes */
#define GT_WHOLE GT_OWN "whole"
#define GT_V1_WHOLE 0x656c6f6877u /* "whole" */

/*
 * The mark of a file that we have written from what a Go program recorded. In v2 it is a string of
 * each generation that no event uses, in v1 a number like GT_V1_WHOLE.
 */
#define GT_OF_GO GT_OWN "of-go"
#define GT_V1_OF_GO 0x6f67666fu /* "ofgo" */

/*
 * The mark of a file in which frames and some texts (symbolize/phrases.h) are addresses: the reader
 * of the trace looks up their names. It stands in the first generation, like GT_OF_GO.
 */
#define GT_LATER GT_OWN "later"
#define GT_V1_LATER 0x726574616cu /* "later" */

/*
 * The reason of a wait that the kernel has recorded and no hook has seen. v1 has no reasons: there
 * the event is a GoBlock, which we write for no other wait.
 */
#define GT_UNSEEN_TEXT "unseen"
#define GT_YIELDS_TEXT "runtime.Gosched, again and again" /* see yield.h */

/*
 * Ids of strings that the program gives. Lower ids are for all others (thread/texts.h,
 * thread/strings.h).
 */
#define GT_TEXT_FIRST (1ull << 32)

/* The version that is recorded. Before recording starts: a format without events, never NULL. */
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
    GT_REASON_GC,     /* while the world is stopped */
    GT_REASON_UNSEEN, /* off the CPU, outside of any call that we know */
    /* Not reasons: kinds of logs about locks (held.h). Their strings always exist, too. */
    GT_LOG_HELD_BY,
    GT_LOG_WAITS_FOR,
    GT_LOG_WAKES,
    GT_LOG_WAKES_ALL,
    GT_REASON_YIELDS, /* a reason; here, since the numbers before it are known to readers */
    GT_LOG_WAITS_AGAIN,
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

/* Whether version f has the event. */
static inline bool gt_v1_has(const struct gt_format *f, enum gt_v1_type type)
{
    return gt_v1_events[type].since && gt_v1_events[type].since <= f->minor;
}

/* Suffix of the ELF file beside a v1 trace: see file/v1/elf.h. */
#define GT_V1_ELF_SUFFIX ".elf"

/* Go 1.5: a sequence number on every event, no strings. */
static inline bool gt_v1_global_order(const struct gt_format *f)
{
    return f->minor < 7;
}
