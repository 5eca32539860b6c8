/* See symbols.h. */
#include "symbols.h"

#include "encoder/base/arena.h"
#include "encoder/base/hash.h"

#include <string.h>

#define UNSIZED_MAX 65536 /* how far a symbol without a size may reach */

enum { NEAR = 16 }; /* addresses to look at: labels inside a function may come between */

/* Tables of symbols ---------------------------------------------------------------------------- */

/* The rank of a name among those at one address: pthread_mutex_lock is better than
 * __pthread_mutex_lock, since people call it so. */
static int rank_of(const ElfW(Sym) * sym, const char *name)
{
    int bind = ELF64_ST_BIND(sym->st_info);
    int rank = bind == STB_GLOBAL ? 8 : bind == STB_WEAK ? 7 : 4;
    if (name[0] == '_' && name[1] != 'Z' && name[1] != 'R')
        rank -= 2;
    if (strchr(name, '@'))
        rank--;
    return 2 * rank + (sym->st_size != 0);
}

static bool is_defined(const ElfW(Sym) * sym)
{
    return (sym->st_shndx != SHN_UNDEF) & (sym->st_shndx != SHN_ABS);
}

/* Whether the symbol's type fits. */
static bool is_kind(unsigned info, bool sized, enum gt_symbols_of which)
{
    unsigned type = ELF64_ST_TYPE(info);
    bool global = ELF64_ST_BIND(info) != STB_LOCAL;
    if (which == GT_VARIABLES)
        return type == STT_OBJECT && sized;
    return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && (global || sized));
}

static bool is_asked(const ElfW(Sym) * sym, enum gt_symbols_of which)
{
    return is_defined(sym) && is_kind(sym->st_info, sym->st_size, which);
}

/* Finds a symbol table and its strings. false: the file has no such table. */
static bool find_table(const struct gt_image *image, const char *symbols, const char *strings,
                       struct gt_symbol_table *t)
{
    size_t bytes;
    t->sym = gt_image_section(image, symbols, &bytes);
    t->strings = gt_image_section(image, strings, &t->size);
    t->n = bytes / sizeof *t->sym;
    bool aligned = (uintptr_t)t->sym % _Alignof(ElfW(Sym)) == 0;
    return t->sym && t->strings && t->size && !t->strings[t->size - 1] && aligned;
}

static const char *name_in(const struct gt_symbol_table *t, const ElfW(Sym) * sym)
{
    return sym->st_name < t->size ? t->strings + sym->st_name : "";
}

void gt_symbols_add(struct gt_symbols *s, const struct gt_image *image)
{
    static const char *const tables[][2] = {{".symtab", ".strtab"}, {".dynsym", ".dynstr"}};
    for (int i = 0; i < 2; i++)
        s->tables += find_table(image, tables[i][0], tables[i][1], &s->table[s->tables]);
}

/* The symbol of a number. Numbers count through all tables; 0 is none, as a table's first entry is
 * no symbol. */
static const ElfW(Sym) * symbol_at(const struct gt_symbols *s, uint32_t number, const char **name)
{
    const struct gt_symbol_table *t = s->table;
    for (; number >= t->n; t++)
        number -= (uint32_t)t->n;
    *name = name_in(t, &t->sym[number]);
    return &t->sym[number];
}

static bool is_name(const char *name)
{
    return *name && *name != '$';
}

static struct gt_symbol describe(const struct gt_symbols *s, uint32_t number)
{
    const char *name;
    const ElfW(Sym) *sym = symbol_at(s, number, &name);
    return (struct gt_symbol){
        .addr = sym->st_value,
        .name = name,
        .size = sym->st_size < UINT32_MAX ? (uint32_t)sym->st_size : UINT32_MAX,
        .local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL,
    };
}

/* In order of addresses ------------------------------------------------------------------------ */

/* The bucket of an address. Symbols outside the module are in an additional one, never searched. */
static size_t bucket_of(const struct gt_symbols *s, uint64_t addr)
{
    uint64_t bucket = (addr - s->lo) >> s->shift;
    return bucket < s->buckets ? bucket : s->buckets;
}

/*
 * Fills the buckets with all symbols, even undefined ones and those of the other kind. Reads no
 * names, which would bring all of them into memory. Uses a copy of the struct, so that the compiler
 * knows that no store changes it.
 */
static void fill(const struct gt_symbols *symbols)
{
    const struct gt_symbols s = *symbols;
    uint32_t number = 0;
    for (int k = 0; k < s.tables; k++) {
        for (size_t i = 0; i < s.table[k].n; i++, number++) {
            uint32_t *last = &s.last[bucket_of(&s, s.table[k].sym[i].st_value)];
            s.before[number] = *last;
            *last = number;
        }
    }
}

/*
 * Sorts the symbols, once, into buckets of some eight. Within a bucket they stay unsorted: a short
 * run of a compiler with 30,000 symbols needs ten names. Without memory, no symbol is found.
 */
static void sort(struct gt_symbols *s)
{
    enum { IN_ONE = 8 };
    if (s->sorted)
        return;
    s->sorted = true;
    for (int k = 0; k < s->tables; k++)
        s->n += s->table[k].n;
    if (s->n == 0 || s->n > UINT32_MAX)
        return;
    while (s->shift < 63 && (s->hi - s->lo) >> s->shift > s->n / IN_ONE)
        s->shift++;
    s->buckets = ((s->hi - s->lo) >> s->shift) + 1;
    s->last = gt_pages_alloc((s->buckets + 1) * sizeof *s->last);
    s->before = gt_pages_alloc(s->n * sizeof *s->before);
    if (s->last && s->before)
        fill(s);
}

/* By name -------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0;
    for (; *name; name++)
        hash = gt_hash_mix(hash, (uint8_t)*name);
    return hash;
}

/* Without memory, no name counts as shared. */
void gt_symbols_find_shared(struct gt_symbols *s)
{
    const char *name;
    sort(s);
    struct gt_pair *all = s->last && s->before ? gt_pages_alloc(s->n * sizeof *all) : NULL;
    for (size_t b = 0; all && b < s->buckets; b++) {
        for (uint32_t i = s->last[b]; i; i = s->before[i]) {
            if (is_asked(symbol_at(s, i, &name), s->which))
                all[s->names++] = (struct gt_pair){hash_of(name), i};
        }
    }
    s->by_name = all;
    if (all && !gt_sort(all, s->names)) {
        gt_pages_free(all, s->n * sizeof *all);
        s->by_name = NULL;
    }
}

static bool is_shared(const struct gt_symbols *s, const struct gt_symbol *one)
{
    if (!s->by_name)
        return false;
    uint64_t hash = hash_of(one->name);
    size_t end = gt_count_up_to(s->by_name, s->names, sizeof *s->by_name, 8, hash);
    for (size_t i = end; i > 0 && s->by_name[i - 1].key == hash; i--) {
        const char *name;
        const ElfW(Sym) *other = symbol_at(s, (uint32_t)s->by_name[i - 1].value, &name);
        if (other->st_value != one->addr && strcmp(name, one->name) == 0)
            return true;
    }
    return false;
}

/* Around an address ---------------------------------------------------------------------------- */

/* The nearest addresses with symbols up to an address, sorted, with the largest size at each. */
struct near {
    size_t n;
    struct nearby {
        uint64_t at, size;
    } symbol[NEAR];
};

/* Adds a symbol; if there is no room, drops the lowest address. */
static void put(struct near *near, struct nearby symbol)
{
    struct nearby *all = near->symbol;
    size_t at = gt_count_up_to(all, near->n, sizeof *all, 8, symbol.at);
    if (at && all[at - 1].at == symbol.at) {
        if (symbol.size > all[at - 1].size)
            all[at - 1].size = symbol.size;
        return;
    }
    if (near->n < NEAR) {
        memmove(all + at + 1, all + at, (near->n++ - at) * sizeof *all);
    } else if (at) {
        memmove(all, all + 1, (at - 1) * sizeof *all);
        at--;
    } else
        return;
    all[at] = symbol;
}

static void look_into(const struct gt_symbols *s, size_t bucket, uint64_t addr, struct near *near)
{
    const char *name;
    for (uint32_t i = s->last[bucket]; i; i = s->before[i]) {
        const ElfW(Sym) *sym = symbol_at(s, i, &name);
        uint64_t at = sym->st_value;
        bool is_near = at <= addr && (near->n < NEAR || at >= near->symbol[0].at);
        if (is_near && is_asked(sym, s->which))
            put(near, (struct nearby){at, sym->st_size});
    }
}

/* The best symbol at an address, or 0. Names are read only here: each may be on another page. */
static uint32_t best_at(const struct gt_symbols *s, uint64_t address)
{
    const char *name;
    uint32_t best = 0;
    int rank = -1;
    for (uint32_t i = s->last[bucket_of(s, address)]; i; i = s->before[i]) {
        const ElfW(Sym) *sym = symbol_at(s, i, &name);
        if (sym->st_value != address || !is_asked(sym, s->which) || !is_name(name))
            continue;
        int its = rank_of(sym, name);
        if (its > rank) {
            rank = its;
            best = i;
        }
    }
    return best;
}

/* The nearest symbol that has a size and reaches up to addr; or 0. */
static uint32_t sized_around(const struct gt_symbols *s, const struct near *near, uint64_t addr)
{
    const char *name;
    for (size_t i = near->n; i > 0; i--) {
        const struct nearby *one = &near->symbol[i - 1];
        uint32_t number = addr - one->at < one->size ? best_at(s, one->at) : 0;
        if (number && addr - one->at < symbol_at(s, number, &name)->st_size)
            return number;
    }
    return 0;
}

/* The nearest symbol, if it has no size; or 0. */
static uint32_t unsized_around(const struct gt_symbols *s, const struct near *near, uint64_t addr)
{
    const char *name;
    uint32_t number = 0;
    for (size_t i = near->n; i > 0 && !number; i--)
        number = best_at(s, near->symbol[i - 1].at);
    const ElfW(Sym) *sym = number ? symbol_at(s, number, &name) : NULL;
    return sym && !sym->st_size && addr - sym->st_value < UNSIZED_MAX ? number : 0;
}

bool gt_symbols_find(struct gt_symbols *s, uint64_t addr, struct gt_symbol *out)
{
    struct near near = {.n = 0};
    uint32_t found = 0;
    sort(s);
    bool any = s->last && s->before && addr - s->lo < s->hi - s->lo;
    for (size_t b = any ? bucket_of(s, addr) + 1 : 0; b-- > 0 && near.n < NEAR && !found;) {
        look_into(s, b, addr, &near);
        found = sized_around(s, &near, addr);
    }
    found = found ? found : unsized_around(s, &near, addr);
    if (!found)
        return false;
    *out = describe(s, found);
    out->shared = is_shared(s, out);
    return true;
}

void gt_symbols_free(struct gt_symbols *s)
{
    gt_pages_free(s->last, (s->buckets + 1) * sizeof *s->last);
    gt_pages_free(s->before, s->n * sizeof *s->before);
    gt_pages_free(s->by_name, s->n * sizeof *s->by_name);
    *s = (struct gt_symbols){0};
}

/* The source of one of several variables of a name --------------------------------------------- */

/* A walk over the variables of a name. */
struct walk {
    struct gt_symbol_table table;
    size_t next;
    const char *file; /* the source file of the local symbols that follow */
};

/* The next variable of that name, and its source; or NULL. */
static const ElfW(Sym) * next_named(struct walk *w, const char *name, const char **source)
{
    while (w->next < w->table.n) {
        const ElfW(Sym) *sym = &w->table.sym[w->next++];
        bool local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL;
        if (ELF64_ST_TYPE(sym->st_info) == STT_FILE)
            w->file = name_in(&w->table, sym);
        *source = local ? w->file : "";
        if (is_defined(sym) && is_kind(sym->st_info, sym->st_size, GT_VARIABLES) &&
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
