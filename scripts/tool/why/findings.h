/* Findings: faults put into words, only where the numbers leave no doubt. */
#pragma once

#include "survey.h"
#include "whatif.h"

#define GT_NO_TIME UINT64_MAX

struct gt_finding {
    const char *name;    /* "convoy": one of a fixed set, for programs that read JSON */
    const char *command; /* "top --holders": the command that shows more */
    char *text;          /* a sentence or two */
    uint64_t at;         /* ns, where to look in the viewer, or GT_NO_TIME */
    uint32_t lock;       /* the lock that it is about, or GT_NOBODY */
    double part;         /* the part of the path in which that lock is held; or 0 */
    uint32_t section;    /* where threads hold that lock most, poll, or wait; or GT_NOBODY */
};

struct gt_findings {
    struct gt_finding *at; /* what matters most first */
    size_t n;
};

/* Puts a finding at that place, before the one that stands there. */
void gt_findings_insert(struct gt_findings *all, size_t at, struct gt_finding it);

/* The next finding of that name after `last`, or the first one with NULL; NULL: there is none. */
const struct gt_finding *gt_findings_next(const struct gt_findings *all, const char *name,
                                          const struct gt_finding *last);

/* thread: the path was walked back from its end. */
void gt_findings_find(struct gt_findings *all, struct gt_sections *sections, uint32_t thread,
                      const struct gt_critical_path *path, const struct gt_survey *survey,
                      const struct gt_whatifs *whatifs);
