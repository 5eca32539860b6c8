/* Modules as text: see gt_modules_describe. */
#ifndef GT_DESCRIBE_H
#define GT_DESCRIBE_H

#include "modules.h"

/* What such a text says but for the path, in *m; where in it that begins. NULL: it is none. */
const char *gt_modules_parse(const char *text, struct gt_module *m);

#endif
