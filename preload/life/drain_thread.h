/* The drain thread (encoder/drain/drain.h) as a thread in a program that must not notice it. */
#pragma once

#include <stdbool.h>

/* Notes the CPUs on which the process was started. Called in the constructor, before the program
 * can move its first thread. */
void gt_drain_thread_init(void);

/* Starts the drain thread, once in a process. false: the drain side works without one, and stderr
 * says why. */
bool gt_drain_thread_start(void);

/* From here on the drain thread does not call fstatfs(2) (seccomp.c). Any thread. */
void gt_drain_thread_forbid_fstatfs(void);

/* Whether the calling drain thread is the last thread of the process. */
bool gt_drain_thread_is_last(void);
