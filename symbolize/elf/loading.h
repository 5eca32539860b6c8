/* The parts of elfutils.h that the process needs: when elfutils must not be loaded, and how we jump
 * out of its libraries when they fail. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>

/*
 * libc's own longjmp, a pointer that preload/ sets. Our hook of longjmp would take our own jump, in
 * a thread of the program, for a jump out of our code.
 */
extern void (*gt_symbolize_jump)(jmp_buf env, int value);

/* Forbids loading from now on: the dying process may hold the lock of malloc or the loader. */
void gt_symbolize_freeze(void);

/*
 * Called around a fork; gt_symbolize_fork_end in parent and child. gt_symbolize_fork_begin waits
 * until no thread is loading elfutils: such a thread holds locks of the loader, which would stay
 * locked in the child. false: that took longer than a second; then the caller must not call
 * gt_symbolize_fork_end. Any thread.
 */
bool gt_symbolize_fork_begin(void);
void gt_symbolize_fork_end(void);
