/* See hand_overs.h. */
#include "hand_overs.h"

#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

/* Whether threads that were woken from a wait for another thread have no CPU there yet. */
static bool is_hand_over(const struct gt_section *s)
{
    static const char *const locks[] = {"pthread_", "mtx_", "cnd_", "sem_", "futex", NULL};
    return s->kind == GT_SCHED && s->woken && s->what && gt_role_of(s->what) != GT_ROLE_JOIN &&
           gt_begins_with(s->what, locks);
}

struct gt_hand_overs gt_hand_overs_on(const struct gt_critical_path *path,
                                      const struct gt_sections *all)
{
    struct gt_hand_overs found = {.section = GT_NOBODY};
    for (size_t i = 0; i < path->n; i++) {
        const struct gt_path_row *row = &path->row[i];
        const struct gt_section *s = &all->at[row->section];
        if (is_hand_over(s)) {
            found.longest_at = found.section == GT_NOBODY ? row->longest_at : found.longest_at;
            found.section = found.section == GT_NOBODY ? row->section : found.section;
            enum gt_role role = gt_role_of(s->what);
            bool gives = role == GT_ROLE_CONDITION || role == GT_ROLE_SEMAPHORE;
            found.given += gives ? row->count : 0;
            found.n += row->count;
            found.ns += row->ns;
        } else if (s->kind == GT_RUNNING) {
            found.work += row->ns;
        } else if (s->kind != GT_SCHED && s->kind != GT_SYNC) {
            found.elsewhere += row->ns;
        }
    }
    return found;
}
