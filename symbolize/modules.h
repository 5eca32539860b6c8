/*
 * The module map: which file was loaded where, and when. Kept from the time of capture, so that a
 * library unloaded since still has names.
 *
 * An epoch is a stretch of time in which no module vanished: within one, an address belongs to at
 * most one module. Entries, but for `loaded` and `unloaded`, never change. One that has come back
 * to its place, before anybody else had it, is as if it had never been gone; those that are gone
 * and no stack refers to are forgotten (gt_modules_forget).
 *
 * Any thread adds to the map, under its lock. The reading side, what is said so, is for one thread
 * at a time, and that in any context: it takes no lock that others hold, and has an index.
 */
#ifndef GT_MODULES_H
#define GT_MODULES_H

#include "encoder/base/memo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shown addresses that are not the real ones begin here, beyond all code. */
#define GT_MODULES_ELSEWHERE (1ull << 50)

/* Before that, those of code that was made at run time: an address for each name at each place. */
#define GT_MODULES_MADE (1ull << 49)

struct gt_module {
    uint64_t lo, hi;    /* [lo, hi): the addresses its segments span */
    uint64_t bias;      /* run-time address minus ELF address */
    const char *path;   /* absolute; the executable's own; "[vdso]" */
    const char *called; /* the other name by which the executable was started; else NULL */
    bool is_program;    /* it is the executable */
    uint8_t build_id[32], build_id_len; /* from memory; length 0 when it has none */
    uint64_t loaded, unloaded;          /* valid in epochs e with loaded <= e < unloaded */
    uint64_t shown; /* what stands for lo in a trace: lo, or where there was never any module */
    struct gt_module *next;
};

/* What to call it: `path` is where to look for it. */
static inline const char *gt_module_name(const struct gt_module *m)
{
    return m->called ? m->called : m->path;
}

/* A module as the black box has it: a list from the root on. */
struct gt_boxed_module {
    uint64_t next; /* address, 0: there is no other */
    uint64_t lo, hi, loaded;
    char description[]; /* see gt_modules_describe */
};

/* There is a black box from here on: what is known goes there, and what will be. As refresh. */
void gt_modules_box(void);

/*
 * Takes a snapshot of the loaded modules and returns the epoch (1 at first). Cheap when the loader
 * has loaded and unloaded nothing since. Any thread; not in signal handlers: it takes the loader's
 * lock, and its own.
 */
uint64_t gt_modules_refresh(void);

/* The epoch of the last snapshot. Any context. */
uint64_t gt_modules_epoch(void);

/* The module that held pc in the epoch, or NULL; valid until gt_modules_forget. Reading side. */
const struct gt_module *gt_modules_find(uint64_t epoch, uint64_t pc);

/*
 * The module that is there now, or NULL; valid until gt_modules_forget was called twice: while a
 * thread is in a hook, that is not (renewal.h). Any context; reads without locks.
 */
const struct gt_module *gt_modules_now(uint64_t pc);

/* The one added last; the others follow by `next`. Reading side. */
const struct gt_module *gt_modules_last(void);

/*
 * Whether addresses, n of them, each as it is or one more, are of the same code in both epochs.
 * false also when that is not known any more. Any context.
 */
bool gt_modules_same(const uint64_t *pcs, uint32_t n, uint32_t one, uint32_t other);

/* For that: m leaves its place. m->unloaded is set, and not the epoch yet. One at a time. */
void gt_modules_left(const struct gt_module *m);

/* A new epoch, though nothing has vanished. */
void gt_modules_age(void);

/* How many are gone, and not forgotten. Any context. */
size_t gt_modules_gone(void);

/*
 * Forgets those that are gone and were not there in any of these epochs (the keys). All entries
 * have moved then: pointers to them are not valid any more. Reading side. false: no memory for
 * that, or somebody holds the lock of the map; nothing has happened.
 */
bool gt_modules_forget(const struct gt_memo *epochs);

/*
 * What a trace has to say of a module so that its code can be found on another machine, as text:
 * "gotrace-module shown size address build-id path", then, of the executable, if that fits, after
 * a slash what it is called; address: the ELF address of lo. Returns whether the rest fits.
 */
bool gt_modules_describe(const struct gt_module *module, char *text, size_t size);

/*
 * What such a text says but for the path and its other name, in *m; where in it they begin. NULL:
 * it is none.
 */
const char *gt_modules_parse(const char *text, struct gt_module *m);

/* Adds a module of another process, from such a text. NULL: it is none. */
const struct gt_module *gt_modules_add(const char *description);

/* Around a fork, as gt_symbolize_fork_begin: nobody is in the loader's list of modules for us. */
bool gt_modules_fork_begin(void);
void gt_modules_fork_end(void);

/* In a forked child. */
void gt_modules_after_fork(void);

#endif
