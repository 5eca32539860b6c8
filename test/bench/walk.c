/*
 * The cost of one stack, measured alone: ns for each of several cases, the best of many batches,
 * which other load on the machine does not change. walk <depth> (descend.h) prints a line each:
 *   same      the stack of the last time            moved   a frame further in or out each time
 *   known     all frames walked, layouts known      first   the same, and no layout known
 *   libunwind the same by unw_backtrace, warm
 */
#include "descend.h"
#include "encoder/thread/stacks.h"
#include "preload/stacks/cfi.h"
#include "preload/stacks/unwind.h"

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STRINGIFY(x) #x
#define NAME_OF(x) STRINGIFY(x)
#define NOINLINE __attribute__((noinline, noclone))

enum { BATCH = 200, BATCHES = 400 };

static struct gt_trail trail;
static struct gt_stack *last;
static int (*backtrace_fn)(void **pcs, int max);
static uint32_t epoch = 1;

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* As gt_capture does it. */
NOINLINE static void capture(void)
{
    uint32_t n;
    enum gt_walked walked = gt_unwind(&trail, epoch, &n);
    if (walked == GT_WALK_SAME && last)
        return;
    if (walked > GT_WALK_TRAIL)
        abort();
    struct gt_path *p = gt_trail_last(&trail);
    uint64_t *pcs = gt_trail_pcs(&trail, &n) - 1;
    pcs[0] = 1;
    last = gt_stacks_get_hashed(pcs, n + 1, epoch, gt_path_hash(p));
}

NOINLINE static void same(void)
{
    capture();
}

NOINLINE static void deeper(void)
{
    capture();
    __asm__ volatile("");
}

NOINLINE static void deepest(void)
{
    deeper();
    __asm__ volatile("");
}

/* Three stacks in turn: two are remembered. */
static void moved(void)
{
    static void (*const at[])(void) = {same, deeper, deepest};
    static int i;
    at[i++ % 3]();
}

static void lose(void)
{
    trail.path[0].frames = trail.path[1].frames = 0;
}

static void known(void)
{
    lose();
    capture();
}

/* Empties the cache of layouts; the second walk, of the same stack, does not fill it again. */
NOINLINE static void forget(void)
{
    for (int i = 0; i < 2; i++) {
        trail.path[0].epoch = trail.path[1].epoch = ++epoch;
        capture();
    }
}

static void first(void)
{
    lose();
    capture();
}

static void libunwind(void)
{
    void *pcs[GT_FRAMES_MAX];
    backtrace_fn(pcs, GT_FRAMES_MAX);
}

static const struct benchmark {
    const char *name;
    void (*run)(void);
} benchmarks[] = {
    {"same", same}, {"moved", moved}, {"known", known}, {"libunwind", libunwind}, {"first", first},
};

static void measure(const void *benchmark)
{
    const struct benchmark *b = benchmark;
    double best = 1e18;
    int batch = b->run == first ? 1 : BATCH;
    for (int i = 0; i < BATCHES; i++) {
        if (b->run == first)
            forget();
        double start = now();
        for (int k = 0; k < batch; k++)
            b->run();
        double ns = (now() - start) / batch;
        best = ns < best ? ns : best;
    }
    printf("%s %.1f\n", b->name, best);
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    int (*policy)(unw_addr_space_t, unw_caching_policy_t) =
        lib ? dlsym(lib, NAME_OF(unw_set_caching_policy)) : NULL;
    unw_addr_space_t *local = lib ? dlsym(lib, NAME_OF(unw_local_addr_space)) : NULL;
    if (policy && local)
        policy(*local, UNW_CACHE_PER_THREAD);
    backtrace_fn = lib ? dlsym(lib, "unw_backtrace") : NULL;
    if (!gt_unwind_init(0, 0))
        return 77;
    gt_trail_begin(&trail, 0);
    for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; i++) {
        const struct benchmark *b = &benchmarks[i];
        if (b->run != libunwind || backtrace_fn)
            descend(argc > 1 ? atoi(argv[1]) : 20, measure, b);
    }
    return 0;
}
