/*
 * Whether code can only wait: a small loop of which each turn is like the one before, until another
 * thread changes the memory that it reads. Known for x86-64.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GT_SPIN_LOOP_MAX = 64 }; /* bytes of a loop */

/*
 * code: `size` bytes; a thread may be at the instruction at `pc`. A loop there waits if it has a
 * PAUSE, or if no turn hands anything on to the next. Such a turn calls nothing and stores only
 * into its own frame. The addresses that it reads depend on no register that it changes. It reads
 * no register or word of its frame that it changes later.
 */
bool gt_spin_loop_at(const uint8_t *code, size_t size, size_t pc);
