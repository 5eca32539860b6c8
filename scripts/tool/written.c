/* See written.h. */
#include "written.h"

#include "tool.h"

#include "encoder/read/validity.h"

#include <stdio.h>
#include <sys/mman.h>

/* A file that is no trace is none that Go refuses. cut: nor is one that only ends too early. */
static bool is_refused(const char *path, bool cut, char text[static GT_FAULT_TEXT])
{
    struct gt_trace trace;
    struct gt_fault fault;
    if (gt_trace_open(&trace, path))
        return false;
    bool refused = !gt_validity_check(&trace, &fault) && !(cut && fault.cut);
    if (refused)
        gt_fault_text(&trace, &fault, text);
    munmap((void *)(uintptr_t)trace.base, trace.size);
    return refused;
}

/* Whether the fault was there before: then it is said of that file. */
static void blame_inputs(const char *name, char *const *inputs, size_t n)
{
    char text[GT_FAULT_TEXT];
    for (size_t i = 0; i < n; i++) {
        if (is_refused(inputs[i], true, text))
            gt_fail(GT_EXIT_FAILED, "%s: not written: Go's reader refuses %s: %s", name, inputs[i],
                    text);
    }
}

void gt_written_check(const char *path, const char *name, char *const *inputs, size_t n)
{
    char text[GT_FAULT_TEXT], aside[PATH_MAX];
    if (!is_refused(path, false, text))
        return;
    blame_inputs(name, inputs, n);
    snprintf(aside, sizeof aside, "%s.refused", name);
    gt_fail(GT_EXIT_FAILED,
            "%s: a fault of gotrace's, please report it: Go's reader would refuse this trace: %s; "
            "it is %s %s",
            name, text, rename(path, aside) == 0 ? "in" : "not in", aside);
}
