/*
 * Writes the trace of a command, in any format. Callers give events of threads one by one, as v2
 * has them; the events take the way of a recording's events, through the tables and the formats'
 * writers (encoder/README.md). Times are in ns. One file at a time.
 */
#pragma once

#include "placing.h"

#include "encoder/read/trace.h"

/* A trace that is read, whose texts and stacks are known by their addresses. Starts as zeros. */
struct gt_writing_source {
    struct gt_memo strings, stacks;
    struct gt_memo texts; /* those of generation `gen` */
    uint32_t gen;
    struct gt_placing modules;
};

/* The events of one thread. */
struct gt_writing_lane;

/*
 * Begins the file; no event is before `from`. A failure of this function, as of all that follow,
 * ends the program with a message.
 */
void gt_writing_begin(const char *path, const struct gt_format *format, uint64_t from);

/* Sets the number of CPUs of the recording's host, for v1, and the time of day at ns 0. */
void gt_writing_set_host(uint64_t cpus, uint64_t wall_s, uint64_t wall_ns, uint64_t mono_ns);

/* Texts and stacks come from that source until the next call. */
void gt_writing_from(struct gt_writing_source *source);

/* Forgets what is known of the source: its texts and stacks may be freed. */
void gt_writing_forget(struct gt_writing_source *source);

/* Sets the origin of the recording; NULL, and without a call: not known. Before the first
 * generation ends. */
void gt_writing_set_origin(const struct gt_origin *origin);

/* Sets the setup of the recording (setup.h); NULL: not known. Before the first generation ends. */
void gt_writing_set_setup(const char *setup);

/* Sets the file named in the message if events contradict each other; NULL: none yet. */
void gt_writing_blame(const char *path);

/* An event contradicts others, and is left out or mended: it is counted for that message. */
void gt_writing_mend(void);

/*
 * The trace is of a Go program. In v1 each event gets a later time than all events of other threads
 * given before it, as v1 has no other order.
 */
void gt_writing_of_go(void);

/* The thread for events of no thread, which come first in their generation. */
#define GT_WRITING_FIRST UINT32_MAX
struct gt_writing_lane *gt_writing_lane(uint64_t thread);

/* Adds an event, no earlier than the thread's last one. Returns the event's time. */
uint64_t gt_writing_event(struct gt_writing_lane *lane, enum gt_event_type type, uint64_t ts,
                          const uint64_t args[GT_EVENT_ARGS_MAX]);

/* Ids for events of this generation; 0: no stack or text. */
uint64_t gt_writing_stack(const struct gt_callers *stack);
uint64_t gt_writing_string(const char *text); /* a reason or label: there are few */
uint64_t gt_writing_text(const char *text);   /* any other text */

/* The id for a region's end, whose begin had `id`: v1 ends a region by that id. */
uint64_t gt_writing_text_again(uint64_t id, const char *text);

void gt_writing_sample(const struct gt_cpu_sample *sample, uint64_t ts);
void gt_writing_account(const struct gt_account_row *row);

/* A module's description by the tracer; it is written with stacks whose code is in the module. */
void gt_writing_module(const char *description);

/* A text for the trace's end. Must stay valid. */
void gt_writing_at_end(const char *text);

/* The size of the generation so far, in bytes. */
size_t gt_writing_size(void);

/* Writes the generation; events that follow are of the next one, which begins at ts. */
void gt_writing_next(uint64_t ts);

/* Writes the last generation; the trace ends at ts. whole: the trace is complete. */
void gt_writing_end(uint64_t ts, bool whole);
