/* Which ELF files a process has loaded, where, and where they can be read. */
#ifndef GT_LOADED_H
#define GT_LOADED_H

#include "still.h"

struct gt_loaded {
    uint64_t lo, hi, bias;
    uint64_t code, code_offset; /* an address of code, and where in the file that is */
    const char *name;           /* as the process calls it */
    const char *path;           /* where we read it; NULL: nowhere */
    uint8_t build_id[32], build_id_len;
};

/* All of them; *n: how many. */
struct gt_loaded *gt_loaded_find(const struct gt_still *still, size_t *n);

/* Tells symbolize/ of it. */
void gt_loaded_announce(const struct gt_loaded *m);

#endif
