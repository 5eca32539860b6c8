/* What is wrong, in words: only where the numbers leave no doubt. */
#ifndef GT_WHY_FINDINGS_H
#define GT_WHY_FINDINGS_H

#include "survey.h"
#include "whatif.h"

#define GT_NO_TIME UINT64_MAX

struct gt_finding {
    const char *name;    /* "convoy": one of a fixed set, for programs */
    const char *command; /* "top --holders": what shows more */
    char *text;          /* a sentence or two */
    uint64_t at;         /* ns, where to look in the viewer, or GT_NO_TIME */
};

struct gt_findings {
    struct gt_finding *at; /* what matters most first */
    size_t n, room;
};

/* thread: at whose end the path begins. */
void gt_findings_find(struct gt_findings *all, struct gt_sections *sections, uint32_t thread,
                      const struct gt_path *path, const struct gt_survey *survey,
                      const struct gt_whatifs *whatifs);

#endif
