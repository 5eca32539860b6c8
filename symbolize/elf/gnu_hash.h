/*
 * The look-up of a name in the GNU hash table of a module: header, Bloom filter, buckets, one chain
 * word a symbol. The table holds definitions only. elf_names.c looks into its own process, and
 * `gotrace stacks` into memory that it copies, which may hold anything.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_gnu_hash {
    uintptr_t table, symbols, strings; /* addresses */
};

/* `size` bytes at the address, valid until the next call; NULL: they cannot be read. */
typedef const void *gt_gnu_reader(const void *module, uintptr_t address, size_t size);

/* By byte: the bytes behind the text may not be readable. */
static inline __attribute__((always_inline)) bool gt_gnu_is_named(const struct gt_gnu_hash *t,
                                                                  gt_gnu_reader *at,
                                                                  const void *module, uint32_t text,
                                                                  const char *name)
{
    const char *byte;
    for (uintptr_t i = t->strings + text; (byte = at(module, i, 1)) && *byte == *name; i++) {
        if (!*name++)
            return true;
    }
    return false;
}

/*
 * The index of the first symbol of that name from `from` on; 0: there is none. All versions of a
 * name are in one chain. hash: gt_elf_hash(name). max: no chain is longer. Inlined, as a process
 * looks up some 300 names before it begins.
 */
static inline __attribute__((always_inline)) uint32_t
gt_gnu_find(const struct gt_gnu_hash *t, gt_gnu_reader *at, const void *module, const char *name,
            uint32_t hash, uint32_t from, uint32_t max)
{
    enum { BITS = 8 * sizeof(ElfW(Addr)) };
    const uint32_t *word = at(module, t->table, 4 * sizeof *word);
    if (!word)
        return 0;
    uint32_t buckets = word[0], first = word[1], filters = word[2], shift = word[3];
    uintptr_t filter = t->table + 4 * sizeof *word, bucket = filter + filters * sizeof(ElfW(Addr));
    const ElfW(Addr) *bits =
        at(module, filter + (hash / BITS & (filters - 1)) * sizeof *bits, sizeof *bits);
    if (!bits || !(*bits >> hash % BITS & *bits >> (hash >> shift % 32) % BITS & 1) || !buckets)
        return 0;
    word = at(module, bucket + hash % buckets * sizeof *word, sizeof *word);
    uint32_t i = word && *word >= first ? *word : 0;
    uintptr_t chain = bucket + (buckets - (uintptr_t)first) * sizeof *word;
    for (uint32_t end = i + max; i && i != end; i++) {
        const ElfW(Sym) *symbol = NULL;
        word = at(module, chain + i * sizeof *word, sizeof *word);
        bool last = !word || *word & 1;
        if (i >= from && word && (*word ^ hash) >> 1 == 0)
            symbol = at(module, t->symbols + i * sizeof *symbol, sizeof *symbol);
        if (symbol && gt_gnu_is_named(t, at, module, symbol->st_name, name))
            return i;
        if (last)
            return 0;
    }
    return 0;
}
