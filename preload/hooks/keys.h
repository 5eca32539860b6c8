/* Keys of thread-specific data, as far as they matter for where a thread ends: thread.c. */
#ifndef GT_KEYS_H
#define GT_KEYS_H

#include <stdatomic.h>
#include <stdbool.h>

/* The program has made a key with a destructor, which may run code of it when a thread ends. */
extern _Atomic bool gt_keys_have_destructors;

#endif
