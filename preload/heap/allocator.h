/*
 * Whose malloc the program uses, and whether its calls come to us.
 *
 *  - An allocator that is linked, or preloaded after us: by the order of symbol look-up they do.
 *  - One preloaded before us: the loader has bound the calls of all modules to it. It is taken
 *    over: they are bound to our hooks, which call it.
 *  - Where we were loaded late, glibc's: of others it is not known how much they had given out.
 *  - The executable's own, or a mixture of several: its calls of itself cannot be seen. Nothing is
 *    counted, since blocks that come from there go back through us.
 */
#ifndef GT_ALLOCATOR_H
#define GT_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds it, and sees to it that gt_real's allocating functions are its own. false: what comes to
 * us is not all there is. Once, from gt_heap_resolve_end.
 */
bool gt_allocator_find(void);

/* Its malloc_usable_size. NULL: not found. */
size_t (*gt_allocator_usable(void))(void *);

/* It is glibc's. */
bool gt_allocator_is_libc(void);

/* Whether fn is a function of its. False when it was not found. */
bool gt_allocator_has(const void *fn);

/* What the program would call by this name without us. NULL: nothing. */
void *gt_allocator_function(const char *name);

/* One preloaded before us loses its calls by these names, which it has, to us. false: not all. */
bool gt_allocator_take_over(const char *const *names, int n);

#endif
