/*
 * The image: the parts of an ELF file that symbolization reads, laid out as in the file.
 *
 * As a rule it is a copy, because files change: touching a mapping of a file that was truncated is
 * a SIGBUS in the program. No descriptor stays open: the program might close it and then open a
 * file of its own under that number.
 *
 * Two kinds of files are mapped instead: the program itself, to which the kernel allows no writes,
 * and files that are too large to copy. Before each look into a mapped image, the caller must check
 * whether the file has changed.
 */
#pragma once

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct gt_image {
    char *base; /* NULL: none */
    size_t size;
    uint8_t build_id[32], build_id_len;
    bool has_dwarf, has_symtab;
    char path[512]; /* canonical: no links; "" when it is not from a file */
    struct stat st; /* the file's status when it was opened */
    bool mapped;    /* the image changes when the file is written */
    bool in_file;   /* its pages are those of the file: see gt_image_cool */
    bool reopens;   /* the path leads to the file: sections compressed by zlib stay in it */
};

enum { GT_IMAGE_COPY_MAX = 64 << 20, GT_ZLIB_HEADER = 2 };

/* 0 or -errno; -ENOEXEC: not a native ELF file. */
int gt_image_open(struct gt_image *image, const char *path);

/* Takes over an image in pages from gt_pages_alloc, or frees the pages. */
void gt_image_adopt(struct gt_image *image, void *pages, size_t size);

/* Whether the file of a mapped image was written or truncated since it was opened. */
bool gt_image_has_changed(const struct gt_image *image);

/*
 * Gives back the memory of debug information that is mapped, not copied. It is read from the file
 * again when it is touched.
 */
void gt_image_cool(const struct gt_image *image);

void gt_image_close(struct gt_image *image);

/* Reads a whole file into pages of its own, up to GT_IMAGE_COPY_MAX bytes; NULL: not readable. */
void *gt_read_file(const char *path, size_t *size);

/*
 * Finds the compression header of a section whose contents are only in the file so far, behind that
 * header and two bytes of zlib's.
 */
bool gt_image_put_off(const struct gt_image *image, const ElfW(Shdr) * sh, ElfW(Chdr) * head);

/* Reads from the file, if it has not changed; 0 or -errno. */
int gt_image_read(const struct gt_image *image, void *to, size_t size, uint64_t offset);

/* Moves the image to memory with room for `size` bytes, with zeros behind the file. false: it was
 * not moved. */
bool gt_image_grow(struct gt_image *image, size_t size);

/* The header of a section that has contents, or NULL. */
ElfW(Shdr) * gt_image_header(const struct gt_image *image, const char *name);

/* The number of a section; 0: none. */
size_t gt_image_index(const struct gt_image *image, const char *name);

/* The contents of a section as they stand in the file, or NULL. */
const void *gt_image_section(const struct gt_image *image, const char *name, size_t *size);

bool gt_image_is(const struct gt_image *image, const uint8_t *build_id, size_t len);

/* Finds the build ID in ELF notes of `size` bytes. Returns its length; 0: none. */
uint8_t gt_build_id_in(const void *notes, size_t size, size_t align, uint8_t out[32]);
