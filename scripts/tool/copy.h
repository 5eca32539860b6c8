/*
 * Makes files that commands read in place of others. A child process makes each one, so that its
 * memory, and what damaged files do to it, do not matter to the command.
 */
#pragma once

#include <stdbool.h>

/* Writes the copy to the file `output`, which exists and is empty. false: it printed an error. */
typedef bool gt_copy_fn(const void *of, const char *output);

/*
 * The path of the copy of the file `path`, which the first call makes. The copy has no other name,
 * and exists as long as this process runs. NULL: failed; a message with `otherwise` says why.
 */
const char *gt_copy_once(const char *path, const char *otherwise, gt_copy_fn *make, const void *of);
