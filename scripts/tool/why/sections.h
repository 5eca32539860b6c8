/*
 * What a stretch of a thread's time is summed by: what it does, from which place of the program,
 * holding which lock.
 */
#ifndef GT_WHY_SECTIONS_H
#define GT_WHY_SECTIONS_H

#include "graph.h"

struct gt_section {
    enum gt_kind kind;
    const char *what;                 /* the call or wait; NULL: it runs */
    const char *func, *file;          /* of the program's own; "": not known */
    uint64_t line;                    /* of a call; 0: not known */
    const struct gt_where *site;      /* the same, with the callers to be shown; or NULL */
    const struct gt_where *from, *to; /* running: the calls that it was first seen between */
    const char *from_what, *to_what;  /* what was called there, NULL: its thread's begin or end */
    uint32_t lock;                    /* that it held, or GT_NOBODY */
    bool sampled;                     /* func is known by CPU samples */
    bool woken;                       /* a delay in a run queue after a wait that was over */
};

struct gt_sections {
    const struct gt_graph *graph;
    struct gt_section *at;
    size_t n, room;
    struct gt_memo by_key, by_spot, by_sample;
    struct gt_memo wrappers; /* functions; see wrappers.h */
    uint32_t unknown;        /* of a thread of which nothing was recorded */
};

void gt_sections_begin(struct gt_sections *sections, const struct gt_graph *graph);

/* A part of a step that is all one section. */
struct gt_section_part {
    uint64_t from, to;
    uint32_t section;
};
typedef void gt_part_fn(void *arg, const struct gt_section_part *part);

/* Calls fn with the parts of what the thread did in [from, to) of that step, in order. */
void gt_sections_split(struct gt_sections *sections, uint32_t thread, const struct gt_step *step,
                       uint64_t from, uint64_t to, gt_part_fn *fn, void *arg);

/* What all of a step is that holds no lock. */
uint32_t gt_sections_of(struct gt_sections *sections, uint32_t thread, const struct gt_step *step);

/* A thread's own name, or that of its routine; a function's: as reports have them. */
struct gt_name {
    char text[1024];
};
struct gt_name gt_name_of_thread(const struct gt_graph *graph, uint32_t thread);
struct gt_name gt_name_of_function(const char *function);

/* "fsync <- append (journal.c:53), holding journal_lock"; valid until the next call. */
const char *gt_section_name(const struct gt_sections *sections, uint32_t section);

/* "calls", "runs", … */
const char *gt_section_verb(const struct gt_section *section);

#endif
