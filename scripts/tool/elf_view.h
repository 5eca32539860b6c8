/* Reads what the launcher needs to know of an ELF file of any class and byte order. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

struct gt_elf_view {
    const unsigned char *base; /* the whole file, mapped */
    size_t size;
    bool native;             /* of our class and byte order; the members below need that */
    unsigned type;           /* ET_EXEC, ET_DYN, ET_CORE, ... */
    bool whole;              /* all that the headers promise is in the file */
    bool pie;                /* the linker made a position-independent program, no library */
    const char *interpreter; /* NULL: none, in a static program or a loader */
    const char *soname;
    bool go;                 /* made by Go's linker */
    bool unwinds;            /* .eh_frame_hdr names a function that is not the linker's or libc's */
    const char *needed[256]; /* ends with NULL */
};

/* Reads a mapped file; false: no ELF file. *view points into the mapping, which must stay. */
bool gt_elf_view(struct gt_elf_view *view, const void *base, size_t size);

/* Whether a symbol table of the file defines the name. */
bool gt_elf_defines(const struct gt_elf_view *view, const char *name);

/* The architecture's usual name: "x86-64", "32-bit i386", or "machine 123". Static storage. */
const char *gt_elf_architecture(const struct gt_elf_view *view);

bool gt_elf_same_architecture(const struct gt_elf_view *a, const struct gt_elf_view *b);
