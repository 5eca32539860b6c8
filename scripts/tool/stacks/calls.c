/* See calls.h. */
#include "calls.h"

#include "encoder/base/libc.h"

#include <string.h>

static const struct gt_call_row rows[] = {
#define GT_ROW(name, class, timeout, interrupted) \
    {SYS_##name, #name, GT_CALL_##class, timeout, interrupted},
#include "calls.def"
#undef GT_ROW
};

enum { ROWS = sizeof rows / sizeof *rows };

const struct gt_call_row *gt_call_row(long number)
{
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].number == number)
            return &rows[i];
    }
    return NULL;
}

const struct gt_call_row *gt_call_named(const char *name)
{
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}
