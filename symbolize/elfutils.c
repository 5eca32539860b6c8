/* See elfutils.h. */
#include "elfutils.h"

#include <dlfcn.h>
#include <stdlib.h>

static struct gt_elfutils api;
static bool tried;

static const struct {
    const char *name;
    void **slot;
} rows[] = {
#define GT_DW(name) {#name, (void **)&api.name},
#include "elfutils.def"
#undef GT_DW
};

/* elfutils asks debuginfod servers when this variable names some: never without being told to. */
static void forget_servers(void *lib)
{
    int (*unset)(const char *) = dlsym(lib, "unsetenv");
    if (unset)
        unset("DEBUGINFOD_URLS");
}

static void *load(void)
{
    void *lib = dlmopen(LM_ID_NEWLM, "libdw.so.1", RTLD_NOW);
    if (lib) {
        api.private_libc = true;
        forget_servers(lib);
        return lib;
    }
    return dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
}

const struct gt_elfutils *gt_elfutils_get(void)
{
    if (tried)
        return &api;
    tried = true;
    void *lib = load();
    bool all = lib != NULL;
    for (size_t i = 0; all && i < sizeof rows / sizeof *rows; i++)
        all = (*rows[i].slot = dlsym(lib, rows[i].name)) != NULL;
    api.loaded = all;
    return &api;
}
