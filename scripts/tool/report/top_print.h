/* `gotrace top`: rows of waits or of samples. */
#ifndef GT_TOP_PRINT_H
#define GT_TOP_PRINT_H

#include "top_rows.h"

/* All that there is to say of them, summed up. */
void gt_top_print(struct gt_top *top);

#endif
