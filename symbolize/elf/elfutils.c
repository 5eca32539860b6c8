/*
 * See elfutils.h.
 *
 * The private libc is set up for one thread, the one that loads it. Its TLS starts zeroed in every
 * other thread, which is correct except for the character class tables: __ctype_init sets those.
 *
 * The fork handlers of the private libc never run. A child that is forked while another thread is
 * inside elfutils may inherit a locked malloc. Such a child loads a second namespace, and never
 * uses the first one again.
 */
#include "elfutils.h"

#include "elf_names.h"
#include "guest.h"
#include "namespace.h"
#include "loading.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/futex.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define LIBDW "libdw.so.1"

static struct {
    struct gt_elfutils api;
    bool tried, loaded;
    uint32_t generation;
    void (*init_thread)(void);
    bool busy;            /* the last attempt to load found another thread in the loader */
    uint64_t headroom_ns; /* when there was headroom last */
} state;

/* In memory that a fork zeroes in the child: `mine` is set only in the process that set it. */
struct birth {
    _Atomic uint32_t mine;
};
static struct birth *birth;
static _Atomic uint32_t inside; /* threads in elfutils; a forked child inherits it */
static _Thread_local bool inside_here;
static _Thread_local jmp_buf *bail_to;
static struct gt_lock loading;

static const struct {
    const char *name;
    void **slot;
    bool optional;
} rows[] = {
#define GT_DW(name) {#name, (void **)&state.api.name, false},
#define GT_DW_OPTIONAL(name) {#name, (void **)&state.api.name, true},
#include "elfutils.def"
#undef GT_DW_OPTIONAL
#undef GT_DW
};

void (*gt_symbolize_jump)(jmp_buf env, int value) = longjmp;

static void bail(void)
{
    gt_symbolize_jump(*bail_to, 1);
}

static bool is_inside(void)
{
    return inside_here;
}

static void *load(void)
{
    void *lib = gt_namespace_load(LIBDW, bail);
    state.api.private_libc = lib != NULL;
    state.init_thread = lib ? (void (*)(void))dlsym(lib, "__ctype_init") : NULL;
    return lib ? lib : gt_guest_load(LIBDW, is_inside, bail);
}

/* Loads elfutils. Called after gt_elf_loader_enter, so that dlopen waits for nobody. */
static void load_all(void)
{
    void *lib = load();
    bool all = lib != NULL;
    for (size_t i = 0; all && i < sizeof rows / sizeof *rows; i++)
        all = (*rows[i].slot = dlsym(lib, rows[i].name)) != NULL || rows[i].optional;
    state.loaded = all && state.api.elf_version(EV_CURRENT) != EV_NONE;
    state.tried = true;
}

/*
 * Loads elfutils, unless another thread holds the loader's lock. A thread in a constructor holds it
 * until the constructor returns, and may be waiting for the drain thread, to end the process. So
 * the drain thread gives up soon, and tries again when it needs the next name.
 */
static void try_to_load(void)
{
    enum { BUSY_NS = 50000000 };
    if (!gt_lock_within(&loading, GT_RANK_LOADING, GT_LOCK_PATIENCE_NS)) {
        state.tried = true; /* forked while the parent was loading: see recover */
        return;
    }
    if (!state.tried) {
        state.busy = gt_elf_loader_enter(state.busy ? 0 : BUSY_NS) != 0;
        if (!state.busy) {
            load_all();
            gt_elf_loader_leave();
        }
    }
    gt_unlock(&loading);
}

bool gt_symbolize_fork_begin(void)
{
    return gt_lock_within(&loading, GT_RANK_LOADING, GT_LOCK_PATIENCE_NS);
}

void gt_symbolize_fork_end(void)
{
    gt_unlock(&loading);
}

/*
 * Repairs the state of a child that was forked in the middle of a call of elfutils. If the fork was
 * not announced, it may also have come while the loader was loading elfutils: then the child must
 * not call the loader again.
 */
static void recover(void)
{
    atomic_store_explicit(&inside, 0, memory_order_relaxed);
    state.generation++;
    if (!state.tried || atomic_load(&loading.word))
        return;
    if (state.api.private_libc)
        state.tried = false; /* load a second namespace */
    else
        state.loaded = false; /* a second load would return the same library */
}

static void notice_fork(void)
{
    if (!birth) {
        void *p = gt_pages_alloc(4096);
        if (!p)
            return;
        madvise(p, 4096, MADV_WIPEONFORK);
        birth = p;
    } else if (!atomic_load_explicit(&birth->mine, memory_order_relaxed) &&
               atomic_load_explicit(&inside, memory_order_relaxed)) {
        recover();
    }
    atomic_store_explicit(&birth->mine, 1, memory_order_relaxed);
}

/* Whether mapped memory is resident at once: after mlockall(MCL_FUTURE). madvise(2) refuses to drop
 * locked pages. (mincore(2) would tell, too, but systemd's @system-service does not allow it.) */
static bool is_locked(void)
{
    void *p = gt_pages_alloc(4096);
    bool locked = p && madvise(p, 4096, MADV_DONTNEED) != 0;
    gt_pages_free(p, 4096);
    return locked;
}

/*
 * Whether there is memory for calls of libdw: 0.188 follows null pointers when memory runs out.
 * After mlockall(MCL_FUTURE) only checks the address space: the kernel would make the memory at
 * once, and all other threads that need memory would wait. A result is valid for a millisecond,
 * since a program cannot fill that much memory in less.
 */
static bool has_headroom(void)
{
    enum { HEADROOM = 32 << 20, LASTS_NS = 1000000 };
    uint64_t now_ns = gt_clock_monotonic_raw();
    if (now_ns - state.headroom_ns < LASTS_NS)
        return true;
    void *p = mmap(NULL, HEADROOM, is_locked() ? PROT_NONE : PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    munmap(p, HEADROOM);
    state.headroom_ns = now_ns;
    return true;
}

void gt_elfutils_enter(jmp_buf *on_abort)
{
    notice_fork();
    /* seq_cst: if a fork by another thread copies the effects of the calls that follow, it must
     * copy this increment, too. Pairs with fork. */
    atomic_fetch_add_explicit(&inside, 1, memory_order_seq_cst);
    bail_to = on_abort;
    inside_here = true;
}

const struct gt_elfutils *gt_elfutils_get(void)
{
    if (!has_headroom())
        state.tried = true, state.loaded = false;
    if (!state.tried)
        try_to_load();
    if (state.init_thread)
        state.init_thread();
    return state.loaded ? &state.api : NULL;
}

void gt_elfutils_leave(void)
{
    inside_here = false;
    atomic_fetch_sub_explicit(&inside, 1, memory_order_release);
}

uint32_t gt_elfutils_generation(void)
{
    return state.generation;
}

void gt_symbolize_freeze(void)
{
    state.tried = true;
}

void gt_elfutils_give_up(void)
{
    state.loaded = false;
}
