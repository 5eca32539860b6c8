/*
 * See guest.h.
 *
 * While the loader binds the library, look-ups of the functions that it calls find ours. A module
 * that another thread binds at that moment keeps our functions, too. For such callers they behave
 * as the real functions, to which they jump, since dlopen looks at its caller. Modules that were
 * loaded before are not affected.
 */
#include "guest.h"

#include "elf_names.h"

#include <dlfcn.h>
#include <stddef.h>

enum call { OPEN, ABORT, ASSERT, CALLS };

static void *(*real_dlopen)(const char *path, int flags);
static void (*real_abort)(void);
static void (*real_assert)(const char *what, const char *file, unsigned line, const char *in);

static bool (*is_inside)(void);
static void (*bail_out)(void);
static _Thread_local bool loading;

/* dlopen for the guest. libdw's constructor would open libdebuginfod, and with it run the
 * constructors of HTTP and TLS libraries. */
static void *open_nothing(const char *path, int flags)
{
    return loading ? NULL : real_dlopen(path, flags);
}

static void abort_call(void)
{
    if (is_inside())
        bail_out();
    real_abort();
}

static void abort_by_assertion(const char *what, const char *file, unsigned line, const char *in)
{
    if (is_inside())
        bail_out();
    real_assert(what, file, line, in);
}

static const struct {
    const char *name;
    void (*ours)(void);
    void **real;
} calls[CALLS] = {
    [OPEN] = {"dlopen", (void (*)(void))open_nothing, (void **)&real_dlopen},
    [ABORT] = {"abort", abort_call, (void **)&real_abort},
    [ASSERT] = {"__assert_fail", (void (*)(void))abort_by_assertion, (void **)&real_assert},
};

/* The module whose definition a look-up finds. It may be our library, by a hook. */
static struct link_map *first_definer(const char *name)
{
    struct link_map *map = _r_debug.r_map;
    while (map && !gt_elf_definition(map, name))
        map = map->l_next;
    return map;
}

void *gt_guest_load(const char *library, bool (*inside)(void), void (*bail)(void))
{
    struct link_map *definer[CALLS];
    is_inside = inside, bail_out = bail;
    for (int i = 0; i < CALLS; i++) {
        definer[i] = first_definer(calls[i].name);
        *calls[i].real = definer[i] ? gt_elf_function(definer[i], calls[i].name) : NULL;
        if (!*calls[i].real ||
            !gt_elf_redefine(definer[i], calls[i].name, *calls[i].real, calls[i].ours))
            definer[i] = NULL;
    }
    void *(*open)(const char *, int) = real_dlopen ? real_dlopen : dlopen; /* may be ours by now */
    loading = true;
    void *lib = open(library, RTLD_NOW | RTLD_LOCAL);
    loading = false;
    for (int i = 0; i < CALLS; i++) {
        if (definer[i])
            gt_elf_redefine(definer[i], calls[i].name, (void *)calls[i].ours,
                            (void (*)(void)) * calls[i].real);
    }
    return lib;
}
