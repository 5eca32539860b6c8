/* See real.h. */
#include "real.h"

#include "heap.h"

#include "../encoder/futex.h"
#include "../symbolize/elf_names.h"
#include "../symbolize/symbolize.h"

#include <gnu/libc-version.h>

/* What a hook calls when it runs before gt_real_resolve: resolves, then forwards. */
#define GT_HOOK(name, result, parameters, arguments, version) \
    static result resolve_##name parameters                   \
    {                                                         \
        gt_real_resolve();                                    \
        return gt_real.name arguments;                        \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "hooks.def"
#pragma GCC diagnostic pop
#undef GT_HOOK

struct gt_real gt_real = {
#define GT_HOOK(name, result, parameters, arguments, version) \
    .name = (__typeof__(&name))(void (*)(void))resolve_##name,
#include "hooks.def"
#undef GT_HOOK
};

static const struct row {
    const char *name, *version;
    void **slot;
} rows[GT_HOOKS_END] = {
#define GT_HOOK(name, result, parameters, arguments, version) \
    [GT_HOOK_##name] = {#name, version, (void **)&gt_real.name},
#include "hooks.def"
#undef GT_HOOK
};

static bool from_libc(const void *fn)
{
    return gt_elf_module_of(fn) == gt_elf_module_of((const void *)gnu_get_libc_version);
}

/* What others interpose (a sanitizer, another preload) usually has no version: it comes first. */
static void *find(const struct row *row)
{
    void *fn = dlsym(RTLD_NEXT, row->name);
    void *versioned = row->version[0] && (!fn || from_libc(fn))
                          ? dlvsym(RTLD_NEXT, row->name, row->version)
                          : NULL;
    return versioned ? versioned : fn;
}

void gt_real_resolve(void)
{
    static _Atomic bool done;
    if (atomic_load(&done))
        return;
    gt_heap_resolve_begin();
    for (int i = 1; i < GT_HOOKS_END; i++) {
        void *fn = find(&rows[i]);
        if (fn) /* else the program cannot have it either: glibc 2.34 and later define them all */
            *rows[i].slot = fn;
    }
    gt_syscall = gt_real.syscall;
    gt_symbolize_jump = gt_real.longjmp;
    gt_heap_resolve_end();
    atomic_store(&done, true);
}

void gt_real_clear_dlerror(void)
{
    /* One that succeeds forgets the error before. No tail call: RTLD_NEXT is after the caller. */
    void *volatile found = dlsym(RTLD_NEXT, "malloc");
    (void)found;
}

static const char *const raw[GT_LEAVES_END - GT_HOOKS_END] = {
#define GT_RAW(what, name) [GT_RAW_##name - GT_HOOKS_END] = #name,
#define GT_RAW_FUTEX(id, text) [GT_RAW_FUTEX_##id - GT_HOOKS_END] = text,
#include "raw.def"
#undef GT_RAW_FUTEX
#undef GT_RAW
};

const char *gt_real_name(enum gt_hook hook)
{
    return hook < GT_HOOKS_END ? rows[hook].name : raw[hook - GT_HOOKS_END];
}
