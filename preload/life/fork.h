/*
 * Forks: the locks that are taken around a fork, and how a child notices that it is one.
 * preload/top/inherit.c lists the state that the child resets.
 */
#pragma once

#include <stdint.h>

/* Begins to watch for forks; called in the constructor. */
void gt_fork_watch(void);

/*
 * Called around a call that makes a process behind libc's back; gt_fork_end in parent and child.
 * gt_fork_begin waits up to one second until no thread is in code of ours that holds locks of the
 * loader. It keeps threads out of that code until gt_fork_end, which takes the value that
 * gt_fork_begin returned. errno may change. Within another fork of the calling thread, as in a
 * handler of pthread_atfork that calls clone(2), neither does anything.
 */
unsigned gt_fork_begin(void);
void gt_fork_end(unsigned held);

/*
 * Releases what gt_fork_begin holds; used instead of gt_fork_end in a child whose stack may be
 * tiny. gt_fork_check does the rest of gt_fork_end's work later.
 */
void gt_fork_give_back(unsigned held);

/* The clock counter from before the fork that is under way in the calling thread, also in the child
 * that the fork made; 0 if there is none. */
uint64_t gt_fork_began(void);

/*
 * Turns the calling process into a child in the trace if clone(2) or _Fork made it behind libc's
 * back. A child that shares our memory is no fork.
 */
void gt_fork_check(void);
