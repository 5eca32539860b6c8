/*
 * The parts of an ELF file that symbolization reads, in memory of our own, laid out as in the file.
 * A copy, because files change: touching a mapping of a file that somebody truncated is a SIGBUS in
 * the program. And no descriptor stays open: the program may close it and get the number for a file
 * of its own. Mapped is what is too large to copy, and the program itself, which nobody may write
 * to.
 */
#ifndef GT_IMAGE_H
#define GT_IMAGE_H

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
    struct stat st; /* of that file */
    bool reopens;   /* the path leads to the file: what zlib compressed is not in memory */
};

enum { GT_IMAGE_COPY_MAX = 64 << 20, GT_ZLIB_HEADER = 2 };

/* 0 or -errno; -ENOEXEC: not a native ELF file. */
int gt_image_open(struct gt_image *image, const char *path);

/* Takes over an image in pages that the caller got from gt_pages_alloc, or gives them back. */
void gt_image_adopt(struct gt_image *image, void *pages, size_t size);

void gt_image_close(struct gt_image *image);

/* A whole file in pages of its own, up to GT_IMAGE_COPY_MAX bytes; NULL: not readable. */
void *gt_read_file(const char *path, size_t *size);

/*
 * The compression header of a section whose contents are still in the file only, behind it and two
 * bytes of zlib's.
 */
bool gt_image_put_off(const struct gt_image *image, const ElfW(Shdr) * sh, ElfW(Chdr) * head);

/* Reads from the file, if it is still the same; 0 or -errno. */
int gt_image_read(const struct gt_image *image, void *to, size_t size, uint64_t offset);

/* Moves it to where there is room for more behind the file: zeros. False: it is where it was. */
bool gt_image_grow(struct gt_image *image, size_t size);

/* The header of a section that has contents, or NULL. */
ElfW(Shdr) * gt_image_header(const struct gt_image *image, const char *name);

/* Its number; 0: none. */
size_t gt_image_index(const struct gt_image *image, const char *name);

/* The contents of a section as they stand in the file, or NULL. */
const void *gt_image_section(const struct gt_image *image, const char *name, size_t *size);

bool gt_image_is(const struct gt_image *image, const uint8_t *build_id, size_t len);

/* Looks through ELF notes of size bytes for a build ID; its length, 0 when there is none. */
uint8_t gt_build_id_in(const void *notes, size_t size, size_t align, uint8_t out[32]);

#endif
