/* See symbols.h. */
#include "symbols.h"

#include "encoder/base/arena.h"

#include <string.h>

#define UNSIZED_MAX 65536 /* how far a symbol without a size may reach */

/* Of pthread_mutex_lock and __pthread_mutex_lock the first is what people call it. */
static uint32_t rank_of(const ElfW(Sym) * sym, const char *name)
{
    uint32_t bind = ELF64_ST_BIND(sym->st_info);
    uint32_t rank = bind == STB_GLOBAL ? 8 : bind == STB_WEAK ? 7 : 4;
    if (name[0] == '_' && name[1] != 'Z' && name[1] != 'R')
        rank -= 2;
    if (strchr(name, '@'))
        rank--;
    return 2 * rank + (sym->st_size != 0);
}

static bool is_wanted(const ElfW(Sym) * sym, enum gt_symbols_of which)
{
    if (which == GT_VARIABLES)
        return ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_size;
    switch (ELF64_ST_TYPE(sym->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC: return true;
    case STT_NOTYPE: return ELF64_ST_BIND(sym->st_info) != STB_LOCAL || sym->st_size; /* assembly */
    default: return false;
    }
}

static void add_table(struct gt_symbols *s, enum gt_symbols_of which, const ElfW(Sym) * sym,
                      size_t count, const char *strings, size_t size)
{
    for (size_t i = 1; i < count; i++) {
        if (sym[i].st_shndx == SHN_UNDEF || sym[i].st_shndx == SHN_ABS ||
            !is_wanted(&sym[i], which) || sym[i].st_name >= size)
            continue;
        const char *name = strings + sym[i].st_name;
        if (!*name || *name == '$')
            continue;
        struct gt_symbol *all = gt_pages_grow(s->symbol, s->n, &s->capacity, sizeof *all);
        if (!all)
            continue;
        s->symbol = all;
        all[s->n++] =
            (struct gt_symbol){sym[i].st_value, name,
                               sym[i].st_size < UINT32_MAX ? (uint32_t)sym[i].st_size : UINT32_MAX,
                               rank_of(&sym[i], name)};
    }
}

void gt_symbols_add(struct gt_symbols *s, const struct gt_image *image, enum gt_symbols_of which)
{
    static const char *const tables[][2] = {{".symtab", ".strtab"}, {".dynsym", ".dynstr"}};
    for (int i = 0; i < 2; i++) {
        size_t bytes, size;
        const void *symbols = gt_image_section(image, tables[i][0], &bytes);
        const char *strings = gt_image_section(image, tables[i][1], &size);
        bool aligned = (uintptr_t)symbols % _Alignof(ElfW(Sym)) == 0;
        if (symbols && strings && size && !strings[size - 1] && aligned)
            add_table(s, which, symbols, bytes / sizeof(ElfW(Sym)), strings, size);
    }
}

/* One symbol per address, the best. Out of memory, none. */
void gt_symbols_finish(struct gt_symbols *s)
{
    size_t count = s->n;
    struct gt_pair *order = count ? gt_pages_alloc(count * sizeof *order) : NULL;
    struct gt_symbol *out = count ? gt_pages_alloc(count * sizeof *out) : NULL;
    for (size_t i = 0; order && i < count; i++)
        order[i] = (struct gt_pair){s->symbol[i].addr, i};
    bool sorted = order && out && gt_sort(order, count);
    s->n = 0;
    for (size_t i = 0; sorted && i < count; i++) {
        const struct gt_symbol *sym = &s->symbol[order[i].value];
        if (s->n == 0 || out[s->n - 1].addr != sym->addr)
            out[s->n++] = *sym;
        else if (sym->rank > out[s->n - 1].rank)
            out[s->n - 1] = *sym;
    }
    gt_pages_free(order, count * sizeof *order);
    gt_pages_free(s->symbol, s->capacity * sizeof *s->symbol);
    s->symbol = out;
    s->capacity = count;
    s->finished = true;
}

void gt_symbols_free(struct gt_symbols *s)
{
    gt_pages_free(s->symbol, s->capacity * sizeof *s->symbol);
    *s = (struct gt_symbols){0};
}

static bool covers(const struct gt_symbol *sym, uint64_t addr)
{
    return addr - sym->addr < (sym->size ? sym->size : UNSIZED_MAX);
}

const struct gt_symbol *gt_symbols_find(const struct gt_symbols *s, uint64_t addr)
{
    size_t lo = gt_count_up_to(s->symbol, s->finished ? s->n : 0, sizeof *s->symbol, 8, addr);
    /* A few steps back: labels inside a function may come between. */
    for (size_t at = lo; at > 0 && lo - at < 16; at--) {
        if (s->symbol[at - 1].size && covers(&s->symbol[at - 1], addr))
            return &s->symbol[at - 1];
    }
    const struct gt_symbol *nearest = lo ? &s->symbol[lo - 1] : NULL;
    return nearest && !nearest->size && covers(nearest, addr) ? nearest : NULL;
}
