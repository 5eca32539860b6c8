/*
 * elfutils, loaded privately and on first use.
 *
 * As a needed library, elfutils would put itself, zlib, bzip2 and xz into the program's global
 * symbol scope. In a linker namespace of its own, it has its own libc, and so its own environment
 * and its own malloc: it never calls the program's.
 *
 * Every call of elfutils stands between gt_elfutils_enter and gt_elfutils_leave, in one thread at a
 * time. gt_elfutils_get loads it. If no file has debug information, it is never loaded.
 */
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

/* Headers before 0.188 do not declare it. */
int dwfl_frame_reg(Dwfl_Frame *frame, unsigned number, Dwarf_Word *value);

struct gt_elfutils {
    bool private_libc; /* in a namespace of its own; else elfutils shares the program's libc */
#define GT_DW(name) __typeof__(&name) name;
#define GT_DW_OPTIONAL GT_DW /* NULL: not available */
#include "elfutils.def"
#undef GT_DW_OPTIONAL
#undef GT_DW
};

/*
 * Begins calls of elfutils. If elfutils would abort the process (an assertion), it jumps to `bail`
 * instead: the caller must call setjmp first.
 */
void gt_elfutils_enter(jmp_buf *bail);

/*
 * The functions of elfutils; NULL when there is no libdw, or no memory for the next calls. After a
 * NULL or a jump, this process has no elfutils any more.
 */
const struct gt_elfutils *gt_elfutils_get(void);

/* A number that changes when a fork comes in the middle of a call. In the child, all results of
 * earlier calls are void then, and so is the memory to which they were adding. */
uint32_t gt_elfutils_generation(void);

void gt_elfutils_leave(void);

/* Called after a jump to `bail`. */
void gt_elfutils_give_up(void);
