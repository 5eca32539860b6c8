/*
 * Which thread holds a lock of Python's that is a semaphore, as up to 3.12: the thread that took it
 * last in Python's code, and has not released it. That is inferred: Python's condition variables
 * and queues have a lock released by another thread than its taker. A semaphore with which that has
 * happened has no holder any more. Any context.
 */
#pragma once

#include <stdint.h>

/* Thread tid has taken the semaphore in Python's code, or is about to post to it there. */
void gt_py_taker_takes(const void *sem, uint32_t tid);
void gt_py_taker_posts(const void *sem, uint32_t tid);

/* The thread that holds it; 0: no thread, or not known. */
uint32_t gt_py_taker_of(const void *sem);

/* A semaphore begins at the address. */
void gt_py_taker_begins(const void *sem);
