/*
 * The module map: which file was loaded where, and when. It is kept from the time of capture, so
 * that a library that was unloaded since still has names.
 *
 * An epoch is a stretch of time in which no module vanished: within an epoch, an address belongs to
 * at most one module. Entries never change, except `loaded` and `unloaded`. A module that comes
 * back to its place before another module takes the place counts as never gone. Modules that are
 * gone and to which no stack refers are forgotten (gt_modules_forget).
 *
 * Any thread adds to the map, under its lock. Functions marked "reading side" are for one thread at
 * a time, in any context: they have an index of their own and take no lock that others hold.
 */
#pragma once

#include "encoder/base/memo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shown addresses that are not the real ones begin here, beyond all code. */
#define GT_MODULES_ELSEWHERE (1ull << 50)

/* Shown addresses of code that was made at run time begin here: one for each name and place. */
#define GT_MODULES_MADE (1ull << 49)

struct gt_module {
    uint64_t lo, hi;    /* [lo, hi): the addresses its segments span */
    uint64_t bias;      /* run-time address minus ELF address */
    const char *path;   /* absolute; the executable's own; "[vdso]" */
    const char *called; /* the other name by which the executable was started; else NULL */
    bool is_program;    /* the module is the executable */
    uint8_t build_id[32], build_id_len; /* from memory; length 0 when it has none */
    uint64_t loaded, unloaded;          /* valid in epochs e with loaded <= e < unloaded */
    uint64_t shown; /* the address for lo in a trace: lo, or one that no module ever had */
    struct gt_module *next;
};

/* The module's name for people; `path` is where its file is. */
static inline const char *gt_module_name(const struct gt_module *m)
{
    return m->called ? m->called : m->path;
}

/* A module in the black box: an element of a list that begins at the root. */
struct gt_boxed_module {
    uint64_t next; /* address of the next element; 0: none */
    uint64_t lo, hi, loaded;
    char description[]; /* see gt_modules_describe */
};

/* Copies all modules, known and future ones, to the black box from here on. Called as
 * gt_modules_refresh. */
void gt_modules_box(void);

/*
 * Takes a snapshot of the loaded modules and returns the epoch (1 at first). It is cheap when the
 * loader has neither loaded nor unloaded a module since. Any thread; not in signal handlers: it
 * takes the loader's lock, and its own.
 */
uint64_t gt_modules_refresh(void);

/* The epoch of the last snapshot. Any context. */
uint64_t gt_modules_epoch(void);

/* The module that held pc in the epoch, or NULL; valid until gt_modules_forget. Reading side. */
const struct gt_module *gt_modules_find(uint64_t epoch, uint64_t pc);

/*
 * The module around pc now, or NULL. Valid until gt_modules_forget was called twice, which does not
 * happen while a thread is in a hook (renewal.h). Any context; takes no locks.
 */
const struct gt_module *gt_modules_now(uint64_t pc);

/* The module added last; the others follow by `next`. Reading side. */
const struct gt_module *gt_modules_last(void);

/*
 * Whether n addresses belong to the same code in both epochs. Each may be a return address, which
 * may lie just behind the code. false also when that is no longer known. Any context.
 */
bool gt_modules_same(const uint64_t *pcs, uint32_t n, uint32_t one, uint32_t other);

/* Notes for gt_modules_same that m leaves its place. The caller has set m->unloaded, but not the
 * epoch yet. One thread at a time. */
void gt_modules_left(const struct gt_module *m);

/* Begins a new epoch, although no module has vanished. */
void gt_modules_age(void);

/* The number of modules that are gone and not forgotten. Any context. */
size_t gt_modules_gone(void);

/*
 * Forgets the modules that are gone and were not loaded in any of these epochs (the keys). All
 * entries move: pointers to them are invalid afterwards. false: nothing was changed, because there
 * is no memory or another thread holds the map's lock. Reading side.
 */
bool gt_modules_forget(const struct gt_memo *epochs);

/*
 * Writes the description of a module for a trace, by which its code can be found on another
 * machine: "gotrace-module shown size address build-id path". address: the ELF address of lo. For
 * the executable, a slash and gt_module.called follow if they fit. Whether the rest fits.
 */
bool gt_modules_describe(const struct gt_module *module, char *text, size_t size);

/*
 * Reads a description into *m, without path and other name. Returns the text from the path on.
 * NULL: it is no description.
 */
const char *gt_modules_parse(const char *text, struct gt_module *m);

/* Adds a module of another process from its description. NULL: it is no description. */
const struct gt_module *gt_modules_add(const char *description);

/* Called around a fork, as gt_symbolize_fork_begin and its end: meanwhile no thread walks the
 * loader's list of modules for us. */
bool gt_modules_fork_begin(void);
void gt_modules_fork_end(void);

/* Called in a forked child. */
void gt_modules_after_fork(void);
