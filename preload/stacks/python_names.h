/* What Python's threading module calls the threads that it makes. */
#ifndef GT_PYTHON_NAMES_H
#define GT_PYTHON_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { GT_PYTHON_NAME = 64 };

/*
 * The caller, which Python knows by that, is in pthread_create(3): the name of the thread that it
 * makes; false: it is none of threading's, or Python tells the kernel itself, as from 3.14 on.
 */
bool gt_python_name_made(uintptr_t thread, char name[GT_PYTHON_NAME]);

#endif
