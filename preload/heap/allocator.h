/*
 * Which allocator the program uses, and whether its calls come to us.
 *
 * - An allocator that is linked, or preloaded after us: its calls come to us by the order of symbol
 *   look-up.
 * - One preloaded before us: the loader has bound the calls of all modules to it. We take it over:
 *   the calls are bound to our hooks, which call the allocator.
 * - Where we were loaded late: only glibc's. How much another allocator has given out so far is not
 *   known.
 * - The executable's own, or a mixture of several: its calls inside the executable cannot be seen.
 *   Nothing is counted, since blocks from there are freed through us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the allocator, and sets gt_real's allocating functions to its own. false: not all calls
 * come to us. Once, from gt_heap_resolved.
 */
bool gt_allocator_find(void);

/* The allocator's malloc_usable_size. NULL: not found. */
size_t (*gt_allocator_usable(void))(void *);

/* Whether the allocator is glibc's. */
bool gt_allocator_is_libc(void);

/* Whether fn is a function of the allocator. false if no allocator was found. */
bool gt_allocator_has(const void *fn);

/* The function that the program would call by this name without us. NULL: none. */
void *gt_allocator_function(const char *name);

/*
 * Binds calls by these names, which an allocator preloaded before us defines, to our hooks. false:
 * not all calls.
 */
bool gt_allocator_take_over(const char *const *names, int n);
