/* See off_path.h. */
#include "off_path.h"

bool gt_off_path_is_sleep(const struct gt_survey *survey, const struct gt_sections *sections,
                          uint32_t section)
{
    bool woken = false;
    for (uint32_t i = 0; i < sections->graph->spots; i++)
        woken |= survey->place[i].section == section && survey->place[i].woken;
    return sections->at[section].kind == GT_SLEEP && !woken;
}

static bool uses_locks(const struct gt_program *program, const struct gt_survey *survey)
{
    bool used = false;
    for (uint32_t i = 0; i < program->sections->graph->locks; i++)
        used |= survey->lock[i].count || program->slots[i];
    return used;
}

static bool goes_on_until_stopped(const struct gt_graph *graph)
{
    bool stopped = false;
    for (uint32_t i = 0; i < graph->lanes; i++)
        stopped |= graph->lane[i].stopped;
    return stopped;
}

/* Whether the thread would do that as often in any run. A thread that sleeps again may poll. */
static bool is_its_own(const struct gt_section *section, const struct gt_path_row *row)
{
    return (section->kind == GT_RUNNING && !section->spins) ||
           (section->kind == GT_SLEEP && row->count <= row->threads);
}

bool gt_off_path_is_known(const struct gt_program *program, const struct gt_critical_path *path,
                          const struct gt_survey *survey)
{
    enum { LEAST_PERCENT = 95 }; /* of the path */
    const struct gt_graph *graph = program->sections->graph;
    uint64_t ns = 0;
    for (size_t i = 0; i < path->n; i++) {
        bool own = is_its_own(&program->sections->at[path->row[i].section], &path->row[i]);
        ns += own ? path->row[i].ns : 0;
    }
    return ns * 100 >= path->ns * LEAST_PERCENT && !graph->inferred && !graph->unasked &&
           !uses_locks(program, survey) && !goes_on_until_stopped(graph);
}
