/*
 * See namespace.h.
 *
 * The namespace contains only files as they are installed, since debuggers open, in their own
 * process, all files that the loader's lists and /proc/PID/maps name.
 */
#include "namespace.h"

#include "elf_names.h"
#include "libc_names.h"

#include "encoder/base/file.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

/* Calls ---------------------------------------------------------------------------------------- */

/*
 * dlopen for the library. libdw 0.188 opens libdebuginfod from a constructor, and with it an HTTP
 * and a TLS library. Their destructors use pthread keys, which namespaces do not separate.
 */
static void *open_nothing(const char *path, int flags)
{
    (void)path;
    (void)flags;
    return NULL;
}

/* Redirects calls in the private libc. Called before any other library is bound to it. */
static bool redirect(const struct link_map *libc, void (*bail)(void))
{
    return gt_elf_redefine(libc, "dlopen", NULL, (void (*)(void))open_nothing) &&
           gt_elf_redefine(libc, "abort", NULL, bail) &&
           gt_elf_redefine(libc, "__assert_fail", NULL, bail);
}

/* The loader's lists --------------------------------------------------------------------------- */

/*
 * Makes the namespace look unused to gdb. Otherwise gdb would search it before the program's:
 * `call strdup("...")` would call the private strdup.
 */
static void hide(const struct link_map *libc)
{
    struct namespace
    {
        struct r_debug base;
        struct namespace *next; /* since version 2, glibc 2.35; before, debuggers see only one */
    }
    *r = (struct namespace *)&_r_debug;
    for (; r && r->base.r_version > 1; r = r->next) {
        if (r->base.r_map == libc)
            r->base.r_map = NULL;
    }
}

/* /proc/PID/maps ------------------------------------------------------------------------------- */

/* The place of the program's libc: the module before it ends at `before`, the one after it begins
 * at `after`. */
struct place {
    uint64_t lo, hi, before, after;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct place *place = arg;
    uint64_t lo, hi;
    (void)size;
    gt_elf_span(info, &lo, &hi);
    if (lo <= place->lo && place->lo < hi)
        place->lo = lo, place->hi = hi;
    else if (hi <= place->lo && hi > place->before)
        place->before = hi;
    else if (lo > place->lo && lo < place->after)
        place->after = lo;
    return 0;
}

/*
 * Maps a page of our file next to the program's libc, if the kernel would put the private libc
 * there. false: it would not. Not the file's first page: readers of a core file that find an ELF
 * header take the memory behind it for our library.
 */
static bool put_page(struct place *place, int file)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    size_t size = (place->hi - place->lo + page - 1) & -page;
    void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    uintptr_t lo = (uintptr_t)p, hi = lo + size, at = 0;
    if (lo >= place->before && hi <= place->lo)
        at = place->before = hi - page;
    else if (lo >= place->hi && hi <= place->after)
        at = place->after = lo;
    munmap(p, size);
    return at && mmap((void *)at, page, PROT_NONE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, file,
                      (off_t)page) != MAP_FAILED;
}

/*
 * Keeps the private libc apart from the program's. elfutils (eu-stack) takes two mappings of a file
 * for one, at a wrong address, when no other file is mapped between them.
 */
static void keep_apart(void)
{
    struct place place = {.lo = (uintptr_t)gnu_get_libc_version, .after = UINT64_MAX};
    const struct link_map *ours = gt_elf_ours();
    int file = ours ? gt_file_open(ours->l_name, 0) : -1;
    if (file < 0)
        return;
    gt_elf_each_module(look, &place);
    while (put_page(&place, file))
        ;
    gt_file_close(file);
}

/*
 * Whether libc contains the thread functions, as since glibc 2.34. A second libpthread would set up
 * the thread that loads it as the first of a process, and put it into a list of its own.
 */
static bool has_threads(const struct link_map *libc)
{
    return libc && gt_elf_definition(libc, "dlopen"); /* moved to libc in the same version */
}

void *gt_namespace_load(const char *library, void (*bail)(void))
{
    struct link_map *libc;
    Lmid_t space;
    if (!has_threads(gt_libc_map()))
        return NULL;
    keep_apart();
    void *first = dlmopen(LM_ID_NEWLM, LIBC_SO, RTLD_NOW);
    if (!first || dlinfo(first, RTLD_DI_LINKMAP, &libc) != 0 ||
        dlinfo(first, RTLD_DI_LMID, &space) != 0 || !redirect(libc, bail))
        return NULL;
    void *lib = dlmopen(space, library, RTLD_NOW);
    hide(libc);
    return lib;
}
