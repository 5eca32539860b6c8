#include "export.h"
void gt_export_firefox(const struct gt_export *x)
{
    (void)x;
}
