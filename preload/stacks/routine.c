/*
 * See routine.h. libstdc++ gives pthread_create a routine of its own and a std::thread::_State*.
 * The layout of _State is ABI (GLIBCXX_3.4.22). It begins with a vtable whose third entry is
 * _M_run, an override of std::thread::_State_impl<_Invoker<tuple<Callable, Args…>>>. Then comes the
 * tuple in reverse order, with the callable last. For a lambda or functor, _M_run's name has its
 * type. A plain function is passed as a pointer, which has to be read from the object.
 */
#include "routine.h"

#include "symbolize/elf/modules.h"

#include <malloc.h>
#include <string.h>

enum { VTABLE_TYPEINFO = -1, VTABLE_M_RUN = 2, TYPEINFO_NAME = 1 };

static const struct gt_module *module_of(const void *addr)
{
    return gt_modules_now((uint64_t)(uintptr_t)addr);
}

static bool is_libstdcxx(const struct gt_module *m)
{
    const char *base = m ? strrchr(m->path, '/') : NULL;
    return base && strncmp(base, "/libstdc++.so", 13) == 0;
}

/* The state's last word that points into code: the tuple's head, a function pointer. */
static const void *last_code_pointer(void *const *state)
{
    size_t words = malloc_usable_size((void *)state) / sizeof *state;
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
    if (!arg || !is_libstdcxx(module_of(entry)))
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
