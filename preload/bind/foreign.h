/*
 * Functions of libraries other than libc: OpenMP, asynchronous I/O, the resolver. A program may
 * load such a library at any time. It may load two of a kind, as each of its plugins brings its
 * own. So for each caller we find out what the call would have reached without us.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GT_FOREIGN_USERS = 16, GT_FOREIGN_NAMES_MAX = 96, GT_FOREIGN_BINDINGS = 160 };

/* A module that calls such functions. Never changed or freed. */
struct gt_foreign_user {
    struct gt_foreign_user *next;
    uintptr_t lo, size;
    /*
     * One function for each of struct gt_foreign's names, in that order. A name that no module
     * defines has a function that does nothing and returns 0. Behind them stands `mark`, if the
     * library with the first name defines it, else NULL.
     */
    void *functions[];
};

struct gt_foreign {
    const char *const *names; /* the library with the first one is asked first for the others */
    uint32_t n;
    const char *mark;
    _Atomic(struct gt_foreign_user *) users[GT_FOREIGN_USERS]; /* the latest callers */
    _Atomic(struct gt_foreign_user *) all;
};

/* The libraries. The names of each stand in the order of its table: openmp.def, async.def,
 * resolver.def. */
extern struct gt_foreign gt_gomp, gt_uring, gt_aio, gt_resolver;

void *const *gt_foreign_find(struct gt_foreign *lib, const void *caller);

/*
 * The functions that code at `caller` would reach by the names. Takes no lock that is held while
 * code is loaded.
 */
static inline void *const *gt_foreign_of(struct gt_foreign *lib, const void *caller)
{
    /* acquire: pairs with the release in gt_foreign_find. */
    struct gt_foreign_user *user = atomic_load_explicit(&lib->users[0], memory_order_acquire);
    if (__builtin_expect(user && (uintptr_t)caller - user->lo < user->size, 1))
        return user->functions;
    return gt_foreign_find(lib, caller);
}

/*
 * Notes which modules were loaded when the program began: all modules see their symbols. Called
 * once, with one thread, when the real functions are known.
 */
void gt_foreign_init(void);

/*
 * Where we were loaded late: adds bindings of libraries' functions to those of gt_real_bindings.
 * Only of libraries that are loaded once: of two, a later unbinding could not know which function
 * belongs to which caller. From here on the functions are found in spite of our entries in the
 * symbol tables. Returns how many, at most GT_FOREIGN_BINDINGS.
 */
struct gt_elf_binding;
int gt_foreign_bindings(struct gt_elf_binding *out);

/* Code was unloaded: other code may be loaded at its addresses. */
void gt_foreign_forget(void);
