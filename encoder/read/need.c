/* See need.h. */
#include "need.h"

void (*gt_reader_no_memory)(void) __attribute__((noreturn)) = abort;
