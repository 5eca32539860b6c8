/* See layouts.h. */
#include "code_layouts.h"

#include "encoder/base/clock.h"
#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"
#include "encoder/base/sparse.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#if !defined(DLFO_STRUCT_HAS_EH_DBASE)
/* Only to compile with glibc before 2.35, which has no such function. */
struct dl_find_object {
    unsigned long long flags;
    void *dlfo_map_start, *dlfo_map_end;
    struct link_map *dlfo_link_map;
    void *dlfo_eh_frame, *reserved[8];
};
#endif

#define PAGE 4096u

struct gt_layouts gt_layouts GT_SPARSE;

static _Atomic bool used; /* there are entries; else the cache's memory stays untouched */

bool (*gt_layouts_find)(uintptr_t pc, struct gt_layout_object *found);

static struct {
    uintptr_t program; /* the first page of its image */
    int (*find_object)(void *pc, struct dl_find_object *result);
} loader;

/* Finding a layout --------------------------------------------------------------------------- */

/*
 * A call that neither writes nor depends on anything: the kernel refuses `how` after it has read
 * the set.
 */
bool gt_page_readable(uintptr_t page)
{
    return gt_syscall(SYS_rt_sigprocmask, ~0l, page, NULL, sizeof(uint64_t)) == -1 &&
           errno == EINVAL;
}

bool gt_can_read(const void *at, size_t size)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)(PAGE - 1), last = (uintptr_t)at + size - 1;
    bool wraps = last < page;
    int saved = errno;
    while (page <= last && gt_page_readable(page))
        page += PAGE;
    errno = saved;
    return !wraps && page > last;
}

uint32_t gt_number_of_thread(uintptr_t thread)
{
    clockid_t clock;
    bool known_here = gt_can_read((const void *)thread, GT_TCB_HAS_ID) &&
                      pthread_getcpuclockid((pthread_t)thread, &clock) == 0;
    return known_here ? gt_clock_thread(clock) : 0;
}

static bool is_header(uintptr_t at)
{
    return memcmp((const void *)at, ELFMAG, SELFMAG) == 0;
}

/*
 * Where the object's ELF header is. Linkers put it at the beginning of the first segment. libc
 * finds objects with holes by their segments. For these, the header is where the object was loaded;
 * or the object is linked to a fixed address, and is the program.
 */
static uintptr_t header_of(const struct gt_layout_object *found)
{
    uintptr_t base = found->bias ? found->bias : loader.program;
    if (is_header(found->start))
        return found->start;
    return base && base % PAGE == 0 && gt_page_readable(base) && is_header(base) ? base : 0;
}

/*
 * The object's segment that holds .eh_frame_hdr: an object's span has holes that cannot be read.
 * Linkers put the program headers into the first page of the first segment.
 */
static bool find_segment(const struct gt_layout_object *found, struct gt_cfi_object *o)
{
    uintptr_t start = header_of(found), hdr = found->hdr, bias = found->bias;
    const ElfW(Ehdr) *header = (const void *)start;
    if (!header || header->e_phoff > PAGE || header->e_phentsize != sizeof(ElfW(Phdr)) ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > PAGE)
        return false;
    const ElfW(Phdr) *ph = (const void *)(start + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        uintptr_t lo = bias + ph[i].p_vaddr;
        if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_R) && hdr - lo < ph[i].p_filesz) {
            *o = (struct gt_cfi_object){(const void *)lo, (const void *)(lo + ph[i].p_filesz),
                                        (const void *)hdr};
            return true;
        }
    }
    return false;
}

static bool ask_loader(uintptr_t look, struct gt_layout_object *object)
{
    struct dl_find_object found;
    if (loader.find_object((void *)look, &found) != 0)
        return false;
    *object =
        (struct gt_layout_object){(uintptr_t)found.dlfo_map_start, found.dlfo_link_map->l_addr,
                                  (uintptr_t)found.dlfo_eh_frame};
    return true;
}

/* *keep: whether the answer holds until a module is unloaded. */
static struct gt_layout find_information(uintptr_t look, bool *keep)
{
    struct gt_layout_object found;
    struct gt_cfi_object object;
    *keep = gt_layouts_find(look, &found);
    /* Perhaps code made at run time; or the address of a library that is loaded later. */
    if (!*keep || !found.hdr)
        return (struct gt_layout){.kind = GT_FRAME_UNKNOWN};
    if (!find_segment(&found, &object))
        return (struct gt_layout){.kind = GT_FRAME_ODD};
    return gt_cfi_layout(&object, look);
}

static bool is_trampoline(uintptr_t look)
{
    const uint32_t *code = (const void *)((look | 3) + 1); /* look is in the word before */
    return !GT_ARCH_SIGNAL_SP && gt_can_read(code, 2 * sizeof *code) && gt_arch_is_trampoline(code);
}

static bool plt_pushed(const uint32_t *at)
{
    enum { ALL = GT_ARCH_PLT_BEFORE + 1 + GT_ARCH_PLT_AFTER };
    return gt_can_read(at - GT_ARCH_PLT_BEFORE, ALL * sizeof *at) && gt_arch_plt_pushed(at);
}

/*
 * The layout of code that a signal interrupted on the way from a procedure linkage table to ld.so.
 * ld.so's own information counts the words that the table has pushed only after its landing.
 */
static struct gt_layout find_interrupted(uintptr_t look, struct gt_layout l, bool *keep)
{
    const uint32_t *at = (const void *)look;
    if (l.kind == GT_FRAME_UNKNOWN && plt_pushed(at))
        return (struct gt_layout){.kind = GT_FRAME_SP, .cfa = 2, .ra_words = 1};
    if (l.kind == GT_FRAME_SP && !l.ra_words && gt_can_read(at, sizeof *at) &&
        gt_arch_is_landing(at))
        return find_information(look + sizeof *at, keep);
    return l;
}

static struct gt_layout find_layout(uintptr_t look, bool *keep)
{
    struct gt_layout l = find_information(look, keep);
    if (l.kind == GT_FRAME_UNKNOWN && is_trampoline(look))
        l.kind = GT_FRAME_SIGNAL;
    else if (!GT_ARCH_RA_BELOW && look % sizeof(uint32_t) == 0)
        l = find_interrupted(look, l, keep);
    return l;
}

/* The cache ---------------------------------------------------------------------------------- */

static uint64_t word_of(struct gt_layout l)
{
    int64_t cfa = (int64_t)l.cfa * 8 >> GT_ARCH_STACK_ALIGN;
    bool above = l.ra_words > GT_LAYOUT_RA_MAX;
    uint64_t ra = above ? (uint32_t)l.cfa - l.ra_words + GT_LAYOUT_RA_ABOVE : l.ra_words;
    uint64_t fp = l.fp_words ? l.fp_words + 1 - l.ra_words : 0;
    return ((uint64_t)cfa & ((1u << GT_LAYOUT_CFA_BITS) - 1)) << GT_LAYOUT_CFA_SHIFT |
           (GT_ARCH_RA_BELOW ? 0 : ra << GT_LAYOUT_RA_SHIFT) | fp << GT_LAYOUT_FP_SHIFT | l.kind;
}

static void insert(struct gt_layout_place at, uint64_t word, uint32_t forgets)
{
    _Atomic uint64_t *slot = &gt_layouts.cache[at.slot], *other = &gt_layouts.cache[at.slot ^ 1];
    word |= at.tag;
    atomic_store_explicit(&used, true, memory_order_relaxed);
    if (atomic_load_explicit(slot, memory_order_relaxed) &&
        !atomic_load_explicit(other, memory_order_relaxed)) {
        slot = other;
        word |= GT_LAYOUT_DISPLACED;
    }
    atomic_store_explicit(slot, word, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in forget */
    if (atomic_load_explicit(&gt_layouts.forgets, memory_order_relaxed) != forgets)
        atomic_compare_exchange_strong(slot, &word, 0);
}

uint64_t gt_layout_lookup_slow(uintptr_t look)
{
    bool keep;
    if (look >> 48)
        return GT_FRAME_UNKNOWN; /* a program has no such address */
    /* acquire: the object below is not read before this. */
    uint32_t forgets = atomic_load_explicit(&gt_layouts.forgets, memory_order_acquire);
    uint64_t word = word_of(find_layout(look, &keep));
    if (keep)
        insert(gt_layout_place(look), word, forgets);
    return word;
}

/*
 * Empties the cache before it sets the epoch: a thread that sees the new epoch finds no old entry.
 */
void gt_layouts_forget(uint32_t epoch)
{
    atomic_fetch_add(&gt_layouts.forgets, 1);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in insert */
    bool any = atomic_load_explicit(&used, memory_order_relaxed);
    for (uint32_t i = 0; any && i < GT_LAYOUT_SLOTS; i++) {
        if (atomic_load_explicit(&gt_layouts.cache[i], memory_order_relaxed))
            atomic_store_explicit(&gt_layouts.cache[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&gt_layouts.epoch, epoch, memory_order_release);
}

bool gt_layouts_init(void)
{
    loader.program = getauxval(AT_PHDR) & ~(uintptr_t)(PAGE - 1);
    *(void **)&loader.find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    if (loader.find_object)
        gt_layouts_find = ask_loader;
    return gt_layouts_find != NULL;
}
