/* See why_findings.h. */
#include "why_findings.h"
void gt_findings_find(struct gt_findings *all, struct gt_sections *sections,
                      const struct gt_path *path, const struct gt_survey *survey,
                      const struct gt_whatifs *whatifs)
{
    (void)sections, (void)path, (void)survey, (void)whatifs;
    *all = (struct gt_findings){0};
}
