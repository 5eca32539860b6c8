#include "export.h"
void gt_export_chrome(const struct gt_export *x)
{
    (void)x;
}
