/* What `gotrace why` found, and how it is shown. */
#ifndef GT_WHY_PAGE_H
#define GT_WHY_PAGE_H

#include "findings.h"
#include "tasks.h"

/*
 * Of a server, whose end nobody waits for: what lies between two waits of a thread for input, at
 * the place where it waits most.
 */
struct gt_pieces {
    uint64_t n, longest, longest_at;
    uint32_t threads;
};

struct gt_why {
    const char *task; /* that was asked for; NULL: the run */
    struct gt_graph graph;
    struct gt_sections sections;
    uint64_t from, to;
    uint32_t thread; /* at whose end the path begins */
    struct gt_path path;
    struct gt_pieces pieces; /* n 0: the path is the run's */
    struct gt_survey survey;
    struct gt_whatifs whatifs;
    struct gt_findings findings;
    struct gt_tasks tasks; /* with `task` */
};

/* All of it, of a graph that is read. Ends the program with a message where there is nothing. */
void gt_why_find(struct gt_why *why, uint64_t from, uint64_t to);

void gt_why_print(struct gt_why *why);
void gt_why_print_json(struct gt_why *why);

/* "fsync <- append (a.c:53) took half", valid until the next call. */
const char *gt_whatif_name(const struct gt_why *why, const struct gt_whatif *it);

/* Waits that the path does not go through, the longest first. */
struct gt_off_path {
    uint32_t section;
    uint64_t ns, threads;
};
size_t gt_why_off_path(struct gt_why *why, struct gt_off_path *out, size_t most);

#endif
