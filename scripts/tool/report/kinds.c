/* See kinds.h. */
#include "kinds.h"

#include "scripts/tool/tool.h"

#include "encoder/read/threads.h"

#include <string.h>

unsigned gt_read_kinds(const char *command, char *text)
{
    unsigned kinds = 0;
    for (char *save, *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        unsigned before = kinds;
        for (int k = GT_SCHED; k < GT_KINDS; k++) {
            if (strcmp(word, gt_kind_names[k]) == 0 || strcmp(word, "all") == 0)
                kinds |= 1u << k;
        }
        if (strcmp(word, "cpu") == 0)
            kinds |= GT_KINDS_CPU;
        if (kinds == before)
            gt_fail(GT_EXIT_USAGE,
                    "%s: --kind=%s: must be sync, network, syscall, sched, sleep, "
                    "other, unseen or all; or cpu",
                    command, word);
    }
    if (!kinds)
        gt_fail(GT_EXIT_USAGE, "%s: --kind= names no kind: --kind=all has every one", command);
    if ((kinds & GT_KINDS_CPU) && kinds != GT_KINDS_CPU)
        gt_fail(GT_EXIT_USAGE, "%s: --kind=cpu goes with no other kind", command);
    return kinds;
}
