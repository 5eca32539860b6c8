/*
 * Programs built with a sanitizer. Its run-time library stands between the program and libc as we
 * do, and its state comes and goes with threads at other moments than ours.
 */
#ifndef GT_SANITIZER_H
#define GT_SANITIZER_H

#include <stdbool.h>

/* Its allocator is not the program's, and is asked for a block's size before it is ready. */
bool gt_sanitizer_allocates(void);

/* ThreadSanitizer: what we call in a thread that ends (memcpy!) it takes, and crashes. */
bool gt_sanitizer_of_threads(void);

#endif
