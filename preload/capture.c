/* See capture.h. */
#include "capture.h"

#include "../encoder/format.h"
#include "../encoder/log.h"
#include "../symbolize/modules.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <errno.h>
#include <link.h>

/* libunwind as we use it; loaded by name, never linked. */
static int (*backtrace_fn)(void **pcs, int max);

/* Our own code: its frames are left out of stacks. */
static uintptr_t own_start, own_end;

static int find_own(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)find_own >= start &&
            (uintptr_t)find_own < end) {
            own_start = start;
            own_end = end;
            return 1;
        }
    }
    return 0;
}

#define STRINGIFY(x) #x
#define NAME_OF(x) STRINGIFY(x)

void gt_capture_init(void)
{
    dl_iterate_phdr(find_own, NULL);
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        gt_log("no stacks: %s", dlerror());
        return;
    }
    /* No cache shared between threads: its lock is held while the loader's is taken. */
    int (*policy)(unw_addr_space_t, unw_caching_policy_t) =
        dlsym(lib, NAME_OF(unw_set_caching_policy));
    unw_addr_space_t *local = dlsym(lib, NAME_OF(unw_local_addr_space));
    if (policy && local)
        policy(*local, UNW_CACHE_NONE);
    backtrace_fn = dlsym(lib, "unw_backtrace");
    void *pc[4];
    if (backtrace_fn)
        backtrace_fn(pc, 4); /* the first one in a thread allocates its thread-local variables */
    gt_modules_refresh();
}

/* Fills pcs from index 1 with the program's return addresses; returns the total. */
static uint32_t walk(uint64_t *pcs)
{
    enum { OURS = 8 }; /* more frames than our own code ever has */
    void *raw[GT_FRAMES_MAX + OURS];
    int n = backtrace_fn ? backtrace_fn(raw, GT_FRAMES_MAX + OURS) : 0;
    int i = 0;
    while (i < n && (uintptr_t)raw[i] >= own_start && (uintptr_t)raw[i] < own_end)
        i++;
    uint32_t count = 1;
    for (; i < n && count < GT_FRAMES_MAX && raw[i]; i++)
        pcs[count++] = (uintptr_t)raw[i];
    return count;
}

struct gt_stack *gt_capture(enum gt_hook hook)
{
    uint64_t pcs[GT_FRAMES_MAX];
    int saved = errno;
    uint32_t n = walk(pcs);
    pcs[0] = hook;
    errno = saved;
    return gt_stacks_get(pcs, n, (uint32_t)gt_modules_epoch());
}

struct gt_stack *gt_capture_routine(const void *entry)
{
    uint64_t pc = (uintptr_t)entry;
    return gt_stacks_get(&pc, 1, (uint32_t)gt_modules_epoch());
}

struct gt_stack *gt_capture_bottom(void)
{
    uint64_t pcs[GT_FRAMES_MAX];
    int saved = errno;
    uint32_t n = walk(pcs);
    errno = saved;
    /* Below the program's outermost function lie libc's start_thread and clone. */
    uint64_t pc = n > 3 ? pcs[n - 3] : n > 1 ? pcs[n - 1] : 0;
    return pc ? gt_stacks_get(&pc, 1, (uint32_t)gt_modules_epoch()) : NULL;
}
