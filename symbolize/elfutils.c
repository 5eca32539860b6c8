/* See elfutils.h. */
#include "elfutils.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* nodlopen.so, see nodlopen.c. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "gt_nodlopen_start: .incbin \"" GT_NODLOPEN "\"\n"
        "gt_nodlopen_end:\n"
        ".previous\n");
extern const char gt_nodlopen_start[] __attribute__((visibility("hidden")));
extern const char gt_nodlopen_end[] __attribute__((visibility("hidden")));

/* A new namespace that begins with nodlopen.so; NULL when there cannot be one. */
static void *open_namespace(void)
{
    char path[64];
    size_t size = (size_t)(gt_nodlopen_end - gt_nodlopen_start);
    int fd = memfd_create("nodlopen", MFD_CLOEXEC);
    void *first = NULL;
    if (fd < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, gt_nodlopen_start, size) == (ssize_t)size)
        first = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    close(fd);
    return first;
}

/* elfutils asks debuginfod servers when this variable names some: never without being told to. */
static void forget_servers(void *lib)
{
    int (*unset)(const char *) = (int (*)(const char *))dlsym(lib, "unsetenv");
    if (unset)
        unset("DEBUGINFOD_URLS");
}

static void *load(void)
{
    Lmid_t space;
    void *first = open_namespace();
    if (first && dlinfo(first, RTLD_DI_LMID, &space) == 0) {
        void *lib = dlmopen(space, "libdw.so.1", RTLD_NOW);
        if (lib) {
            api.private_libc = true;
            forget_servers(lib);
            return lib;
        }
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
