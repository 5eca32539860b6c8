/* See omp_regions.h. */
#include "omp_regions.h"

#include "scripts/tool/report/call_places.h"

#include "encoder/base/path.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <string.h>

enum { LOOKS = 64 }; /* regions that are looked at: other masters may have made those between */

void gt_omp_note(struct gt_omp_regions *all, const struct gt_happening *h,
                 const struct gt_thread_state *thread, uint64_t ns)
{
    bool begins = h->type == GT_EV_USER_REGION_BEGIN;
    if ((!begins && h->type != GT_EV_USER_REGION_END) || strcmp(h->text, "omp parallel") != 0)
        return;
    if (begins && h->stack && h->stack->n) {
        *GT_ADD(all->at, all->n) = (struct gt_omp_region){
            .from = ns, .to = UINT64_MAX, .call = h->stack, .master = thread->number};
    }
    for (size_t i = all->n, looks = 0; !begins && i > 0 && looks < LOOKS; i--, looks++) {
        struct gt_omp_region *its = &all->at[i - 1];
        if (its->master != thread->number)
            continue;
        its->to = ns;
        break;
    }
}

bool gt_omp_is_start(const char *function)
{
    static const char *const begins[] = {"libgomp.so",   "libomp.so", "libiomp5.so",
                                         "gomp_thread_", "__kmp_",    NULL};
    return gt_begins_with(gt_path_name(function), begins); /* a merge: "a.out.4711/libgomp.so" */
}

bool gt_omp_is_worker(const struct gt_thread_state *thread)
{
    return gt_omp_is_start(thread->routine);
}

/* How many regions begin by `at`. */
static size_t begun_by(const struct gt_omp_regions *all, uint64_t at)
{
    return gt_count_up_to(all->at, all->n, sizeof *all->at, sizeof at, at);
}

/* The last region of that master that begins by `at`; or NULL. */
static const struct gt_omp_region *last_of(const struct gt_omp_regions *all, uint32_t master,
                                           uint64_t at)
{
    size_t end = begun_by(all, at);
    for (size_t i = end; i > 0 && end - i < LOOKS; i--) {
        if (all->at[i - 1].master == master)
            return &all->at[i - 1];
    }
    return NULL;
}

const struct gt_omp_region *gt_omp_region_at(const struct gt_omp_regions *all,
                                             const struct gt_thread_state *thread, uint64_t at)
{
    const struct gt_thread_state *maker = gt_omp_is_worker(thread) ? thread->maker : thread;
    const struct gt_omp_region *its = maker ? last_of(all, maker->number, at) : NULL;
    return its && at < its->to ? its : NULL;
}

uint64_t gt_omp_edge(const struct gt_omp_regions *all, const struct gt_thread_state *thread,
                     uint64_t from, uint64_t to)
{
    const struct gt_omp_region *last = last_of(all, thread->number, from);
    uint64_t edge = last && last->to > from && last->to < to ? last->to : to;
    for (size_t i = begun_by(all, from); i < all->n && all->at[i].from < edge; i++)
        edge = all->at[i].master == thread->number ? all->at[i].from : edge;
    return edge;
}

bool gt_omp_is_same(const struct gt_callers *call, const struct gt_callers *other)
{
    const struct gt_where *a = gt_omp_place(call), *b = gt_omp_place(other);
    return a->func == b->func && a->file == b->file && a->line == b->line;
}

const struct gt_where *gt_omp_place(const struct gt_callers *call)
{
    bool inside = strncmp(call->frame[0].func, "__kmp", 5) == 0; /* LLVM's tells it from there */
    return &call->frame[inside ? gt_site_index(call) : 0];
}
