/* Where in a trace most happens: what to look at first when it is too large to look at. */
#ifndef GT_BUSIEST_H
#define GT_BUSIEST_H

#include <stdbool.h>
#include <stdint.h>

#define GT_WHEREVER UINT64_MAX

/*
 * The part of a second, or less, with the most events, but not more than that; in ns since the
 * beginning. With a time, `at`, the part about that. false: all of the trace has not so many. Of a
 * file of 1 GiB and more only the density is looked at, here and there.
 */
bool gt_busiest(const char *path, uint64_t most, uint64_t at, uint64_t *from, uint64_t *to);

#endif
