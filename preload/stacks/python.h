/*
 * Stacks of threads that run Python: where the interpreter's own function is in one, the functions
 * of Python that it executes stand there. Read from memory, as the interpreter of that version
 * keeps it, by the thread itself or while it stands still in a hook.
 */
#ifndef GT_STACKS_PYTHON_H
#define GT_STACKS_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

/* Once, in the constructor: whether the program is a Python of a version that is known. */
void gt_python_init(void);

extern bool gt_python_runs;

/* What Python knows the calling thread by; 0: it does not, or there is no Python. Any context. */
uintptr_t gt_python_thread_slow(void);

static inline uintptr_t gt_python_thread(void)
{
    return __builtin_expect(gt_python_runs, 0) ? gt_python_thread_slow() : 0;
}

/*
 * The stack of that thread, n return addresses, as `pcs`, of frames that begin at sp[0 … n-1]: into
 * `to`, at most `max`. Where something is not as it has to be, the interpreter's own frames stay.
 * Returns how many. Any context; errno may change.
 */
uint32_t gt_python_merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                         uint64_t *to, uint32_t max);

#endif
