/*
 * elfutils, loaded when first needed and privately. As a needed library it would put itself, zlib,
 * bzip2 and xz into the program's global symbol scope; in a linker namespace of its own it even has
 * its own libc, hence its own malloc (the program's is never called) and its own environment.
 */
#ifndef GT_ELFUTILS_H
#define GT_ELFUTILS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

struct gt_elfutils {
    bool loaded;
    bool private_libc; /* in a namespace of its own; else it shares the program's libc */
#define GT_DW(name) __typeof__(&name) name;
#include "elfutils.def"
#undef GT_DW
};

/* The functions; `loaded` is false when there is no libdw. One thread at a time. */
const struct gt_elfutils *gt_elfutils_get(void);

#endif
