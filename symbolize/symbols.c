/* See symbols.h. */
#include "symbols.h"

#include "encoder/base/arena.h"
#include "encoder/base/hash.h"

#include <string.h>

#define UNSIZED_MAX 65536 /* how far a symbol without a size may reach */

/* Of pthread_mutex_lock and __pthread_mutex_lock the first is what people call it. */
static uint16_t rank_of(const ElfW(Sym) * sym, const char *name)
{
    uint32_t bind = ELF64_ST_BIND(sym->st_info);
    uint32_t rank = bind == STB_GLOBAL ? 8 : bind == STB_WEAK ? 7 : 4;
    if (name[0] == '_' && name[1] != 'Z' && name[1] != 'R')
        rank -= 2;
    if (strchr(name, '@'))
        rank--;
    return (uint16_t)(2 * rank + (sym->st_size != 0));
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

struct table {
    const ElfW(Sym) * sym;
    size_t n, size;
    const char *strings;
};

/* false: the file has none of that name. */
static bool find_table(const struct gt_image *image, const char *symbols, const char *strings,
                       struct table *t)
{
    size_t bytes;
    t->sym = gt_image_section(image, symbols, &bytes);
    t->strings = gt_image_section(image, strings, &t->size);
    t->n = bytes / sizeof *t->sym;
    bool aligned = (uintptr_t)t->sym % _Alignof(ElfW(Sym)) == 0;
    return t->sym && t->strings && t->size && !t->strings[t->size - 1] && aligned;
}

static const char *name_in(const struct table *t, const ElfW(Sym) * sym)
{
    return sym->st_name < t->size ? t->strings + sym->st_name : "";
}

static bool is_defined(const ElfW(Sym) * sym)
{
    return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS;
}

static void add_table(struct gt_symbols *s, enum gt_symbols_of which, const struct table *t)
{
    for (size_t i = 1; i < t->n; i++) {
        const ElfW(Sym) *sym = &t->sym[i];
        const char *name = name_in(t, sym);
        if (!is_defined(sym) || !is_wanted(sym, which) || !*name || *name == '$')
            continue;
        struct gt_symbol *all = gt_pages_grow(s->symbol, s->n, &s->capacity, sizeof *all);
        if (!all)
            continue;
        s->symbol = all;
        all[s->n++] = (struct gt_symbol){
            .addr = sym->st_value,
            .name = name,
            .size = sym->st_size < UINT32_MAX ? (uint32_t)sym->st_size : UINT32_MAX,
            .rank = rank_of(sym, name),
            .local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL,
        };
    }
}

void gt_symbols_add(struct gt_symbols *s, const struct gt_image *image, enum gt_symbols_of which)
{
    static const char *const tables[][2] = {{".symtab", ".strtab"}, {".dynsym", ".dynstr"}};
    struct table t;
    for (int i = 0; i < 2; i++) {
        if (find_table(image, tables[i][0], tables[i][1], &t))
            add_table(s, which, &t);
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

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0;
    for (; *name; name++)
        hash = gt_hash_mix(hash, (uint8_t)*name);
    return hash;
}

/* Out of memory, none. */
void gt_symbols_find_shared(struct gt_symbols *s)
{
    struct gt_pair *order = s->n ? gt_pages_alloc(s->n * sizeof *order) : NULL;
    for (size_t i = 0; order && i < s->n; i++)
        order[i] = (struct gt_pair){hash_of(s->symbol[i].name), i};
    bool sorted = order && gt_sort(order, s->n);
    for (size_t i = 1; sorted && i < s->n; i++) {
        struct gt_symbol *one = &s->symbol[order[i - 1].value], *other = &s->symbol[order[i].value];
        if (order[i - 1].key == order[i].key && strcmp(one->name, other->name) == 0)
            one->shared = other->shared = true;
    }
    gt_pages_free(order, s->n * sizeof *order);
}

/* Variables of a name, one after the other. */
struct walk {
    struct table table;
    size_t next;
    const char *file; /* the source that local symbols are of, from here on */
};

/* The next one, and its source; or NULL. */
static const ElfW(Sym) * next_named(struct walk *w, const char *name, const char **source)
{
    while (w->next < w->table.n) {
        const ElfW(Sym) *sym = &w->table.sym[w->next++];
        bool local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL;
        if (ELF64_ST_TYPE(sym->st_info) == STT_FILE)
            w->file = name_in(&w->table, sym);
        *source = local ? w->file : "";
        if (is_defined(sym) && is_wanted(sym, GT_VARIABLES) &&
            strcmp(name_in(&w->table, sym), name) == 0)
            return sym;
    }
    return NULL;
}

const char *gt_symbols_source(const struct gt_image *image, const struct gt_symbol *variable)
{
    struct walk begin = {.next = 1}, w;
    const char *source, *its = NULL;
    if (!find_table(image, ".symtab", ".strtab", &begin.table))
        return NULL;
    w = begin;
    for (const ElfW(Sym) * sym; !its && (sym = next_named(&w, variable->name, &source));)
        its = sym->st_value == variable->addr ? source : NULL;
    w = begin;
    for (const ElfW(Sym) * sym; its && (sym = next_named(&w, variable->name, &source));) {
        if (sym->st_value != variable->addr && source && strcmp(source, its) == 0)
            its = NULL;
    }
    return its;
}
