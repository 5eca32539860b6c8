/* See validity.h. */
#include "validity.h"

bool gt_validity_check(const struct gt_trace *trace, struct gt_fault *fault)
{
    *fault = (struct gt_fault){.stream = GT_NO_THREAD};
    return trace->format->v1 ? gt_validity_check_v1(trace, fault)
                             : gt_validity_check_v2(trace, fault);
}
