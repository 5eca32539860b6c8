/*
 * See image.h. Everything read from a file is checked here, before libelf sees it: section headers
 * that reach outside the file lose their contents.
 */
#include "image.h"

#include "encoder/base/arena.h"
#include "encoder/base/file.h"
#include "encoder/base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint8_t gt_build_id_in(const void *notes, size_t size, size_t align, uint8_t out[32])
{
    const char *p = notes;
    size_t mask = align == 8 ? 7 : 3;
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, p, sizeof note);
        size_t desc = (sizeof note + note.n_namesz + mask) & ~mask;
        size_t total = (desc + note.n_descsz + mask) & ~mask;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= 32 &&
            desc + note.n_descsz <= size && memcmp(p + sizeof note, "GNU", 4) == 0) {
            memcpy(out, p + desc, note.n_descsz);
            return (uint8_t)note.n_descsz;
        }
        if (total > size)
            return 0;
        p += total;
        size -= total;
    }
    return 0;
}

bool gt_image_is(const struct gt_image *image, const uint8_t *build_id, size_t len)
{
    return image->base && image->build_id_len == len && memcmp(image->build_id, build_id, len) == 0;
}

/* Headers ------------------------------------------------------------------------------------ */

static bool inside(const struct gt_image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->size && size <= image->size - offset;
}

static bool good_header(const struct gt_image *image)
{
    const ElfW(Ehdr) *e = (const void *)image->base;
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return image->size >= sizeof *e && memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 &&
           e->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           e->e_ident[EI_DATA] == (little ? ELFDATA2LSB : ELFDATA2MSB) &&
           e->e_ident[EI_VERSION] == EV_CURRENT;
}

static ElfW(Shdr) * sections(const struct gt_image *image, size_t *n)
{
    const ElfW(Ehdr) *e = (const void *)image->base;
    *n = 0;
    if (!e->e_shoff || e->e_shentsize != sizeof(ElfW(Shdr)) || e->e_shoff % sizeof(void *) ||
        !inside(image, e->e_shoff, sizeof(ElfW(Shdr))))
        return NULL;
    ElfW(Shdr) *sh = (void *)(image->base + e->e_shoff);
    size_t count = e->e_shnum ? e->e_shnum : sh->sh_size;
    if (count > image->size / sizeof *sh || !inside(image, e->e_shoff, count * sizeof *sh))
        return NULL;
    *n = count;
    return sh;
}

/* The section with the names of all sections, or NULL. */
static const ElfW(Shdr) * names_of(const struct gt_image *image, const ElfW(Shdr) * sh, size_t n)
{
    const ElfW(Ehdr) *e = (const void *)image->base;
    size_t at = e->e_shstrndx == SHN_XINDEX ? sh[0].sh_link : e->e_shstrndx;
    return at < n && inside(image, sh[at].sh_offset, sh[at].sh_size) ? &sh[at] : NULL;
}

static const char *section_name(const struct gt_image *image, const ElfW(Shdr) * sh, size_t n,
                                size_t index)
{
    const ElfW(Shdr) *names = names_of(image, sh, n);
    if (!names || sh[index].sh_name >= names->sh_size)
        return "";
    const char *name = image->base + names->sh_offset + sh[index].sh_name;
    return memchr(name, 0, names->sh_size - sh[index].sh_name) ? name : "";
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Whether a section is ever read. The others can be large. */
static bool is_wanted(const char *name)
{
    static const char *const unread[] = {"loc",      "loclists",   "frame", "pubnames",
                                         "pubtypes", "gnu_pub",    "macro", "macinfo",
                                         "names",    "gdb_scripts"};
    bool debug = starts(name, ".debug_") || starts(name, ".zdebug_");
    const char *kind = debug ? strchr(name, '_') + 1 : "";
    for (size_t i = 0; debug && i < sizeof unread / sizeof *unread; i++) {
        if (strcmp(kind, unread[i]) == 0 || (i == 5 && starts(kind, unread[i])))
            return false;
    }
    return debug || starts(name, ".gnu_debug") || starts(name, ".note");
}

/* From a file -------------------------------------------------------------------------------- */

static int read_at(int fd, char *to, size_t size, off_t offset)
{
    while (size) {
        ssize_t n = gt_file_read(fd, to, size, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        to += n;
        offset += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Reads a part of the file to its place in the image. */
static int read_part(const struct gt_image *image, int fd, size_t size, uint64_t offset)
{
    return read_at(fd, image->base + offset, size, (off_t)offset);
}

/* Whether a section must be read. For libelf, a section that is left out has no contents. */
static bool is_needed(const struct gt_image *image, const ElfW(Shdr) * sh, size_t n, size_t i)
{
    if (!inside(image, sh[i].sh_offset, sh[i].sh_size))
        return false;
    switch (sh[i].sh_type) {
    case SHT_NOBITS: return false;
    case SHT_SYMTAB:
    case SHT_DYNSYM:
    case SHT_STRTAB:
    case SHT_NOTE:
    case SHT_SYMTAB_SHNDX: return true;
    default: return is_wanted(section_name(image, sh, n, i));
    }
}

bool gt_image_put_off(const struct gt_image *image, const ElfW(Shdr) * sh, ElfW(Chdr) * head)
{
    const uint8_t *p = (const uint8_t *)image->base + sh->sh_offset;
    if (!image->reopens || !(sh->sh_flags & SHF_COMPRESSED) ||
        sh->sh_size < sizeof *head + GT_ZLIB_HEADER)
        return false;
    memcpy(head, p, sizeof *head);
    p += sizeof *head;
    return head->ch_type == ELFCOMPRESS_ZLIB && (p[0] & 15) == 8 /* deflate */ &&
           !(p[1] & 32) /* a dictionary */;
}

/* Reads a section; of one compressed by zlib only the headers. */
static int read_section(const struct gt_image *image, int fd, const ElfW(Shdr) * sh)
{
    ElfW(Chdr) head;
    size_t first = sh->sh_flags & SHF_COMPRESSED ? sizeof head + GT_ZLIB_HEADER : 0;
    first = first < sh->sh_size ? first : sh->sh_size;
    int r = read_part(image, fd, first, sh->sh_offset);
    if (r || gt_image_put_off(image, sh, &head))
        return r;
    return read_part(image, fd, sh->sh_size - first, sh->sh_offset + first);
}

static int read_headers(struct gt_image *image, int fd, ElfW(Shdr) * *sh, size_t *n)
{
    const ElfW(Ehdr) *e = (const void *)image->base;
    size_t first = image->size < 4096 ? image->size : 4096;
    int r = read_part(image, fd, first, 0);
    if (r)
        return r;
    if (!good_header(image))
        return -ENOEXEC;
    size_t end = image->size - (e->e_shoff < image->size ? e->e_shoff : image->size);
    /* The table of sections, then the names; the rest of the file only when it is needed. */
    size_t table = (size_t)(e->e_shnum ? e->e_shnum : 1) * sizeof **sh;
    r = read_part(image, fd, end < table ? end : table, e->e_shoff * !!end);
    if (r)
        return r;
    *sh = sections(image, n);
    if (!*sh)
        return 0;
    r = read_part(image, fd, *n * sizeof **sh, e->e_shoff);
    const ElfW(Shdr) *names = r ? NULL : names_of(image, *sh, *n);
    return names ? read_part(image, fd, names->sh_size, names->sh_offset) : r;
}

/* Reads the notes of the program headers: a file without section headers still has its build ID.
 * fd -1: the file is mapped. */
static void read_notes(struct gt_image *image, int fd)
{
    const ElfW(Ehdr) *e = (const void *)image->base;
    if (e->e_phentsize != sizeof(ElfW(Phdr)) || e->e_phoff % sizeof(void *) ||
        !inside(image, e->e_phoff, (uint64_t)e->e_phnum * sizeof(ElfW(Phdr))))
        return;
    ElfW(Phdr) *ph = (void *)(image->base + e->e_phoff);
    if (fd >= 0 && read_part(image, fd, e->e_phnum * sizeof *ph, e->e_phoff))
        return;
    for (size_t i = 0; i < e->e_phnum && !image->build_id_len; i++) {
        uint64_t size = ph[i].p_filesz;
        if (ph[i].p_type != PT_NOTE || size > 65536 || !inside(image, ph[i].p_offset, size))
            continue;
        if (fd < 0 || read_part(image, fd, size, ph[i].p_offset) == 0)
            image->build_id_len =
                gt_build_id_in(image->base + ph[i].p_offset, size, ph[i].p_align, image->build_id);
    }
}

/* Notes which sections there are, and the build ID. A debug file has its notes in sections: its
 * program headers describe the other file. */
static void take_stock(struct gt_image *image, ElfW(Shdr) * sh, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = section_name(image, sh, n, i);
        if (sh[i].sh_type == SHT_NOBITS)
            continue;
        if (!is_needed(image, sh, n, i)) {
            if (sh[i].sh_type != SHT_NULL)
                sh[i].sh_type = SHT_NOBITS;
            continue;
        }
        if (sh[i].sh_type == SHT_NOTE && !image->build_id_len)
            image->build_id_len = gt_build_id_in(image->base + sh[i].sh_offset, sh[i].sh_size,
                                                 sh[i].sh_addralign, image->build_id);
        image->has_symtab |= sh[i].sh_type == SHT_SYMTAB;
        image->has_dwarf |= strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
    }
}

static uint64_t needed_bytes(const struct gt_image *image, const ElfW(Shdr) * sh, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_needed(image, sh, n, i))
            sum += sh[i].sh_size;
    }
    return sum;
}

/* Maps the file instead of copying it. Private and writable, for take_stock; the file is not
 * written. */
static int map(struct gt_image *image, int fd, ElfW(Shdr) * *sh, size_t *n)
{
    int how = MAP_PRIVATE | (image->base ? MAP_FIXED : 0);
    void *p = mmap(image->base, image->size, PROT_READ | PROT_WRITE, how, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    image->base = p;
    image->in_file = true;
    if (!good_header(image))
        return -ENOEXEC;
    *sh = sections(image, n);
    read_notes(image, -1);
    return 0;
}

/* Copies the needed sections, or maps the file if they exceed GT_IMAGE_COPY_MAX. */
static int copy(struct gt_image *image, int fd, ElfW(Shdr) * *sh, size_t *n)
{
    image->base = gt_pages_alloc(image->size);
    int r = image->base ? read_headers(image, fd, sh, n) : -ENOMEM;
    image->mapped = !r && needed_bytes(image, *sh, *n) > GT_IMAGE_COPY_MAX;
    if (image->mapped)
        return map(image, fd, sh, n);
    for (size_t i = 0; !r && i < *n; i++) {
        if (is_needed(image, *sh, *n, i))
            r = read_section(image, fd, &(*sh)[i]);
    }
    if (!r)
        read_notes(image, fd);
    return r;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether the file is the running program, which the kernel lets no process write or truncate
 * (ETXTBSY). */
static bool is_executed(const struct gt_image *image)
{
    struct stat st;
    return gt_stat("/proc/self/exe", &st) == 0 && is_same_file(&st, &image->st);
}

static int fill(struct gt_image *image, int fd)
{
    ElfW(Shdr) *sh = NULL;
    size_t n = 0;
    int r = is_executed(image) ? map(image, fd, &sh, &n) : copy(image, fd, &sh, &n);
    if (!r)
        take_stock(image, sh, n);
    return r;
}

static void find_real_path(struct gt_image *image, int fd)
{
    char link[40];
    struct gt_strbuf t = gt_strbuf_start(link, sizeof link);
    char digits[12], *p = digits + sizeof digits;
    *--p = 0;
    for (int i = fd; i > 0 || !*p; i /= 10)
        *--p = (char)('0' + i % 10);
    gt_strbuf_add(&t, "/proc/thread-self/fd/"); /* the drain thread has its own table */
    gt_strbuf_add(&t, p);
    ssize_t n = gt_syscall(SYS_readlinkat, AT_FDCWD, link, image->path, sizeof image->path - 1);
    image->path[n > 0 ? n : 0] = 0;
}

int gt_image_read(const struct gt_image *image, void *to, size_t size, uint64_t offset)
{
    struct stat st;
    int fd = gt_file_open(image->path, O_NONBLOCK);
    int r = fd < 0 || gt_fstat(fd, &st) ? -errno : 0;
    if (!r)
        r = is_same_file(&st, &image->st) ? read_at(fd, to, size, (off_t)offset) : -ESTALE;
    if (fd >= 0)
        gt_file_close(fd);
    return r;
}

bool gt_image_has_changed(const struct gt_image *image)
{
    struct stat st;
    return image->mapped && gt_stat(image->path, &st) == 0 && st.st_dev == image->st.st_dev &&
           st.st_ino == image->st.st_ino && !is_same_file(&st, &image->st);
}

int gt_image_open(struct gt_image *image, const char *path)
{
    struct stat st;
    *image = (struct gt_image){0};
    int fd = gt_file_open(path, O_NONBLOCK);
    int r = fd < 0 || gt_fstat(fd, &st) ? -errno : 0;
    if (!r && (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(ElfW(Ehdr))))
        r = -ENOEXEC;
    if (!r) {
        image->st = st;
        image->size = (size_t)st.st_size;
        find_real_path(image, fd);
        image->reopens = gt_stat(image->path, &st) == 0 && is_same_file(&st, &image->st);
        r = fill(image, fd);
    }
    if (fd >= 0)
        gt_file_close(fd);
    if (r)
        gt_image_close(image);
    return r;
}

void *gt_read_file(const char *path, size_t *size)
{
    struct stat st;
    void *pages = NULL;
    int fd = gt_file_open(path, O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (gt_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size <= GT_IMAGE_COPY_MAX)
        pages = gt_pages_alloc(*size = (size_t)st.st_size);
    if (pages && read_at(fd, pages, *size, 0)) {
        gt_pages_free(pages, *size);
        pages = NULL;
    }
    gt_file_close(fd);
    return pages;
}

void gt_image_adopt(struct gt_image *image, void *pages, size_t size)
{
    *image = (struct gt_image){.base = pages, .size = size};
    if (!good_header(image)) {
        gt_image_close(image);
        return;
    }
    size_t n;
    ElfW(Shdr) *sh = sections(image, &n);
    read_notes(image, -1);
    take_stock(image, sh, n);
}

bool gt_image_grow(struct gt_image *image, size_t size)
{
    char *base = gt_pages_alloc(size);
    if (!base)
        return false;
    if (mremap(image->base, image->size, image->size, MREMAP_MAYMOVE | MREMAP_FIXED, base) ==
        MAP_FAILED) {
        gt_pages_free(base, size);
        return false;
    }
    image->base = base;
    image->size = size;
    return true;
}

/* The other sections, and the pages that the debug information shares with them, may be written. */
void gt_image_cool(const struct gt_image *image)
{
    enum { PAGE = 4096 };
    size_t n = 0;
    const ElfW(Shdr) *sh = image->in_file ? sections(image, &n) : NULL;
    for (size_t i = 0; sh && i < n; i++) {
        size_t from = (sh[i].sh_offset + PAGE - 1) / PAGE * PAGE;
        size_t to = (sh[i].sh_offset + sh[i].sh_size) / PAGE * PAGE;
        bool is_debug = strncmp(section_name(image, sh, n, i), ".debug_", 7) == 0;
        if (is_debug && sh[i].sh_type != SHT_NOBITS && to <= (size_t)image->st.st_size && from < to)
            madvise(image->base + from, to - from, MADV_DONTNEED);
    }
}

void gt_image_close(struct gt_image *image)
{
    gt_pages_free(image->base, image->size);
    *image = (struct gt_image){0};
}

ElfW(Shdr) * gt_image_header(const struct gt_image *image, const char *name)
{
    size_t n;
    ElfW(Shdr) *sh = image->base ? sections(image, &n) : NULL;
    for (size_t i = 0; sh && i < n; i++) {
        if (sh[i].sh_type != SHT_NOBITS && strcmp(section_name(image, sh, n, i), name) == 0 &&
            inside(image, sh[i].sh_offset, sh[i].sh_size))
            return &sh[i];
    }
    return NULL;
}

size_t gt_image_index(const struct gt_image *image, const char *name)
{
    size_t n;
    const ElfW(Shdr) *sh = gt_image_header(image, name);
    return sh ? (size_t)(sh - sections(image, &n)) : 0;
}

const void *gt_image_section(const struct gt_image *image, const char *name, size_t *size)
{
    const ElfW(Shdr) *sh = gt_image_header(image, name);
    *size = sh ? sh->sh_size : 0;
    return sh ? image->base + sh->sh_offset : NULL;
}
