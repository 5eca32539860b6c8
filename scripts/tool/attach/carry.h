/* Makes the library readable for another process, which may be in a container with its own root. */
#pragma once

#include "scripts/tool/stacks/still.h"

#include <limits.h>

struct gt_carried {
    char path[PATH_MAX];   /* in the process's file system */
    int parent, directory; /* of a copy among its temporary files; -1: no copy */
};

/* Finds or copies the library. Ends the program with a message if no place can have a copy. */
void gt_carry(struct gt_carried *carried, const struct gt_still *still, const char *library);

/* Removes the copy, if any, when the library is loaded or loading has failed. */
void gt_carry_end(struct gt_carried *carried);
