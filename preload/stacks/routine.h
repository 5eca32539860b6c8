/* What a new thread will run, behind the trampolines of language runtimes. */
#pragma once

/* Returns `start`, or for std::thread the callable that `start` will call. */
const void *gt_routine_of(void *(*start)(void *), void *arg);
