/*
 * Programs built with a sanitizer. Its run-time library stands between the program and libc, as we
 * do. Its state of a thread begins and ends at other moments than ours.
 */
#pragma once

#include <stdbool.h>

/*
 * Whether the sanitizer has an allocator. It is not the program's, and must not be asked for a
 * block's size before it is ready.
 */
bool gt_sanitizer_allocates(void);

/*
 * Whether it is ThreadSanitizer, which intercepts our calls in a thread that ends (memcpy!), and
 * crashes.
 */
bool gt_sanitizer_of_threads(void);
