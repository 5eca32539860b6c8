/*
 * Functions that other libraries than libc have: of OpenMP, of asynchronous I/O. A program may load
 * such a library at any time, and two of the same kind (each of its plugins brings its own), so for
 * each caller it is found out what the call would have reached without us.
 */
#ifndef GT_FOREIGN_H
#define GT_FOREIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GT_FOREIGN_USERS = 16, GT_FOREIGN_NAMES_MAX = 96, GT_FOREIGN_BINDINGS = 160 };

/* A module that calls such functions; never changed, nor given back. */
struct gt_foreign_user {
    struct gt_foreign_user *next;
    uintptr_t lo, size;
    /*
     * As struct gt_foreign's names; what nobody has does nothing, and returns 0. Behind them the
     * mark, if who has the first name has that, too; else NULL.
     */
    void *functions[];
};

struct gt_foreign {
    const char *const *names; /* of the functions; who has the first has all that it is to have */
    uint32_t n;
    const char *mark;
    _Atomic(struct gt_foreign_user *) users[GT_FOREIGN_USERS]; /* met lately */
    _Atomic(struct gt_foreign_user *) all;
};

void *const *gt_foreign_find(struct gt_foreign *lib, const void *caller);

/* What code at `caller` means by the names. Takes no lock that is held while code is loaded. */
static inline void *const *gt_foreign_of(struct gt_foreign *lib, const void *caller)
{
    /* acquire: pairs with the release of who has met it. */
    struct gt_foreign_user *user = atomic_load_explicit(&lib->users[0], memory_order_acquire);
    if (__builtin_expect(user && (uintptr_t)caller - user->lo < user->size, 1))
        return user->functions;
    return gt_foreign_find(lib, caller);
}

/* What was loaded when the program began is everybody's. Once, with one thread. */
void gt_foreign_init(void);

/*
 * For a library that was loaded late, as gt_real_bindings: of such libraries that are there just
 * once, for what would be given back to whom of two could not be known. From here on these
 * functions are found in spite of what the tables of symbols say. At most GT_FOREIGN_BINDINGS.
 */
struct gt_elf_binding;
int gt_foreign_bindings(struct gt_elf_binding *out);

/* Code was unloaded: other code may come to stand there. */
void gt_foreign_forget(void);

#endif
