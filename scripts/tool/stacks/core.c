/*
 * Makes the picture of a process from a core file: notes describe its threads and files, segments
 * are its memory. The file may come from anyone, so sizes and offsets are checked before use.
 */
#include "still.h"

#include "scripts/tool/tool.h"

#include "encoder/base/arch/arch.h"
#include "encoder/read/need.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

struct core {
    const uint8_t *bytes;
    size_t size;
    struct gt_still *still;
};

/* The bytes at the offset, at most *size, which is cut to what the file has. NULL: it has none. */
static const void *part(const struct core *c, uint64_t offset, uint64_t *size)
{
    if (offset >= c->size)
        return NULL;
    if (*size > c->size - offset)
        *size = c->size - offset;
    return c->bytes + offset;
}

/* Notes -------------------------------------------------------------------------------------- */

static void take_thread(struct gt_still *s, const uint8_t *note, size_t size)
{
    struct elf_prstatus status;
    bool eintr;
    if (size < sizeof status)
        return;
    memcpy(&status, note, sizeof status);
    struct gt_still_thread *t = GT_ADD(s->task, s->tasks);
    memcpy(&t->registers, &status.pr_reg, sizeof t->registers);
    t->tid = t->own = status.pr_pid;
    t->before.number = -1;
    t->call = gt_registers_call(&t->registers, &t->before, &eintr);
    t->state = t->call.number >= 0 ? GT_WAITS : GT_RUNS;
}

static void take_process(struct gt_still *s, const uint8_t *note, size_t size)
{
    struct elf_prpsinfo info;
    if (size < sizeof info)
        return;
    memcpy(&info, note, sizeof info);
    s->pid = info.pr_pid;
    s->forked = info.pr_flag & GT_FORKED;
    snprintf(s->name, sizeof s->name, "%.*s", (int)sizeof info.pr_fname, info.pr_fname);
}

static void take_auxv(struct gt_still *s, const uint8_t *note, size_t size)
{
    for (ElfW(auxv_t) v; size >= sizeof v; note += sizeof v, size -= sizeof v) {
        memcpy(&v, note, sizeof v);
        if (v.a_type == AT_SYSINFO_EHDR)
            s->vdso = v.a_un.a_val;
    }
}

/*
 * NT_FILE: first the number of files and the page size. Then, for each file, its begin, its end,
 * and its offset in pages. Then all names.
 */
static void take_files(struct gt_still *s, const uint8_t *note, size_t size)
{
    uint64_t head[2], row[3];
    if (size < sizeof head)
        return;
    memcpy(head, note, sizeof head);
    if (head[0] > (size - sizeof head) / sizeof row)
        return;
    const char *name = (const char *)note + sizeof head + head[0] * sizeof row;
    const char *end = (const char *)note + size;
    for (uint64_t i = 0; i < head[0] && memchr(name, 0, (size_t)(end - name)); i++) {
        memcpy(row, note + sizeof head + i * sizeof row, sizeof row);
        *GT_ADD(s->mapping, s->mappings) =
            (struct gt_mapping){row[0], row[1], row[2] * head[1], name};
        name += strlen(name) + 1;
    }
}

static const struct {
    uint32_t type;
    void (*take)(struct gt_still *s, const uint8_t *note, size_t size);
} notes[] = {
    {NT_PRSTATUS, take_thread},
    {NT_PRPSINFO, take_process},
    {NT_AUXV, take_auxv},
    {NT_FILE, take_files},
};

static void take_notes(struct core *c, const ElfW(Phdr) * ph)
{
    uint64_t left = ph->p_filesz;
    const uint8_t *p = part(c, ph->p_offset, &left);
    ElfW(Nhdr) note;
    while (p && left >= sizeof note) {
        memcpy(&note, p, sizeof note);
        uint64_t begin = sizeof note + ((note.n_namesz + 3ull) & ~3ull);
        uint64_t end = begin + ((note.n_descsz + 3ull) & ~3ull);
        if (begin + note.n_descsz > left)
            return;
        for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
            if (notes[i].type == note.n_type && note.n_namesz == 5 &&
                memcmp(p + sizeof note, "CORE", 5) == 0)
                notes[i].take(c->still, p + begin, note.n_descsz);
        }
        if (end > left)
            return;
        p += end;
        left -= end;
    }
}

/* Segments ----------------------------------------------------------------------------------- */

static void take_memory(struct core *c, const ElfW(Phdr) * ph)
{
    uint64_t size = ph->p_filesz;
    const uint8_t *bytes = part(c, ph->p_offset, &size);
    if (bytes && size)
        *GT_ADD(c->still->piece, c->still->pieces) =
            (struct gt_memory_piece){ph->p_vaddr, size, bytes};
}

/* Adds the vDSO's mapping, which no note has. */
static void take_vdso(struct gt_still *s, const ElfW(Phdr) * ph)
{
    if (s->vdso && s->vdso == ph->p_vaddr)
        *GT_ADD(s->mapping, s->mappings) =
            (struct gt_mapping){ph->p_vaddr, ph->p_vaddr + ph->p_memsz, 0, "[vdso]"};
}

static void take_segments(struct core *c, const ElfW(Ehdr) * eh)
{
    uint64_t size = (uint64_t)eh->e_phnum * sizeof(ElfW(Phdr));
    const ElfW(Phdr) *ph = part(c, eh->e_phoff, &size);
    size_t n = ph ? size / sizeof *ph : 0;
    for (size_t i = 0; i < n; i++) {
        if (ph[i].p_type == PT_NOTE)
            take_notes(c, &ph[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (ph[i].p_type == PT_LOAD) {
            take_memory(c, &ph[i]);
            take_vdso(c->still, &ph[i]);
        }
    }
}

static bool is_core(const struct core *c)
{
    const ElfW(Ehdr) *eh = (const void *)c->bytes;
    return c->size >= sizeof *eh && memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0 &&
           eh->e_ident[EI_CLASS] == ELFCLASS64 && eh->e_type == ET_CORE &&
           eh->e_phentsize == sizeof(ElfW(Phdr)) && eh->e_phoff % 8 == 0;
}

void gt_core_open(struct gt_still *still, const char *path)
{
    struct stat st;
    struct core c = {.still = still};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: a FIFO is no core file */
    if (fd < 0 || fstat(fd, &st) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    c.size = (size_t)st.st_size;
    c.bytes = S_ISREG(st.st_mode) && c.size ? mmap(NULL, c.size, PROT_READ, MAP_PRIVATE, fd, 0)
                                            : MAP_FAILED;
    close(fd);
    if (c.bytes == MAP_FAILED || !is_core(&c))
        gt_fail(GT_EXIT_FAILED,
                "%s is neither a process id nor a core file nor a black box (t.out.live)", path);
    const ElfW(Ehdr) *eh = (const void *)c.bytes;
    if (eh->e_machine != GT_ARCH_MACHINE)
        gt_fail(GT_EXIT_FAILED, "%s is of a program for another kind of processor", path);
    still->core = path;
    take_segments(&c, eh);
    if (!still->tasks)
        gt_fail(GT_EXIT_FAILED, "%s tells of no threads", path);
    for (size_t i = 0; i < still->tasks; i++)
        memcpy(still->task[i].name, still->name, sizeof still->name);
}
