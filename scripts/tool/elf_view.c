/* See elf_view.h. A file can say anything: every offset is checked. */
#include "elf_view.h"

#include "encoder/base/libc.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#define ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)
#define CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* `size` bytes at the offset; NULL: the file is too short. */
static const void *at(const struct gt_elf_view *v, uint64_t offset, uint64_t size)
{
    return offset <= v->size && size <= v->size - offset ? v->base + offset : NULL;
}

/* A table at the offset, for members of this alignment; NULL: too short, or misplaced. */
static const void *table_at(const struct gt_elf_view *v, uint64_t offset, uint64_t size,
                            size_t align)
{
    return offset % align == 0 ? at(v, offset, size) : NULL;
}

static const char *text_at(const struct gt_elf_view *v, uint64_t offset)
{
    const char *s = at(v, offset, 1);
    return s && memchr(s, 0, v->size - offset) ? s : NULL;
}

static const ElfW(Phdr) * header_at(const struct gt_elf_view *v, int i)
{
    const ElfW(Ehdr) *e = (const void *)v->base;
    return table_at(v, e->e_phoff + (uint64_t)i * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr)),
                    _Alignof(ElfW(Phdr)));
}

/* The file offset of an address; UINT64_MAX: the address is not in the file. */
static uint64_t offset_of(const struct gt_elf_view *v, uint64_t address)
{
    const ElfW(Phdr) * ph;
    const ElfW(Ehdr) *e = (const void *)v->base;
    for (int i = 0; i < e->e_phnum && (ph = header_at(v, i)); i++) {
        if (ph->p_type == PT_LOAD && address - ph->p_vaddr < ph->p_filesz)
            return ph->p_offset + (address - ph->p_vaddr);
    }
    return UINT64_MAX;
}

static const ElfW(Dyn) * entry_at(const struct gt_elf_view *v, const ElfW(Phdr) * ph, size_t i)
{
    const ElfW(Dyn) *d = table_at(v, ph->p_offset + i * sizeof *d, sizeof *d, _Alignof(ElfW(Dyn)));
    return d && (i + 1) * sizeof *d <= ph->p_filesz && d->d_tag != DT_NULL ? d : NULL;
}

static void read_dynamic(struct gt_elf_view *v, const ElfW(Phdr) * ph)
{
    enum { MAX = sizeof v->needed / sizeof *v->needed - 1 };
    const ElfW(Dyn) * d;
    uint64_t strings = UINT64_MAX;
    size_t n = 0;
    for (size_t i = 0; (d = entry_at(v, ph, i)); i++) {
        if (d->d_tag == DT_STRTAB)
            strings = offset_of(v, d->d_un.d_ptr);
        if (d->d_tag == DT_FLAGS_1)
            v->pie = d->d_un.d_val & DF_1_PIE;
    }
    if (strings == UINT64_MAX)
        return;
    for (size_t i = 0; (d = entry_at(v, ph, i)); i++) {
        const char *text = text_at(v, strings + d->d_un.d_val);
        if (d->d_tag == DT_SONAME)
            v->soname = text;
        else if (d->d_tag == DT_NEEDED && text && n < MAX)
            v->needed[n++] = text;
    }
}

/* Go's linker leaves its build ID in a note whose owner is "Go". */
static bool has_go_note(const struct gt_elf_view *v, const ElfW(Phdr) * ph)
{
    const ElfW(Nhdr) *note = table_at(v, ph->p_offset, sizeof *note + 4, _Alignof(ElfW(Nhdr)));
    return note && note->n_namesz == 4 && memcmp(note + 1, "Go\0", 4) == 0;
}

/* The file's section headers; NULL: there are none, or they have no names. */
static const ElfW(Shdr) * sections_of(const struct gt_elf_view *v)
{
    const ElfW(Ehdr) *e = (const void *)v->base;
    const ElfW(Shdr) *sections =
        table_at(v, e->e_shoff, (uint64_t)e->e_shnum * sizeof *sections, _Alignof(ElfW(Shdr)));
    return e->e_shoff && e->e_shstrndx < e->e_shnum ? sections : NULL;
}

/* The section .text; NULL: there is none. */
static const ElfW(Shdr) * find_text(const struct gt_elf_view *v)
{
    const ElfW(Ehdr) *e = (const void *)v->base;
    const ElfW(Shdr) *sections = sections_of(v);
    if (!sections)
        return NULL;
    for (int i = 0; i < e->e_shnum; i++) {
        const char *name = text_at(v, sections[e->e_shstrndx].sh_offset + sections[i].sh_name);
        if (name && strcmp(name, ".text") == 0)
            return &sections[i];
    }
    return NULL;
}

/*
 * Whether the table of .eh_frame_hdr has a function of .text that is not startup code. Its format
 * is in the Linux Standard Base; the linkers write it with these three encodings. Each program has
 * entries for what the linker makes (.plt) and for crt1.o, whose text begins at the entry point.
 */
static bool has_unwind_tables(const struct gt_elf_view *v, const ElfW(Phdr) * ph)
{
    enum { LEAST = 64 /* bytes: startup code alone has less */, STARTUP = 64 };
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    const struct {
        unsigned char encodings[4];
        int32_t eh_frame;
        uint32_t count;
        int32_t entry[][2]; /* the function and its description, from the header's address on */
    } *table = table_at(v, ph->p_offset, ph->p_filesz, _Alignof(int32_t));
    const ElfW(Shdr) *text = find_text(v);
    if (!table || ph->p_filesz < sizeof *table)
        return false;
    if (!text || memcmp(table->encodings, usual, sizeof usual) != 0)
        return ph->p_filesz >= LEAST;
    ElfW(Addr) start = ((const ElfW(Ehdr) *)(const void *)v->base)->e_entry;
    size_t room = (ph->p_filesz - sizeof *table) / sizeof *table->entry;
    for (size_t i = 0; i < table->count && i < room; i++) {
        ElfW(Addr) function = ph->p_vaddr + (ElfW(Addr))(int64_t)table->entry[i][0];
        if (function - text->sh_addr < text->sh_size && function - start >= STARTUP)
            return true;
    }
    return false;
}

static bool table_defines(const struct gt_elf_view *v, const ElfW(Shdr) * table,
                          const ElfW(Shdr) * strings, const char *name)
{
    const ElfW(Sym) *symbol = table_at(v, table->sh_offset, table->sh_size, _Alignof(ElfW(Sym)));
    for (size_t i = 0; symbol && i < table->sh_size / sizeof *symbol; i++) {
        const char *text = at(v, strings->sh_offset + symbol[i].st_name, strlen(name) + 1);
        if (symbol[i].st_shndx != SHN_UNDEF && text && memcmp(text, name, strlen(name) + 1) == 0)
            return true;
    }
    return false;
}

bool gt_elf_defines(const struct gt_elf_view *v, const char *name)
{
    const ElfW(Ehdr) *e = (const void *)v->base;
    const ElfW(Shdr) *sections = v->native ? sections_of(v) : NULL;
    for (int i = 0; sections && i < e->e_shnum; i++) {
        const ElfW(Shdr) *s = &sections[i];
        if ((s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM) && s->sh_link < e->e_shnum &&
            table_defines(v, s, &sections[s->sh_link], name))
            return true;
    }
    return false;
}

static void read_headers(struct gt_elf_view *v)
{
    const ElfW(Phdr) * ph;
    const ElfW(Ehdr) *e = (const void *)v->base;
    v->type = e->e_type;
    v->whole = at(v, e->e_phoff, (uint64_t)e->e_phnum * sizeof *ph);
    for (int i = 0; i < e->e_phnum && (ph = header_at(v, i)); i++) {
        v->whole &= ph->p_type != PT_LOAD || at(v, ph->p_offset, ph->p_filesz);
        switch (ph->p_type) {
        case PT_INTERP: v->interpreter = text_at(v, ph->p_offset); break;
        case PT_DYNAMIC: read_dynamic(v, ph); break;
        case PT_GNU_EH_FRAME: v->unwinds = has_unwind_tables(v, ph); break;
        case PT_NOTE: v->go |= has_go_note(v, ph); break;
        }
    }
}

bool gt_elf_view(struct gt_elf_view *v, const void *base, size_t size)
{
    *v = (struct gt_elf_view){.base = base, .size = size};
    if (size < sizeof(ElfW(Ehdr)) || memcmp(base, ELFMAG, SELFMAG) != 0)
        return false;
    v->native = v->base[EI_CLASS] == CLASS && v->base[EI_DATA] == ORDER;
    if (v->native)
        read_headers(v);
    return true;
}

/* e_machine, which is at the same offset in both classes. */
static unsigned machine(const struct gt_elf_view *v)
{
    const unsigned char *p = v->base + offsetof(Elf64_Ehdr, e_machine);
    return v->base[EI_DATA] == ELFDATA2LSB ? p[0] | p[1] << 8 : p[1] | p[0] << 8;
}

const char *gt_elf_architecture(const struct gt_elf_view *v)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {{EM_386, "i386"},        {EM_X86_64, "x86-64"}, {EM_ARM, "ARM"},
                 {EM_AARCH64, "aarch64"}, {EM_RISCV, "RISC-V"},  {EM_PPC64, "PowerPC"},
                 {EM_S390, "s390"},       {EM_MIPS, "MIPS"},     {EM_LOONGARCH, "LoongArch"}};
    static char text[64];
    const char *bits = v->base[EI_CLASS] == ELFCLASS32 ? "32-bit " : "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].machine == machine(v)) {
            snprintf(text, sizeof text, "%s%s", bits, names[i].name);
            return text;
        }
    }
    snprintf(text, sizeof text, "%smachine %u", bits, machine(v));
    return text;
}

bool gt_elf_same_architecture(const struct gt_elf_view *a, const struct gt_elf_view *b)
{
    return a->base[EI_CLASS] == b->base[EI_CLASS] && a->base[EI_DATA] == b->base[EI_DATA] &&
           machine(a) == machine(b);
}
