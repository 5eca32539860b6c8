/* Inserts the stacks of a trace as rows, each frame once. */
#pragma once

#include "encoder/read/contents.h"

void gt_sql_add_stacks(const struct gt_contents *contents);
