/*
 * See routine.h. libstdc++ gives pthread_create a routine of its own and a std::thread::_State*.
 * The layout of _State is ABI (GLIBCXX_3.4.22). It begins with a vtable whose third entry is
 * _M_run, an override of std::thread::_State_impl<_Invoker<tuple<Callable, Args…>>>. Then comes the
 * tuple in reverse order, with the callable last. For a lambda or functor, _M_run's name has its
 * type. A plain function is passed as a pointer, which has to be read from the object.
 *
 * libc++ gives it a function of the program, an instance of __thread_proxy, and a
 * std::tuple<std::unique_ptr<__thread_struct>, Callable, Args…>*. The instance's name has the type
 * of a lambda or functor. A plain function is the tuple's second word.
 */
#include "routine.h"

#include "code_layouts.h"

#include "symbolize/elf/elf_names.h"
#include "symbolize/elf/modules.h"

#include <stdatomic.h>
#include <string.h>

enum { VTABLE_TYPEINFO = -1, VTABLE_M_RUN = 2, TYPEINFO_NAME = 1 };

static const struct gt_module *module_of(const void *addr)
{
    return gt_modules_now((uint64_t)(uintptr_t)addr);
}

static bool is_library(const char *path, const char *begins)
{
    const char *base = strrchr(path, '/');
    return base && strncmp(base, begins, strlen(begins)) == 0;
}

static bool is_libstdcxx(const char *path)
{
    return is_library(path, "/libstdc++.so");
}

static size_t unknown(void *block)
{
    (void)block;
    return 0;
}

typedef size_t size_of(void *block);

/* The allocator's function for the size of a block from operator new. */
static size_of *size_of_block = unknown;

/*
 * A program may have its own operator new, or malloc, without such a function: libc's would misread
 * the block. Modules that are loaded later come behind those that are there: a libstdc++ among them
 * has the first operator new only if there is none yet.
 */
void gt_routine_init(void)
{
    static const char name[] = "malloc_usable_size";
    const struct link_map *in = gt_elf_definer(name), *definer = gt_elf_definer("_Znwm");
    bool fits = in && in == gt_elf_definer("malloc") &&
                (!definer || definer == in || is_libstdcxx(definer->l_name));
    void *found = fits ? gt_elf_function(in, name) : NULL;
    if (found)
        size_of_block = (size_of *)found;
}

static bool is_in_libstdcxx(const void *code)
{
    const struct gt_module *m = module_of(code);
    return m && is_libstdcxx(m->path);
}

/* The state's last word that points into code: the tuple's head, a function pointer. */
static const void *last_code_pointer(void *const *state)
{
    size_t words = size_of_block((void *)state) / sizeof *state;
    for (size_t i = words; i-- > 1;) {
        if (module_of(state[i]))
            return state[i];
    }
    return NULL;
}

/* Whether libc++ is there, or was. Looked up anew when modules have come. */
static bool has_libcxx(void)
{
    static _Atomic uintptr_t known; /* the module added last; bit 0: the answer */
    const struct gt_module *last = gt_modules_last();
    uintptr_t was = atomic_load_explicit(&known, memory_order_relaxed);
    if ((was & ~(uintptr_t)1) != (uintptr_t)last) {
        const struct gt_module *m = last;
        while (m && !is_library(m->path, "/libc++.so"))
            m = m->next;
        was = (uintptr_t)last | (m != NULL);
        atomic_store_explicit(&known, was, memory_order_relaxed);
    }
    return was & 1;
}

/* Whether a function is at the address, not data. */
static bool is_code(const void *at)
{
    gt_layouts_are_of((uint32_t)gt_modules_epoch());
    return module_of(at) && (gt_layout_lookup((uintptr_t)at) & GT_LAYOUT_KIND) != GT_FRAME_UNKNOWN;
}

/*
 * The function that a tuple of libc++'s holds; NULL: arg is no such tuple, or it holds something
 * else. A new __thread_struct points to two empty vectors: libcxx/src/thread.cpp.
 */
static const void *function_of_libcxx(const void *arg)
{
    enum { VECTORS = 6 };
    void *const *tuple = arg;
    if ((uintptr_t)arg % sizeof *tuple || !gt_can_read(tuple, 2 * sizeof *tuple))
        return NULL;
    void *const *local = tuple[0];
    void *const *vectors = local && gt_can_read(local, sizeof *local) ? *local : NULL;
    if (!vectors || !gt_can_read(vectors, VECTORS * sizeof *vectors))
        return NULL;
    for (int i = 0; i < VECTORS; i++) {
        if (vectors[i])
            return NULL;
    }
    return is_code(tuple[1]) ? tuple[1] : NULL;
}

const void *gt_routine_of(void *(*start)(void *), void *arg)
{
    const void *entry = (const void *)(uintptr_t)start;
    if (!module_of(entry)) /* otherwise the loader's lock is not needed */
        gt_modules_refresh();
    if (!arg)
        return entry;
    if (!is_in_libstdcxx(entry)) {
        const void *function = has_libcxx() ? function_of_libcxx(arg) : NULL;
        return function ? function : entry;
    }
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
