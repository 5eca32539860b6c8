/* The names that Python's threading module gives the threads it makes, and what they execute. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GT_PYTHON_NAME = 64 };

/*
 * The name of the thread that the caller makes in pthread_create(3), and the address of the
 * function of Python that the thread will execute; 0: that is not known. thread: Python's state of
 * the caller. false: threading does not make that thread, or Python tells the kernel the name
 * itself, as from 3.14 on.
 */
bool gt_python_name_made(uintptr_t thread, char name[GT_PYTHON_NAME], uint64_t *routine);
