/*
 * The trace that a command writes, in any format: events of threads that are given one by one, as
 * v2 has them, go the way that those of a recording go, through the tables and the writers of the
 * formats (encoder/README.md). Times are in ns. One file at a time.
 */
#ifndef GT_WRITING_H
#define GT_WRITING_H

#include "placing.h"

#include "encoder/read/trace.h"

/* A trace that is read, whose texts and stacks are known by where they are; zeros to begin with. */
struct gt_writing_source {
    struct gt_memo strings, stacks;
    struct gt_memo texts; /* of the generation */
    uint32_t gen;
    struct gt_placing modules;
};

/* A thread's events. */
struct gt_lane;

/* Ends the program with a message if it fails, as all of these. from: no event is before that. */
void gt_writing_begin(const char *path, const struct gt_format *format, uint64_t from);

/* CPUs of the host on which that was recorded, for v1; and what the time of day was at ns 0. */
void gt_writing_set_host(uint64_t cpus, uint64_t wall_s, uint64_t wall_ns, uint64_t mono_ns);

/* Where all that is written now comes from, until the next call. */
void gt_writing_from(struct gt_writing_source *source);

/* What was known of it: it may go, and its texts and stacks with it. */
void gt_writing_forget(struct gt_writing_source *source);

/* Where that was recorded; NULL: that is not known. Before the first generation ends. */
void gt_writing_set_origin(const struct gt_origin *origin);

/* What is blamed where events contradict each other, as v1 cannot have them; NULL: nothing yet. */
void gt_writing_blame(const char *path);

/*
 * It is of a Go program: each event is later than those that were given before it, of any thread,
 * where the format has no other order.
 */
void gt_writing_of_go(void);

/* The thread of nobody, whose events come first in their generation. */
#define GT_WRITING_FIRST UINT32_MAX
struct gt_lane *gt_writing_lane(uint64_t thread);

/* An event; it becomes the time of the one before where that is later. Returns its time. */
uint64_t gt_writing_event(struct gt_lane *lane, enum gt_event_type type, uint64_t ts,
                          const uint64_t args[GT_EVENT_ARGS_MAX]);

/* What events of this generation may refer to; 0: none. */
uint64_t gt_writing_stack(const struct gt_callers *stack);
uint64_t gt_writing_string(const char *text); /* a reason or label: there are few */
uint64_t gt_writing_text(const char *text);   /* one of any number */

/* The same for what ended begins with: v1 tells it by the id that it had then. */
uint64_t gt_writing_text_again(uint64_t id, const char *text);

void gt_writing_sample(const struct gt_cpu_sample *sample, uint64_t ts);
void gt_writing_account(const struct gt_account_row *row);

/* What the tracer says of modules: goes with the stacks whose code is there. */
void gt_writing_module(const char *description);

/* What it says at the end. Must stay valid. */
void gt_writing_at_end(const char *text);

/* How much the generation has so far, in bytes. */
size_t gt_writing_size(void);

/* Writes the generation; events that follow are of the next, which begins at that time. */
void gt_writing_next(uint64_t ts);

/* Writes the last one, of a trace that ends then. whole: nothing is missing. */
void gt_writing_end(uint64_t ts, bool whole);

#endif
