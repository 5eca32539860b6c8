/* `gotrace why --json`: see why_page.h. */
#include "why_page.h"
void gt_why_print_json(struct gt_why *why)
{
    (void)why;
}
