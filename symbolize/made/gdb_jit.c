/*
 * See gdb_jit.h. We read memory through /proc/self/mem: if another thread has just freed it, the
 * read fails and causes no fault. If the list changes while we read, we either see one of the two
 * lists or notice the change, since each entry is read again at the end.
 */
#include "gdb_jit.h"

#include "symbolize/dwarf/demangle.h"
#include "symbolize/elf/elf_names.h"

#include "encoder/base/file.h"
#include "encoder/base/hash.h"

#include <elf.h>
#include <string.h>

enum { ENTRIES_MAX = 4096, SECTIONS_MAX = 4096, NAME_BYTES = 1000 };
enum { TABLE_MAX = 4 << 20 }; /* bytes of a symbol table, or of its names */

struct descriptor {
    uint32_t version, action;
    uint64_t relevant, first;
};

struct entry {
    uint64_t next, previous, file, size;
};

/* A copy of a part of the memory, in pages of its own. */
struct part {
    void *at;
    size_t size;
};

struct reading {
    int mem;
    uint64_t hash;                  /* of all memory read */
    struct gt_made_functions *made; /* NULL: only the hash is wanted */
    uint64_t now_ns;
};

/* Finding it --------------------------------------------------------------------------------- */

static int find_descriptor(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct link_map map = {.l_addr = info->dlpi_addr};
    uint64_t *found = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            map.l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    const ElfW(Sym) *symbol = gt_elf_definition(&map, "__jit_debug_descriptor");
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT)
        return 0;
    *found = info->dlpi_addr + symbol->st_value;
    return 1;
}

bool gt_gdb_jit_find(struct gt_gdb_jit *jit)
{
    jit->descriptor = 0;
    gt_elf_each_module(find_descriptor, &jit->descriptor);
    return jit->descriptor;
}

/* Reading ------------------------------------------------------------------------------------ */

static bool read_memory(const struct reading *r, void *to, size_t size, uint64_t from)
{
    return gt_file_read(r->mem, to, size, (off_t)from) == (ssize_t)size;
}

static void give_back(struct part *part)
{
    gt_pages_free(part->at, part->size);
    *part = (struct part){NULL, 0};
}

/* Copies a part of the file. false: the part exceeds the file, or cannot be read. */
static bool read_part(struct reading *r, const struct entry *e, uint64_t offset, uint64_t size,
                      struct part *part)
{
    *part = (struct part){NULL, 0};
    if (!size || size > TABLE_MAX || offset > e->size || size > e->size - offset)
        return false;
    *part = (struct part){gt_pages_alloc(size), size};
    if (!part->at || !read_memory(r, part->at, size, e->file + offset)) {
        give_back(part);
        return false;
    }
    for (size_t i = 0; i < size; i += sizeof r->hash) /* pages end with zeros */
        r->hash = gt_hash_mix(r->hash, *(const uint64_t *)((const char *)part->at + i));
    return true;
}

static const Elf64_Shdr *section_of(const struct part *sections, uint64_t index)
{
    return index < sections->size / sizeof(Elf64_Shdr) ? (const Elf64_Shdr *)sections->at + index
                                                       : NULL;
}

static void add_symbol(struct reading *r, const Elf64_Sym *symbol, uint64_t bias,
                       const struct part *names)
{
    struct gt_made_code code = {.since = 0, .known = r->now_ns};
    char room[NAME_BYTES];
    const char *name = (const char *)names->at + symbol->st_name;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_name >= names->size ||
        !memchr(name, 0, names->size - symbol->st_name) || !*name ||
        symbol->st_size > UINT64_MAX - bias - symbol->st_value)
        return;
    code.name = gt_demangle(name, room, sizeof room);
    code.lo = symbol->st_value + bias;
    code.hi = code.lo + symbol->st_size;
    gt_made_add(r->made, &code, strnlen(code.name, NAME_BYTES));
}

/* Adds the functions of a symbol table. In a relocatable file, a symbol's value counts from the
 * address of its section. */
static void add_symbols(struct reading *r, const struct part *symbols, const struct part *names,
                        const struct part *sections, bool relocatable)
{
    const Elf64_Sym *symbol = symbols->at;
    for (size_t i = 1; r->made && i < symbols->size / sizeof *symbol; i++) {
        const Elf64_Shdr *its = section_of(sections, symbol[i].st_shndx);
        if (symbol[i].st_shndx != SHN_UNDEF && its && (!relocatable || its->sh_addr))
            add_symbol(r, &symbol[i], relocatable ? its->sh_addr : 0, names);
    }
}

static void read_table(struct reading *r, const struct entry *e, const struct part *sections,
                       const Elf64_Shdr *table, bool relocatable)
{
    const Elf64_Shdr *strings = section_of(sections, table->sh_link);
    struct part symbols, names;
    if (!strings || !read_part(r, e, table->sh_offset, table->sh_size, &symbols))
        return;
    if (read_part(r, e, strings->sh_offset, strings->sh_size, &names))
        add_symbols(r, &symbols, &names, sections, relocatable);
    give_back(&names);
    give_back(&symbols);
}

static bool is_elf(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum <= SECTIONS_MAX;
}

static void read_file(struct reading *r, const struct entry *e)
{
    Elf64_Ehdr header;
    struct part sections;
    if (e->size < sizeof header || !read_memory(r, &header, sizeof header, e->file) ||
        !is_elf(&header) ||
        !read_part(r, e, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr), &sections))
        return;
    for (size_t i = 0; i < header.e_shnum; i++) {
        const Elf64_Shdr *section = section_of(&sections, i);
        if (section->sh_type == SHT_SYMTAB)
            read_table(r, e, &sections, section, header.e_type == ET_REL);
    }
    give_back(&sections);
}

/* Reads the list to `entries`. Returns their number; -1: the list is too long, or is changing. */
static long read_list(struct reading *r, uint64_t descriptor, struct entry *entries)
{
    struct descriptor its;
    long n = 0;
    if (!read_memory(r, &its, sizeof its, descriptor) || its.version != 1)
        return 0;
    for (uint64_t at = its.first, before = 0; at; before = at, at = entries[n++].next) {
        if (n == ENTRIES_MAX || !read_memory(r, &entries[n], sizeof *entries, at) ||
            entries[n].previous != before)
            return -1;
        r->hash = gt_hash_mix(gt_hash_mix(r->hash, at), entries[n].file);
    }
    return n;
}

/* Reads all files in the list, and adds their functions to r->made. Returns a hash of their
 * contents; 0: the list is changing. */
static uint64_t read_all(struct reading *r, uint64_t descriptor, struct entry *entries)
{
    struct entry *again = entries + ENTRIES_MAX;
    struct reading second = *r;
    r->hash = 1;
    long n = read_list(r, descriptor, entries);
    second.hash = 1;
    uint64_t hash = r->hash;
    for (long i = 0; i < n; i++)
        read_file(r, &entries[i]);
    bool same = n >= 0 && read_list(&second, descriptor, again) == n && second.hash == hash;
    return same ? r->hash | 1 : 0;
}

static bool update(struct gt_gdb_jit *jit, struct gt_made_functions *made, struct reading *r,
                   struct entry *entries)
{
    uint64_t hash = read_all(r, jit->descriptor, entries);
    if (!hash || hash == jit->seen)
        return hash;
    r->made = made;
    gt_made_begin(made);
    gt_made_all_gone(made, r->now_ns);
    jit->seen = read_all(r, jit->descriptor, entries);
    gt_made_end(made);
    return jit->seen == hash;
}

bool gt_gdb_jit_read(struct gt_gdb_jit *jit, struct gt_made_functions *made, uint64_t now_ns)
{
    const size_t bytes = 2 * ENTRIES_MAX * sizeof(struct entry);
    struct reading r = {.mem = gt_file_open("/proc/self/mem", 0), .now_ns = now_ns};
    struct entry *entries = r.mem >= 0 ? gt_pages_alloc(bytes) : NULL;
    bool known = entries && update(jit, made, &r, entries);
    gt_pages_free(entries, bytes);
    if (r.mem >= 0)
        gt_file_close(r.mem);
    return known;
}
