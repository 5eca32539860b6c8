/*
 * Sections: the keys that a thread's time is summed by. A section is what the thread does, at which
 * place of the program, holding which lock.
 */
#pragma once

#include "graph.h"

struct gt_section {
    enum gt_kind kind;
    const char *what;                /* the call or wait; NULL: the thread runs */
    const char *func, *file;         /* the program's own function; "": not known */
    uint64_t line, line_to;          /* of a call; running: of the calls before and after; or 0 */
    const struct gt_where *site;     /* func, file and line with the callers to show; or NULL */
    const char *from_what, *to_what; /* running: calls before and after; NULL: begin or end */
    uint32_t lock;                   /* the lock that was held, or GT_NOBODY */
    bool sampled;                    /* func comes from CPU samples */
    bool woken;                      /* a run-queue delay after a wake-up */
    bool starts;                     /* and that is the thread's first: what is its routine */
    bool loops;                      /* running: in a loop of the function or of a caller */
    bool spins;                      /* running: waits there for another thread, on a CPU */
    bool mixed;                      /* calls before and after differ: the names are of the first */
    bool ending;                     /* a wait for a child that has no event any more */
    bool rest;                       /* a thread comes back there to wait for input: no cause */
};

struct gt_sections {
    const struct gt_graph *graph;
    struct gt_section *at;
    size_t n;
    struct gt_memo by_key, by_spot, by_sample;
    struct gt_memo wrappers; /* functions that only wrap a call: see wrappers.h */
    bool asks;               /* the program connects to others: it waits for their answers */
    uint32_t unknown;        /* the section for time of which nothing was recorded */
};

void gt_sections_begin(struct gt_sections *sections, const struct gt_graph *graph);

/* A part of a step that belongs to one section. */
struct gt_section_part {
    uint64_t from, to;
    uint32_t section;
};
typedef void gt_part_fn(void *arg, const struct gt_section_part *part);

/*
 * Splits what the thread did in [from, to) of the step into parts, and calls fn with each in order.
 */
void gt_sections_split(struct gt_sections *sections, uint32_t thread,
                       const struct gt_lane_step *step, uint64_t from, uint64_t to, gt_part_fn *fn,
                       void *arg);

/* The section of a whole step, as if no lock were held. */
uint32_t gt_sections_of(struct gt_sections *sections, uint32_t thread,
                        const struct gt_lane_step *step);

/* Names as reports show them: a thread's own name, or else its routine's; and a function's. */
struct gt_name {
    char text[1024];
};
struct gt_name gt_name_of_thread(const struct gt_graph *graph, uint32_t thread);
/* The thread's name, with its id before it where others have that name, too: "4711 (worker)". */
struct gt_name gt_name_of_one(const struct gt_graph *graph, uint32_t thread);
struct gt_name gt_name_of_function(const char *function);

/* Whether both are the same call or stretch of code, under the same lock, whatever kind they are.
 */
bool gt_section_is_at(const struct gt_section *a, const struct gt_section *b);

/*
 * The section for the time in which a thread would have run there, and had no CPU; or the section
 * itself. What takes half as long on a CPU also waits half as long for one.
 */
uint32_t gt_section_delay_of(const struct gt_sections *sections, uint32_t section);

/* Whether it is a call that waits for the end of a child process, or for a signal. */
bool gt_section_waits_for_child(const struct gt_section *section);
bool gt_section_waits_for_signal(const struct gt_section *section);

/* Whether it is a call that reads, or waits until something can be read. */
bool gt_section_reads(const struct gt_section *section);

/* Whether it is a call that writes: it may wait until a reader has made room. */
bool gt_section_writes(const struct gt_section *section);

/* Whether it is a sched_yield: the thread lets others run. */
bool gt_section_yields(const struct gt_section *section);

/* "fsync <- append (journal.c:53), holding journal_lock"; valid until the next call. */
const char *gt_section_name(const struct gt_sections *sections, uint32_t section);

/* "calls", "runs", … */
const char *gt_section_verb(const struct gt_section *section);
