/* An ELF file of any class and byte order that is ours, as far as the launcher has to know it. */
#ifndef GT_ELF_VIEW_H
#define GT_ELF_VIEW_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

struct gt_elf_view {
    const unsigned char *base; /* the whole file, mapped */
    size_t size;
    bool native;             /* of our class and byte order: only then is what follows known */
    const char *interpreter; /* NULL: none, it is static, or a loader itself */
    const char *soname;
    bool go;                 /* made by Go's linker */
    const char *needed[256]; /* ends with NULL */
};

/* false: no ELF file. Everything in it stays valid until the end of the process. */
bool gt_elf_view(struct gt_elf_view *view, const void *base, size_t size);

/* As people call it: "x86-64", "32-bit i386", or "machine 123". Static storage. */
const char *gt_elf_architecture(const struct gt_elf_view *view);

bool gt_elf_same_architecture(const struct gt_elf_view *a, const struct gt_elf_view *b);

#endif
