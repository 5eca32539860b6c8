/* See written.h. */
#include "written.h"

#include "tool.h"

#include "encoder/read/validity.h"

#include <stdio.h>
#include <sys/mman.h>

enum verdict { TAKEN, CUT, REFUSED };

/* Reads the trace. A file that is no trace is not judged: TAKEN. */
static enum verdict judge(const char *path, char text[static GT_FAULT_TEXT])
{
    struct gt_trace trace;
    struct gt_fault fault;
    if (gt_trace_open(&trace, path))
        return TAKEN;
    bool taken = gt_validity_check(&trace, &fault);
    if (!taken)
        gt_fault_text(&trace, &fault, text);
    munmap((void *)(uintptr_t)trace.base, trace.size);
    return taken ? TAKEN : fault.cut ? CUT : REFUSED;
}

/*
 * Whether the fault comes from the inputs: a trace made of a cut trace may be cut, too. Ends the
 * program with a message if Go refuses an input.
 */
static bool comes_from(enum verdict its, const char *name, char *const *inputs, size_t n)
{
    char text[GT_FAULT_TEXT];
    bool cut = false;
    for (size_t i = 0; i < n; i++) {
        enum verdict verdict = judge(inputs[i], text);
        cut |= verdict == CUT;
        if (verdict == REFUSED)
            gt_fail(GT_EXIT_FAILED, "%s: not written: Go's reader refuses %s: %s", name, inputs[i],
                    text);
    }
    return its == CUT && cut;
}

void gt_written_check(const char *path, const char *name, char *const *inputs, size_t n)
{
    char text[GT_FAULT_TEXT], aside[PATH_MAX];
    enum verdict its = judge(path, text);
    if (its == TAKEN || comes_from(its, name, inputs, n))
        return;
    snprintf(aside, sizeof aside, "%s.refused", name);
    gt_fail(GT_EXIT_FAILED,
            "%s: not written: Go's reader would refuse this trace: %s; it is %s %s. An input is "
            "damaged, or gotrace has a fault: please report it",
            name, text, rename(path, aside) == 0 ? "in" : "not in", aside);
}
