/* See symbols.h. */
#include "symbols.h"

#include "encoder/base/arena.h"
#include "encoder/base/hash.h"

#include <string.h>

#define UNSIZED_MAX 65536 /* how far a symbol without a size may reach */

enum { NEAR = 16 }; /* symbols: labels inside a function may come between */

/* Tables of symbols ---------------------------------------------------------------------------- */

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

/* No branches: kinds follow each other in no order, and there are many thousands. */
static bool is_asked(const ElfW(Sym) * sym, enum gt_symbols_of which)
{
    unsigned type = ELF64_ST_TYPE(sym->st_info);
    bool global = ELF64_ST_BIND(sym->st_info) != STB_LOCAL, sized = sym->st_size != 0;
    bool function = (type == STT_FUNC) | (type == STT_GNU_IFUNC);
    bool assembly = (type == STT_NOTYPE) & (global | sized);
    bool variable = (type == STT_OBJECT) & sized;
    bool defined = (sym->st_shndx != SHN_UNDEF) & (sym->st_shndx != SHN_ABS);
    return defined & (which == GT_VARIABLES ? variable : function | assembly);
}

/* false: the file has none of that name. */
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

/* Those that are asked for, numbered over all tables. */
enum { TABLE_SHIFT = 29 };

static const ElfW(Sym) * symbol_at(const struct gt_symbols *s, uint32_t number)
{
    return &s->table[number >> TABLE_SHIFT].sym[number & ((1u << TABLE_SHIFT) - 1)];
}

static const char *name_of(const struct gt_symbols *s, uint32_t number)
{
    return name_in(&s->table[number >> TABLE_SHIFT], symbol_at(s, number));
}

/* false: that is no name. */
static bool describe(const struct gt_symbols *s, uint32_t number, struct gt_symbol *out)
{
    const ElfW(Sym) *sym = symbol_at(s, number);
    const char *name = name_of(s, number);
    *out = (struct gt_symbol){
        .addr = sym->st_value,
        .name = name,
        .size = sym->st_size < UINT32_MAX ? (uint32_t)sym->st_size : UINT32_MAX,
        .rank = rank_of(sym, name),
        .local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL,
    };
    return *name && *name != '$';
}

/* In order of addresses ------------------------------------------------------------------------ */

/* The numbers of those that are asked for. No name is read, which would bring all into memory. */
static uint32_t *collect(struct gt_symbols *s, size_t *room)
{
    *room = 1;
    for (int k = 0; k < s->tables; k++)
        *room += s->table[k].n;
    uint32_t *all = gt_pages_alloc(*room * sizeof *all);
    for (int k = 0; all && k < s->tables; k++) {
        const struct gt_symbol_table *t = &s->table[k];
        for (size_t i = 1; i < t->n && !(i >> TABLE_SHIFT); i++) {
            all[s->n] = ((uint32_t)k << TABLE_SHIFT) + (uint32_t)i;
            s->n += is_asked(&t->sym[i], s->which);
        }
    }
    return all;
}

/* A file that is mapped may change: one that was in another place is in some bucket. */
static size_t bucket_of(const struct gt_symbols *s, uint64_t addr)
{
    uint64_t bucket = (addr - s->lo) >> s->shift;
    return bucket < s->buckets ? bucket : s->buckets - 1;
}

/* Of some four symbols each. */
static void divide(struct gt_symbols *s, const uint32_t *all)
{
    enum { IN_ONE = 4 };
    uint64_t hi = 0;
    s->lo = UINT64_MAX;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t at = symbol_at(s, all[i])->st_value;
        s->lo = at < s->lo ? at : s->lo;
        hi = at > hi ? at : hi;
    }
    while ((hi - s->lo) >> s->shift > s->n / IN_ONE)
        s->shift++;
    s->buckets = ((hi - s->lo) >> s->shift) + 1;
}

/*
 * Once. Not quite, but in buckets: a short run asks a compiler with 30,000 symbols for ten names.
 * Out of memory, none.
 */
static void sort(struct gt_symbols *s)
{
    size_t room;
    if (s->sorted)
        return;
    uint32_t *all = collect(s, &room);
    s->sorted = true;
    if (s->n) {
        divide(s, all);
        s->first = gt_pages_alloc((s->buckets + 2) * sizeof *s->first);
        s->symbol = gt_pages_alloc(s->n * sizeof *s->symbol);
    }
    if (s->first && s->symbol) {
        /* Two ahead: one is what each bucket has been filled up to, until it is full. */
        for (size_t i = 0; i < s->n; i++)
            s->first[bucket_of(s, symbol_at(s, all[i])->st_value) + 2]++;
        for (size_t b = 2; b < s->buckets + 2; b++)
            s->first[b] += s->first[b - 1];
        for (size_t i = 0; i < s->n; i++) {
            uint32_t *end = &s->first[bucket_of(s, symbol_at(s, all[i])->st_value) + 1];
            if (*end < s->n)
                s->symbol[(*end)++] = all[i];
        }
    }
    gt_pages_free(all, room * sizeof *all);
}

/* By name -------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0;
    for (; *name; name++)
        hash = gt_hash_mix(hash, (uint8_t)*name);
    return hash;
}

/* Out of memory, none is. */
void gt_symbols_find_shared(struct gt_symbols *s)
{
    size_t n = 0;
    sort(s);
    struct gt_pair *all = s->symbol ? gt_pages_alloc(s->n * sizeof *all) : NULL;
    for (; all && n < s->n; n++)
        all[n] = (struct gt_pair){hash_of(name_of(s, s->symbol[n])), s->symbol[n]};
    s->by_name = all;
    if (all && !gt_sort(all, n)) {
        gt_pages_free(all, s->n * sizeof *all);
        s->by_name = NULL;
    }
}

static bool is_shared(const struct gt_symbols *s, const struct gt_symbol *one)
{
    if (!s->by_name)
        return false;
    uint64_t hash = hash_of(one->name);
    size_t end = gt_count_up_to(s->by_name, s->n, sizeof *s->by_name, 8, hash);
    for (size_t i = end; i > 0 && s->by_name[i - 1].key == hash; i--) {
        uint32_t other = (uint32_t)s->by_name[i - 1].value;
        if (symbol_at(s, other)->st_value != one->addr && strcmp(name_of(s, other), one->name) == 0)
            return true;
    }
    return false;
}

/* Around an address ---------------------------------------------------------------------------- */

/* Those nearest before an address, sorted. */
struct near {
    size_t n;
    struct gt_symbol symbol[NEAR];
};

/* Of several at one address the best; the lowest makes room. */
static void put(struct near *near, const struct gt_symbol *symbol)
{
    struct gt_symbol *all = near->symbol;
    size_t at = gt_count_up_to(all, near->n, sizeof *all, 8, symbol->addr);
    if (at && all[at - 1].addr == symbol->addr) {
        if (symbol->rank > all[at - 1].rank)
            all[at - 1] = *symbol;
        return;
    }
    if (near->n < NEAR) {
        memmove(all + at + 1, all + at, (near->n++ - at) * sizeof *all);
    } else if (at) {
        memmove(all, all + 1, (at - 1) * sizeof *all);
        at--;
    } else
        return;
    all[at] = *symbol;
}

static void find_near(const struct gt_symbols *s, uint64_t addr, struct near *near)
{
    struct gt_symbol symbol;
    bool any = s->first && s->symbol && addr >= s->lo;
    for (size_t b = any ? bucket_of(s, addr) + 1 : 0; b-- > 0 && near->n < NEAR;) {
        for (uint32_t i = s->first[b]; i < s->first[b + 1]; i++) {
            uint64_t at = symbol_at(s, s->symbol[i])->st_value;
            bool is_near = at <= addr && (near->n < NEAR || at >= near->symbol[0].addr);
            if (is_near && describe(s, s->symbol[i], &symbol))
                put(near, &symbol);
        }
    }
}

static bool covers(const struct gt_symbol *sym, uint64_t addr)
{
    return addr - sym->addr < (sym->size ? sym->size : UNSIZED_MAX);
}

bool gt_symbols_find(struct gt_symbols *s, uint64_t addr, struct gt_symbol *out)
{
    struct near near = {.n = 0};
    sort(s);
    find_near(s, addr, &near);
    struct gt_symbol *last = near.n ? &near.symbol[near.n - 1] : NULL, *found = last;
    while (found && !(found->size && covers(found, addr)))
        found = found == near.symbol ? NULL : found - 1;
    if (!found && last && !last->size && covers(last, addr))
        found = last;
    if (found) {
        *out = *found;
        out->shared = is_shared(s, found);
    }
    return found;
}

void gt_symbols_free(struct gt_symbols *s)
{
    gt_pages_free(s->symbol, s->n * sizeof *s->symbol);
    gt_pages_free(s->first, (s->buckets + 2) * sizeof *s->first);
    gt_pages_free(s->by_name, s->n * sizeof *s->by_name);
    *s = (struct gt_symbols){0};
}

/* The source of one of several of a name ------------------------------------------------------- */

/* Variables of a name, one after the other. */
struct walk {
    struct gt_symbol_table table;
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
        if (is_asked(sym, GT_VARIABLES) && strcmp(name_in(&w->table, sym), name) == 0)
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
