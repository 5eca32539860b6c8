/* Times as people read them. */
#ifndef GT_DURATION_H
#define GT_DURATION_H

#include <stdint.h>

/* "1.234s", "56.70ms", "890.1us" or "12ns"; valid for eight calls. */
const char *gt_duration(uint64_t ns);

#endif
