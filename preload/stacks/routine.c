/*
 * See routine.h. libstdc++ gives pthread_create a routine of its own and a std::thread::_State*.
 * The layout of _State is ABI (GLIBCXX_3.4.22). It begins with a vtable whose third entry is
 * _M_run, an override of std::thread::_State_impl<_Invoker<tuple<Callable, Args…>>>. Then comes the
 * tuple in reverse order, with the callable last. For a lambda or functor, _M_run's name has its
 * type. A plain function is passed as a pointer, which has to be read from the object.
 */
#include "routine.h"

#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/modules.h"

#include <stdatomic.h>
#include <string.h>

enum { VTABLE_TYPEINFO = -1, VTABLE_M_RUN = 2, TYPEINFO_NAME = 1 };

static const struct gt_module *module_of(const void *addr)
{
    return gt_modules_now((uint64_t)(uintptr_t)addr);
}

static bool is_libstdcxx(const char *path)
{
    const char *base = strrchr(path, '/');
    return base && strncmp(base, "/libstdc++.so", 13) == 0;
}

static size_t unknown(void *block)
{
    (void)block;
    return 0;
}

typedef size_t size_of(void *block);

/*
 * The allocator's function for the size of a block that operator new returned. A program's own
 * operator new, or malloc, may come without it: then libc's would read what is no block of libc's.
 */
static size_of *find_size_of(void)
{
    static const char name[] = "malloc_usable_size";
    const struct link_map *in = gt_elf_definer(name), *definer = gt_elf_definer("_Znwm");
    bool fits = in && in == gt_elf_definer("malloc") && definer &&
                (definer == in || is_libstdcxx(definer->l_name));
    void *found = fits ? gt_elf_function(in, name) : NULL;
    return found ? (size_of *)found : unknown;
}

static bool is_in_libstdcxx(const void *code)
{
    const struct gt_module *m = module_of(code);
    return m && is_libstdcxx(m->path);
}

/* The state's last word that points into code: the tuple's head, a function pointer. */
static const void *last_code_pointer(void *const *state)
{
    static size_of *_Atomic known;
    size_of *size = atomic_load_explicit(&known, memory_order_relaxed);
    if (!size)
        atomic_store_explicit(&known, size = find_size_of(), memory_order_relaxed);
    size_t words = size((void *)state) / sizeof *state;
    for (size_t i = words; i-- > 1;) {
        if (module_of(state[i]))
            return state[i];
    }
    return NULL;
}

const void *gt_routine_of(void *(*start)(void *), void *arg)
{
    const void *entry = (const void *)(uintptr_t)start;
    if (!module_of(entry)) /* otherwise the loader's lock is not needed */
        gt_modules_refresh();
    if (!arg || !is_in_libstdcxx(entry))
        return entry;
    void *const *state = arg;
    void *const *vtable = state[0];
    if (!module_of(vtable))
        return entry; /* the ABI before GLIBCXX_3.4.22 passed something else */
    void *const *typeinfo = vtable[VTABLE_TYPEINFO];
    const char *type = module_of(typeinfo) ? typeinfo[TYPEINFO_NAME] : "";
    bool plain_function = strstr(type, "St5tupleIJPF") || strstr(type, "St5tupleIJM");
    const void *function = plain_function ? last_code_pointer(state) : NULL;
    return function ? function : vtable[VTABLE_M_RUN];
}
