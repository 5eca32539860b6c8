/*
 * elfutils, loaded when first needed and privately. As a needed library it would put itself, zlib,
 * bzip2 and xz into the program's global symbol scope; in a linker namespace of its own it even has
 * its own libc, hence its own malloc (the program's is never called) and its own environment.
 *
 * Every call into it stands between gt_elfutils_enter and gt_elfutils_leave, one thread at a time.
 * It is loaded by gt_elfutils_get: where no file has debug information, never.
 */
#ifndef GT_ELFUTILS_H
#define GT_ELFUTILS_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_elfutils {
    bool private_libc; /* in a namespace of its own; else it shares the program's libc */
#define GT_DW(name) __typeof__(&name) name;
#define GT_DW_OPTIONAL GT_DW /* NULL: not here */
#include "elfutils.def"
#undef GT_DW_OPTIONAL
#undef GT_DW
};

/*
 * When it would abort the process (an assertion), `bail` is jumped to instead: setjmp it before
 * anything else.
 */
void gt_elfutils_enter(jmp_buf *bail);

/*
 * The functions, for what is asked of them next; or NULL when there is no libdw, or no memory for
 * that. After a NULL or a jump there is no elfutils any more in this process.
 */
const struct gt_elfutils *gt_elfutils_get(void);

/* Changes when a fork came in the middle of a call: in the child all that was got or built in such
 * calls is void, and so is any memory they were adding to. */
uint32_t gt_elfutils_generation(void);

void gt_elfutils_leave(void);

/* After a jump to bail. */
void gt_elfutils_give_up(void);

#endif
