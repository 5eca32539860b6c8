/* What Python's threading module calls the threads that it makes. */
#ifndef GT_PYTHON_NAMES_H
#define GT_PYTHON_NAMES_H

#include <stdbool.h>

enum { GT_PYTHON_NAME = 64 };

/*
 * The caller is in pthread_create(3): the name of the thread that it makes; false: it is none of
 * threading's, or Python tells the kernel itself, as it does from 3.14 on.
 */
bool gt_python_name_made(char name[GT_PYTHON_NAME]);

#endif
