/*
 * Stacks of threads that run Python. In them the functions of Python stand in place of the
 * interpreter's own function, which executes them. They are read from memory, as the interpreter of
 * that version keeps them. The thread reads them itself, or another thread does while it stands
 * still in a hook.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* There is a Python of a known version. */
extern _Atomic bool gt_python_runs;

/*
 * Python is in a library that dlopen(3) has loaded and dlclose(3) may unload. Then its functions
 * may be called only for a thread that has one of them on its stack: such a thread keeps the
 * library loaded.
 */
extern _Atomic bool gt_python_may_go;

/* Looks for Python in all modules. Called while there is one thread, or with the loader's lock. */
void gt_python_init(void);

/* Looks for Python in the module that `code`, our caller, is in. Not in signal handlers. */
void gt_python_meet(const void *code);

/*
 * Around an unloading of code. gt_python_hold alone where unloadings are not seen from now on,
 * until gt_python_init. It waits for threads that look at other threads' frames, 1 s at most.
 */
void gt_python_hold(void);
void gt_python_go_on(void);

/*
 * Whether Python may be called for a thread with these return addresses on its stack: always,
 * unless Python may be unloaded.
 */
bool gt_python_has(const uint64_t *pcs, uint32_t n);

/* Whether the code at pc is in the module that has the interpreter. */
bool gt_python_is_code(const void *pc);

/*
 * Python's state of the calling thread; 0: Python does not know the thread. Only if gt_python_has
 * allows the call. Any context.
 */
uintptr_t gt_python_thread(void);

/*
 * Puts the functions of Python into the stack of the calling thread, Python's `thread`. pcs: n
 * return addresses, of frames that begin at sp[0 … n-1]. to: the result, at most `max`. Where the
 * interpreter's data are not as they have to be, its own frames stay. Returns how many. Any
 * context; errno may change.
 *
 * gt_python_merge_other: for another thread, which stands still in a hook.
 */
uint32_t gt_python_merge(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp, uint32_t n,
                         uint64_t *to, uint32_t max);
uint32_t gt_python_merge_other(uintptr_t thread, const uint64_t *pcs, const uintptr_t *sp,
                               uint32_t n, uint64_t *to, uint32_t max);

/*
 * What takes a lock: a function of Python if pc is in its interpreter, which takes locks for that
 * function; else pc. This only reads where the function's code is, which costs 0.05 us. Any
 * context.
 */
const void *gt_python_taker(const void *pc);

/*
 * The function of Python that leaves a `with` block by what the caller does in the interpreter: as
 * gt_python_taker; NULL: there is none, or it is not known. threading.Condition's own function for
 * that counts as a part of the block. Any context.
 */
const void *gt_python_leaver(void);

/*
 * The return address that stands for a taker, or for a pc in its place, in stacks. pcs: n of these,
 * of where that thread, the caller, gives the lock up. There the program's function is looked for
 * if all that is known is a function of the interpreter or of Python's library, which take locks
 * for the program. 0: the function is gone.
 */
uint64_t gt_python_taker_pc(uint64_t taker, const uint64_t *pcs, uint32_t n);

/*
 * Calls fn with the address of the byte of each lock, from Python 3.13 on, of which another thread,
 * which stands still in a hook, executes a `with` block; and with other addresses. thread: Python's
 * state of it.
 */
void gt_python_each_block(uintptr_t thread, void (*fn)(void *arg, uintptr_t lock), void *arg);

/* In a forked child. */
void gt_python_after_fork(void);
