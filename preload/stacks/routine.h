/* What a new thread will really run, behind the trampolines of language runtimes. */
#ifndef GT_ROUTINE_H
#define GT_ROUTINE_H

/* `start`, or for std::thread of libstdc++ the callable that its routine will call. */
const void *gt_routine_of(void *(*start)(void *), void *arg);

#endif
