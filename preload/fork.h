/* Forks: what is held off meanwhile, how a child knows, and what it has of its parent's: fork.c. */
#ifndef GT_FORK_H
#define GT_FORK_H

#include <stdint.h>

/* In the constructor. */
void gt_fork_watch(void);

/*
 * Around what makes a process behind libc's back, in parent and child: nobody of us is in the
 * middle of what holds locks of the loader's, if that takes no longer than a second. What the first
 * returns is for the other. errno may change.
 */
unsigned gt_fork_begin(void);
void gt_fork_end(unsigned held);

/*
 * Instead of the latter, in a child whose stack may be tiny: what was held is given back, the rest
 * is for gt_fork_check.
 */
void gt_fork_give_back(unsigned held);

/* In a child that such a fork has made, until that is over: the counter before. 0: not such a one.
 */
uint64_t gt_fork_began(void);

/*
 * The caller may have been forked behind libc's back, by clone(2) or _Fork: then what a forked
 * child does is done. A child that shares our memory is none.
 */
void gt_fork_check(void);

#endif
