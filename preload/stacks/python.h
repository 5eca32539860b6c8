/*
 * Stacks of threads that run Python: where the interpreter's own function is in one, the functions
 * of Python that it executes stand there. Read from memory, as the interpreter of that version
 * keeps it, by the thread itself or while it stands still in a hook.
 */
#ifndef GT_STACKS_PYTHON_H
#define GT_STACKS_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* There is a Python of a version that is known. */
extern _Atomic bool gt_python_runs;

/*
 * It is in a library that is not the program's for good: dlopen(3) has loaded it, dlclose(3) may
 * unload it. Then nothing of it may be called but for a thread that has a function of it on its
 * stack: that one keeps it.
 */
extern _Atomic bool gt_python_may_go;

/* Looks for it in all that is loaded: by one thread, or with the loader's lock. */
void gt_python_init(void);

/* Looks for it in the module that has that code, which calls. Not in signal handlers. */
void gt_python_meet(const void *code);

/*
 * Around an unloading of code; and where that is not seen from now on: until gt_python_init. Waits
 * for who looks at other threads' frames, 1 s at most.
 */
void gt_python_hold(void);
void gt_python_go_on(void);

/* Whether a thread may call it: which has these return addresses on its stack, if it may go. */
bool gt_python_has(const uint64_t *pcs, uint32_t n);

/* What Python knows the calling thread by, which may call it; 0: it does not. Any context. */
uintptr_t gt_python_thread(void);

/*
 * The stack of that thread, which calls, n return addresses, as `pcs`, of frames that begin at sp[0
 * … n-1]: into `to`, at most `max`. Where something is not as it has to be, the interpreter's own
 * frames stay. Returns how many. Any context; errno may change. _other: of another one, which
 * stands still in a hook.
 */
uint32_t gt_python_merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                         uint64_t *to, uint32_t max);
uint32_t gt_python_merge_other(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp,
                               uint32_t n, uint64_t *to, uint32_t max);

/* In a forked child. */
void gt_python_after_fork(void);

#endif
