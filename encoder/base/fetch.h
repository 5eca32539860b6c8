/*
 * Prefetches memory that the caller needs soon, while the caller does something else. A thread
 * among thousands that has slept finds nothing of its memory in the cache. For each line it waits
 * as long as some hundred instructions take.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GT_CACHE_LINE = 64 };

/*
 * Does nothing for NULL. An unreadable address does no harm, but each time costs the search for its
 * page: hundreds of cycles in a virtual machine.
 */
static inline void gt_fetch(const void *at, size_t bytes)
{
    uintptr_t line = (uintptr_t)at & ~(uintptr_t)(GT_CACHE_LINE - 1), end = (uintptr_t)at + bytes;
    for (; at && line < end; line += GT_CACHE_LINE)
        __builtin_prefetch((const void *)line, 1);
}
