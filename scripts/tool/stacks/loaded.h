/* The ELF files that a process has loaded: where in memory, and where they can be read. */
#pragma once

#include "still.h"

struct gt_loaded {
    uint64_t lo, hi, bias;
    uint64_t code, code_offset; /* an address of code, and its offset in the file */
    const char *name;           /* the path that the process has for it */
    const char *path;           /* the path where it can be read; NULL: nowhere */
    uint8_t build_id[32], build_id_len;
};

/* All loaded files. *n: their number. */
struct gt_loaded *gt_loaded_find(const struct gt_still *still, size_t *n);

/* Makes the file known to symbolize/. */
void gt_loaded_announce(const struct gt_loaded *m);
