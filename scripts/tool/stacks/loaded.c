/*
 * See loaded.h. The headers at the beginning of each mapped file say where its segments are and
 * which build it is. A file with the same headers is the one that was loaded, whatever is at its
 * path now, and in whichever mount namespace it is.
 */
#include "loaded.h"

#include "scripts/tool/tool.h"

#include "symbolize/elf/image.h"
#include "symbolize/elf/modules.h"

#include "encoder/base/strbuf.h"
#include "encoder/read/need.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAD = 4096 };

/* The beginning of a file; unreadable bytes are zero. */
struct head {
    char bytes[HEAD];
};

static const ElfW(Ehdr) * header_of(const struct head *head)
{
    const ElfW(Ehdr) *eh = (const void *)head->bytes;
    bool good = memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0 && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
                eh->e_phentsize == sizeof(ElfW(Phdr)) && eh->e_phoff % 8 == 0 &&
                eh->e_phoff < HEAD && eh->e_phnum <= (HEAD - eh->e_phoff) / sizeof(ElfW(Phdr));
    return good ? eh : NULL;
}

/* Reads the head of a regular file. Opening a device could have effects. */
static bool head_of_file(const char *path, struct head *head)
{
    struct stat st;
    memset(head, 0, sizeof *head);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : pread(fd, head->bytes, HEAD, 0);
    if (fd >= 0)
        close(fd);
    return n > 0 && header_of(head);
}

/* Reads the head of a mapping. A core file may leave out pages that are in the file. */
static bool head_at(const struct gt_still *s, const struct gt_mapping *m, struct head *head)
{
    if (gt_still_read(s, m->lo, head->bytes, HEAD))
        return header_of(head);
    return s->core && head_of_file(m->path, head);
}

/* Fills in what the segments and notes say, with the file's begin at lo. */
static bool measure(struct gt_loaded *m, const struct head *head)
{
    const ElfW(Ehdr) *eh = header_of(head);
    const ElfW(Phdr) *ph = (const void *)(head->bytes + eh->e_phoff);
    uint64_t end = 0;
    bool first = false;
    for (int i = 0; i < eh->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD && ph[i].p_offset == 0) {
            m->bias = m->lo - ph[i].p_vaddr;
            first = true;
        }
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end)
            end = ph[i].p_vaddr + ph[i].p_memsz;
        if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X && !m->code)
            m->code = m->bias + ph[i].p_vaddr, m->code_offset = ph[i].p_offset;
        if (ph[i].p_type == PT_NOTE && !m->build_id_len && ph[i].p_offset < HEAD &&
            ph[i].p_filesz <= HEAD - ph[i].p_offset)
            m->build_id_len = gt_build_id_in(head->bytes + ph[i].p_offset, ph[i].p_filesz,
                                             ph[i].p_align, m->build_id);
    }
    m->hi = m->bias + end;
    return first && m->hi > m->lo;
}

static bool is_same(const struct gt_loaded *m, const struct head *ours, const char *path)
{
    struct head head;
    struct gt_loaded its = {.lo = m->lo};
    if (!head_of_file(path, &head) || !measure(&its, &head))
        return false;
    return m->build_id_len ? its.build_id_len == m->build_id_len &&
                                 memcmp(its.build_id, m->build_id, m->build_id_len) == 0
                           : memcmp(head.bytes, ours->bytes, sizeof(ElfW(Ehdr))) == 0;
}

static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text(const char *format, ...)
{
    char *made;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&made, format, ap) < 0)
        made = NULL;
    va_end(ap);
    return gt_need(made);
}

/* The vDSO is in no file: its copy becomes one. */
static const char *path_of_vdso(const struct gt_still *s, const struct gt_mapping *m)
{
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < s->pieces; i++) {
        if (s->piece[i].at == m->lo &&
            write(fd, s->piece[i].bytes, s->piece[i].size) == (ssize_t)s->piece[i].size)
            return text("/proc/self/fd/%d", fd);
    }
    return NULL;
}

/* Finds a path that leads to the loaded file. The last two work if its own path no longer does. */
static const char *path_of(const struct gt_still *s, const struct gt_mapping *m,
                           const struct gt_loaded *l, const struct head *head)
{
    unsigned long lo = m->lo, hi = m->hi;
    const char *paths[] = {
        s->program,
        s->core ? m->path : text("/proc/self/fd/%d%s", s->root, m->path),
        s->core ? NULL : text("/proc/self/fd/%d", s->exe),
        s->core ? NULL : text("/proc/%d/map_files/%lx-%lx", s->alive, lo, hi),
    };
    if (lo == s->vdso)
        return path_of_vdso(s, m);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (paths[i] && is_same(l, head, paths[i]))
            return paths[i];
    }
    return NULL;
}

/* Reads the build ID from the file that was found: Go's linker puts it only into a section. */
static void take_build_id(struct gt_loaded *l)
{
    struct gt_image image = {.base = NULL};
    if (!l->path || l->build_id_len || gt_image_open(&image, l->path) != 0)
        return;
    l->build_id_len = image.build_id_len;
    memcpy(l->build_id, image.build_id, sizeof l->build_id);
    gt_image_close(&image);
}

/*
 * Whether the code is mapped where the headers say. Else it may be one page of the file, or a file
 * that is only read. Such a file may be mapped as a whole; a loader maps each segment separately.
 * The code may have been moved into memory of large pages, between the file's other segments.
 */
static bool runs(const struct gt_still *s, const struct gt_loaded *l)
{
    const struct gt_mapping *m = gt_still_mapping(s, l->code);
    if (m && !*m->path && !m->writable && m->lo == l->code && m + 1 < s->mapping + s->mappings)
        return m->hi == m[1].lo && strcmp(m[1].path, l->name) == 0;
    return m && strcmp(m->path, l->name) == 0 && m->offset + (l->code - m->lo) == l->code_offset &&
           (m->lo > l->lo || l->code_offset == 0);
}

struct gt_loaded *gt_loaded_find(const struct gt_still *s, size_t *n)
{
    struct gt_loaded *all = NULL;
    bool used = !s->program;
    *n = 0;
    for (size_t i = 0; i < s->mappings; i++) {
        const struct gt_mapping *m = &s->mapping[i];
        struct gt_loaded one = {.lo = m->lo, .name = m->path};
        struct head head;
        if (m->offset || !*m->path || (all && m->lo < all[*n - 1].hi))
            continue;
        if (!head_at(s, m, &head) || !measure(&one, &head) || !runs(s, &one))
            continue;
        one.path = path_of(s, m, &one, &head);
        take_build_id(&one);
        used |= one.path && one.path == s->program;
        *GT_ADD(all, *n) = one;
    }
    if (!used)
        gt_say("%s is not used: it is not what ran there", s->program);
    return all;
}

void gt_loaded_announce(const struct gt_loaded *m)
{
    char id[2 * sizeof m->build_id + 1];
    struct gt_strbuf t = gt_strbuf_start(id, sizeof id);
    gt_strbuf_hex_bytes(&t, m->build_id, m->build_id_len);
    gt_strbuf_add(&t, m->build_id_len ? "" : "-");
    const char *name = *m->name == '/' ? m->name : text("/%s", m->name);
    gt_modules_add(text("gotrace-module %lx %lx %lx %s %s/%s", (unsigned long)m->lo,
                        (unsigned long)(m->hi - m->lo), (unsigned long)(m->lo - m->bias), id,
                        m->path ? m->path : "/", name));
}
