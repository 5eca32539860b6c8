/* See program_code.h. */
#include "program_code.h"

#include "symbolize/elf/image.h"
#include "symbolize/elf/modules.h"

#include <string.h>

/* The module of the trace that the address is in, and its path. false: the trace names none. */
static bool find_module(const struct gt_trace *trace, uint64_t address, struct gt_module *m,
                        char path[static 4096])
{
    for (size_t i = 0; i < trace->n_remarks; i++) {
        const char *its = gt_modules_parse(trace->remarks[i], m);
        if (!its || address < m->lo || address >= m->hi)
            continue;
        size_t n = m->is_program ? (size_t)(strstr(its, "//") - its) : strlen(its);
        if (n >= 4096)
            return false;
        memcpy(path, its, n);
        path[n] = '\0';
        return true;
    }
    return false;
}

/* Reads the code around the ELF address from the segment that has it. */
static bool read_segment(const struct gt_image *image, uint64_t address, struct gt_code *code)
{
    enum { AROUND = sizeof code->at / 2 };
    const ElfW(Ehdr) *e = (const void *)image->base;
    const ElfW(Phdr) *ph = (const void *)(image->base + e->e_phoff);
    for (size_t i = 0; i < e->e_phnum; i++) {
        uint64_t from = ph[i].p_vaddr, to = from + ph[i].p_filesz;
        if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X) || address < from || address >= to)
            continue;
        uint64_t first = address - from > AROUND ? address - AROUND : from;
        uint64_t last = to - address > AROUND ? address + AROUND : to;
        code->size = last - first;
        code->pc = address - first;
        return gt_image_read(image, code->at, code->size, ph[i].p_offset + first - from) == 0;
    }
    return false;
}

bool gt_program_code(const struct gt_trace *trace, uint64_t address, struct gt_code *code)
{
    struct gt_module m;
    struct gt_image image;
    char path[4096];
    if (!find_module(trace, address, &m, path) || !m.build_id_len || path[0] != '/' ||
        gt_image_open(&image, path) != 0)
        return false;
    const ElfW(Ehdr) *e = (const void *)image.base;
    bool whole = e->e_phentsize == sizeof(ElfW(Phdr)) &&
                 e->e_phoff + e->e_phnum * sizeof(ElfW(Phdr)) <= image.size;
    bool found = whole && gt_image_is(&image, m.build_id, m.build_id_len) &&
                 read_segment(&image, address - m.bias, code);
    code->machine = e->e_machine;
    gt_image_close(&image);
    return found;
}
