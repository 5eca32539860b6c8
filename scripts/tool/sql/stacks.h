/* The stacks of a trace as rows: each frame once. */
#ifndef GT_SQL_STACKS_H
#define GT_SQL_STACKS_H

#include "encoder/read/contents.h"

void gt_sql_add_stacks(const struct gt_contents *contents);

#endif
