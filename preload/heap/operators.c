/*
 * C++'s operators new and delete.
 *
 * The operators of libstdc++ and libc++ call malloc and free, which count. Those of jemalloc,
 * tcmalloc and mimalloc enter the allocator directly, so they are counted here. Which kind they are
 * is decided once, by the module whose definition the program would get without us.
 *
 * An operator that need not be counted is taken out of our symbol table before the program runs.
 * Then modules loaded later bind as they would without us: plug-ins with operators of their own, or
 * extensions of a C program that bring libstdc++ along in a local scope. Modules that are bound to
 * ours by then get the definition after ours, which they would have had.
 *
 * Exceptions pass through: there is nothing to clean up in these frames.
 */
#include "allocator.h"
#include "heap.h"

#include "preload/bind/real.h"
#include "preload/upward.h"

enum operator{
#define GT_NEW(name, parameters, arguments) OP##name,
#define GT_DELETE(name, parameters, arguments) OP##name,
#include "operators.def"
    OPERATORS_END,
};

static struct {
#define GT_NEW(name, parameters, arguments) void *(*name)parameters;
#define GT_DELETE(name, parameters, arguments) void(*name) parameters;
#include "operators.def"
} next;

/* By enum operator: the operator is the allocator's own, and counted here. */
static bool counted[OPERATORS_END];

static const struct {
    const char *name;
    void **slot;
} rows[OPERATORS_END] = {
#define GT_NEW(name, parameters, arguments) [OP##name] = {#name, (void **)&next.name},
#define GT_DELETE(name, parameters, arguments) [OP##name] = {#name, (void **)&next.name},
#include "operators.def"
};

/*
 * The operator of a module that was bound to ours although there was none after it, because our
 * symbol table is read-only.
 */
static void *find_elsewhere(const char *name)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *lib = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);
        void *fn = lib ? dlsym(lib, name) : NULL;
        if (fn)
            return fn;
    }
    return NULL;
}

static void *next_of(enum operator op)
{
    void *fn = __atomic_load_n(rows[op].slot, __ATOMIC_RELAXED);
    if (__builtin_expect(fn != NULL, 1))
        return fn;
    gt_real_resolve();
    if (!*rows[op].slot)
        __atomic_store_n(rows[op].slot, find_elsewhere(rows[op].name), __ATOMIC_RELAXED);
    return *rows[op].slot;
}

_Static_assert(OPERATORS_END <= (int)GT_UPWARD_HIDE_MAX, "room for all");

int gt_operators_resolve(const char **hide)
{
    const char *take[OPERATORS_END];
    int hidden = 0, taken = 0;
    for (int i = 0; i < OPERATORS_END; i++) {
        void *fn = gt_allocator_function(rows[i].name);
        *rows[i].slot = fn;
        counted[i] = gt_heap_on && gt_allocator_has(fn);
        if (counted[i])
            take[taken++] = rows[i].name;
        else
            hide[hidden++] = rows[i].name;
    }
    gt_allocator_take_over(take, taken);
    gt_real_clear_dlerror();
    return hidden;
}

static void *made(void *p, struct gt_heap_mark before)
{
    if (!gt_heap_counted_since(before))
        gt_heap_made(p);
    return p;
}

static void gone(size_t size, struct gt_heap_mark before)
{
    if (!gt_heap_counted_since(before))
        gt_heap_add(-(int64_t)size);
}

#define GT_NEW(name, parameters, arguments)                                  \
    GT_EXPORT void *name parameters;                                         \
    void *name parameters                                                    \
    {                                                                        \
        void *(*gt_next)parameters = (void *(*)parameters)next_of(OP##name); \
        if (!counted[OP##name])                                              \
            return gt_next arguments;                                        \
        struct gt_heap_mark gt_before = gt_heap_mark();                      \
        return made(gt_next arguments, gt_before);                           \
    }
#define GT_DELETE(name, parameters, arguments)                             \
    GT_EXPORT void name parameters;                                        \
    void name parameters                                                   \
    {                                                                      \
        void(*gt_next) parameters = (void(*) parameters)next_of(OP##name); \
        if (!counted[OP##name] || !p) {                                    \
            gt_next arguments;                                             \
            return;                                                        \
        }                                                                  \
        size_t gt_size = gt_heap_size(p);                                  \
        struct gt_heap_mark gt_before = gt_heap_mark();                    \
        gt_next arguments;                                                 \
        gone(gt_size, gt_before);                                          \
    }
#include "operators.def"
