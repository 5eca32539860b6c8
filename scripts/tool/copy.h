/*
 * Files that commands read in place of others. A child makes each: what it comes to know, and what
 * damaged files do to it, stays there.
 */
#ifndef GT_COPY_H
#define GT_COPY_H

#include <stdbool.h>

/* Writes it to the file `output`, which is there and empty. false: why not was said. */
typedef bool gt_copy_fn(const void *of, const char *output);

/*
 * A path to that in place of the file `path`, made the first time; it has no other name, and is
 * there for as long as we run. NULL: it could not be made, and why was said, after `otherwise`.
 */
const char *gt_copy_once(const char *path, const char *otherwise, gt_copy_fn *make, const void *of);

#endif
