/* The library, where another process finds it: in a container it may have another root. */
#ifndef GT_CARRY_H
#define GT_CARRY_H

#include "scripts/tool/stacks/still.h"

#include <limits.h>

struct gt_carried {
    char path[PATH_MAX];   /* as the process calls it */
    int parent, directory; /* of a copy in its temporary files; -1: there is none */
};

/* Ends with a message when there is no place for it. */
void gt_carry(struct gt_carried *carried, const struct gt_still *still, const char *library);

/* It is loaded, or will not be: a copy goes. */
void gt_carry_end(struct gt_carried *carried);

#endif
