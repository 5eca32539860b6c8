/* What a new thread will run, behind the trampolines of language runtimes. */
#pragma once

/* Called by gt_capture_init, while no other thread unloads a module. */
void gt_routine_init(void);

/* Returns `start`, or for std::thread the callable that `start` will call. */
const void *gt_routine_of(void *(*start)(void *), void *arg);
