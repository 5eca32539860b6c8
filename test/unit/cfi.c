/*
 * The reader of .eh_frame: right about frames whose layout is known by hand, and never outside of
 * what it was given, whatever bytes that holds. The bytes stand between two pages that cannot be
 * read, touching either; build/asan/cfi (make asan) checks the same more closely.
 */
#include "check.h"

#include "preload/stacks/cfi.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

/* Cases by hand -------------------------------------------------------------------------------- */

/* One CIE, one FDE of 64 bytes of code with this program, and .eh_frame_hdr, as a linker does. */
struct made {
    uint8_t bytes[512];
    struct gt_cfi_object object;
};

static uint8_t *put(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static uint8_t *put32(uint8_t *p, int64_t v)
{
    int32_t word = (int32_t)v;
    return put(p, &word, 4);
}

static uintptr_t code_of(const struct made *m)
{
    return (uintptr_t)m->bytes + 0x10000;
}

/* Alignments of code and data, the return address, augmentation data (pcrel sdata4); the CFA. */
static const uint8_t common[] = {
#if defined(__x86_64__)
    1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
#elif defined(__aarch64__)
    4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0, 0, 0, 0, 0,
#endif
};

static void make(struct made *m, const uint8_t *program, size_t n, const char *augmentation)
{
    memset(m, 0, sizeof *m);
    uint8_t *hdr = m->bytes, *cie = hdr + 32, *p = cie + 4;
    p = put32(p, 0);
    *p++ = 1;
    p = put(p, augmentation, strlen(augmentation) + 1);
    p = put(p, common, sizeof common);
    put32(cie, p - cie - 4);
    uint8_t *fde = p;
    p = put32(fde + 4, fde + 4 - cie);
    p = put32(p, (int64_t)(code_of(m) - (uintptr_t)p));
    p = put32(p, 64);
    *p++ = 0;
    p = put(p, program, n);
    put32(fde, p - fde - 4);
    put(hdr, (uint8_t[]){1, 0x1b, 0x03, 0x3b}, 4);
    put32(hdr + 4, cie - (hdr + 4));
    put32(hdr + 8, 1);
    put32(hdr + 12, (int64_t)(code_of(m) - (uintptr_t)hdr));
    put32(hdr + 16, fde - hdr);
    m->object = (struct gt_cfi_object){m->bytes, p, hdr};
}

static struct gt_layout at(struct made *m, uintptr_t offset)
{
    return gt_cfi_layout(&m->object, code_of(m) + offset);
}

static void check_layout(struct gt_layout got, enum gt_frame_kind kind, int cfa, unsigned fp)
{
    CHECK_EQ(got.kind, kind);
    CHECK_EQ(got.cfa, cfa);
    CHECK_EQ(got.fp_words, fp);
}

#define MAKE(m, augmentation, ...) \
    make(m, (uint8_t[]){__VA_ARGS__}, sizeof(uint8_t[]){__VA_ARGS__}, augmentation)

#if defined(__x86_64__)

static void by_hand(void)
{
    static struct made m;
    /* push rbp; mov rsp,rbp; …; leave; ret */
    MAKE(&m, "zR", 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 40, 0x0c, 7, 8);
    check_layout(at(&m, 0), GT_FRAME_SP, 1, 0);
    check_layout(at(&m, 1), GT_FRAME_SP, 2, 2);
    check_layout(at(&m, 4), GT_FRAME_FP, 2, 2);
    check_layout(at(&m, 43), GT_FRAME_FP, 2, 2);
    check_layout(at(&m, 44), GT_FRAME_SP, 1, 2); /* libunwind, too, takes rbp from there */
    check_layout(at(&m, 63), GT_FRAME_SP, 1, 2);
    check_layout(at(&m, 64), GT_FRAME_UNKNOWN, 0, 0);
    check_layout(at(&m, (uintptr_t)-1), GT_FRAME_UNKNOWN, 0, 0);
    /* an early return: remember_state, pop, ret, restore_state */
    MAKE(&m, "zR", 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0e, 8, 0xc6, 0x41, 0x0b);
    check_layout(at(&m, 1), GT_FRAME_SP, 2, 2);
    check_layout(at(&m, 2), GT_FRAME_SP, 1, 0);
    check_layout(at(&m, 3), GT_FRAME_SP, 2, 2);
    /* the outermost frame */
    MAKE(&m, "zR", 0x07, 16);
    check_layout(at(&m, 5), GT_FRAME_OUTERMOST, 0, 0);
    /* realigned by GCC: rbp at *rbp, CFA in *(rbp - 8) */
    MAKE(&m, "zR", 0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06);
    check_layout(at(&m, 5), GT_FRAME_REALIGNED, -1, 0);
    /* the procedure linkage table */
    MAKE(&m, "zR", 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
    for (uintptr_t i = 0; i < 32; i++)
        check_layout(at(&m, i), GT_FRAME_SP, ((code_of(&m) + i) & 15) >= 11 ? 2 : 1, 0);
    /* the signal trampoline; the same without the mark */
    MAKE(&m, "zRS", 0x0f, 4, 0x77, 0xa0, 1, 0x06);
    check_layout(at(&m, 0), GT_FRAME_SIGNAL, 0, 0);
    MAKE(&m, "zR", 0x0f, 4, 0x77, 0xa0, 1, 0x06);
    check_layout(at(&m, 0), GT_FRAME_ODD, 0, 0);
    /* CFA by another register; rbp in one; an unknown operation, but only where it has been met */
    MAKE(&m, "zR", 0x41, 0x0c, 10, 0);
    check_layout(at(&m, 0), GT_FRAME_SP, 1, 0);
    check_layout(at(&m, 1), GT_FRAME_ODD, 0, 0);
    MAKE(&m, "zR", 0x09, 6, 9);
    check_layout(at(&m, 1), GT_FRAME_ODD, 0, 0);
    MAKE(&m, "zR", 0x41, 0x3f);
    check_layout(at(&m, 0), GT_FRAME_SP, 1, 0);
    check_layout(at(&m, 1), GT_FRAME_ODD, 0, 0);
    /* frames too big for us, in either direction */
    MAKE(&m, "zR", 0x0e, 0x80, 0x80, 0x80, 0x80, 0x08);
    check_layout(at(&m, 0), GT_FRAME_ODD, 0, 0);
    MAKE(&m, "zR", 0x86, 64);
    check_layout(at(&m, 0), GT_FRAME_ODD, 0, 0);
    MAKE(&m, "zX", 0);
    check_layout(at(&m, 0), GT_FRAME_ODD, 0, 0);
}

#elif defined(__aarch64__)

static void check_saved(struct gt_layout got, enum gt_frame_kind kind, int cfa, unsigned ra,
                        unsigned fp)
{
    check_layout(got, kind, cfa, fp);
    CHECK_EQ(got.ra_words, ra);
}

static void by_hand(void)
{
    static struct made m;
    /* GCC's: stp x29, x30, [sp, -32]!; mov x29, sp; …; ldp x29, x30, [sp], 32; ret */
    MAKE(&m, "zR", 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x4a, 0xdd, 0xde, 0x0e, 0);
    check_saved(at(&m, 0), GT_FRAME_SP, 0, 0, 0);
    check_saved(at(&m, 4), GT_FRAME_SP, 4, 3, 4);
    check_saved(at(&m, 43), GT_FRAME_SP, 4, 3, 4);
    check_saved(at(&m, 44), GT_FRAME_SP, 0, 0, 0);
    check_saved(at(&m, 64), GT_FRAME_UNKNOWN, 0, 0, 0);
    /* Clang's, with a return address that is signed and the other key: the registers above all else
     */
    MAKE(&m, "zRB", 0x2d, 0x41, 0x0c, 29, 16, 0x9e, 1, 0x9d, 2);
    check_saved(at(&m, 0), GT_FRAME_SP, 0, 0, 0);
    check_saved(at(&m, 4), GT_FRAME_FP, 2, 1, 2);
    /* large, with the registers at the bottom; in the middle; without fp */
    MAKE(&m, "zR", 0x0e, 0xc0, 0xb8, 2, 0x9d, 0x88, 0x27, 0x9e, 0x87, 0x27);
    check_saved(at(&m, 0), GT_FRAME_SP, 5000, 4999, 5000);
    MAKE(&m, "zR", 0x0e, 0xc0, 0xb8, 2, 0x9d, 0x88, 0x7, 0x9e, 0x87, 0x7);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
    MAKE(&m, "zR", 0x0e, 32, 0x9e, 4);
    check_saved(at(&m, 0), GT_FRAME_SP, 4, 4, 0);
    /* ld.so's while it binds a function: the return address above the CFA, then taken from there */
    MAKE(&m, "zR", 0x11, 30, 0x7f, 0x41, 0x0e, 0xd0, 1, 0x48, 0x0e, 0, 0x41, 0x13, 2);
    check_saved(at(&m, 0), GT_FRAME_SP, 2, 1, 0);
    check_saved(at(&m, 4), GT_FRAME_SP, 28, 1, 0);
    check_saved(at(&m, 36), GT_FRAME_SP, 2, 1, 0);
    check_saved(at(&m, 40), GT_FRAME_SP, 0, 0, 0);
    /* the same above a frame pointer, with fp; too far above; by a CFA that is in memory */
    MAKE(&m, "zR", 0x0c, 29, 16, 0x9d, 2, 0x11, 30, 0x7f);
    check_saved(at(&m, 0), GT_FRAME_FP, 4, 1, 4);
    MAKE(&m, "zR", 0x11, 30, 0xbf, 0x7f);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
    MAKE(&m, "zR", 0x0f, 3, 0x8f, 8, 0x06, 0x11, 30, 0x7f);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
    /* the outermost frame; a signal's, which is known by its code; an unaligned address; too large
     */
    MAKE(&m, "zR", 0x07, 30);
    check_saved(at(&m, 0), GT_FRAME_OUTERMOST, 0, 0, 0);
    MAKE(&m, "zRS", 0x0c, 29, 0);
    check_saved(at(&m, 0), GT_FRAME_UNKNOWN, 0, 0, 0);
    MAKE(&m, "zR", 0x0e, 20, 0x9e, 1);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
    MAKE(&m, "zR", 0x0c, 29, 40, 0x9e, 4, 0x9d, 5);
    check_saved(at(&m, 0), GT_FRAME_FP, 5, 4, 5);
    MAKE(&m, "zR", 0x0e, 0x80, 0x80, 0x80, 0x80, 0x08, 0x9e, 1);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
    /* the return address in a register that is not its own; a vector length in the CFA */
    MAKE(&m, "zR", 0x09, 30, 17);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
    MAKE(&m, "zR", 0x0f, 6, 0x8f, 16, 0x92, 46, 0, 0x22);
    check_saved(at(&m, 0), GT_FRAME_ODD, 0, 0, 0);
}

#endif

/* Damaged tables ------------------------------------------------------------------------------- */

static uint64_t seed = 1;

static uint32_t rnd(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

struct table {
    const uint8_t *hdr;
    size_t size;
};

/* Of the object that holds the function in `arg`, up to the segment's end. */
static int find_table(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct table *t = arg;
    (void)size;
    const uint8_t *hdr = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            hdr = (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const uint8_t *lo = (const uint8_t *)info->dlpi_addr + ph->p_vaddr;
        if (hdr && ph->p_type == PT_LOAD && hdr >= lo && hdr < lo + ph->p_filesz &&
            (size_t)(lo + ph->p_filesz - hdr) > t->size)
            *t = (struct table){hdr, (size_t)(lo + ph->p_filesz - hdr)};
    }
    return 0;
}

#if defined(__SANITIZE_ADDRESS__)
static uint8_t *room(size_t size, bool at_end)
{
    (void)at_end;
    return malloc(size);
}

static void give_back(uint8_t *p, size_t size, bool at_end)
{
    (void)size;
    (void)at_end;
    free(p);
}
#else
static uint8_t *room(size_t size, bool at_end)
{
    size_t whole = (size + PAGE - 1) / PAGE * PAGE;
    uint8_t *p = mmap(NULL, whole + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + PAGE, whole, PROT_READ | PROT_WRITE);
    return p + PAGE + (at_end ? whole - size : 0);
}

static void give_back(uint8_t *p, size_t size, bool at_end)
{
    size_t whole = (size + PAGE - 1) / PAGE * PAGE;
    munmap(p - PAGE - (at_end ? whole - size : 0), whole + 2 * PAGE);
}
#endif

/* A few hundred addresses, most of them of functions in the table. */
static uint32_t ask(const struct gt_cfi_object *o, uint32_t times)
{
    uint32_t n, good = 0;
    memcpy(&n, o->hdr + 8, sizeof n);
    for (uint32_t i = 0; i < times; i++) {
        uint64_t at = 12 + 8 * (uint64_t)rnd(n ? n : 1);
        int32_t start = 0;
        if (at + 4 <= (uint64_t)(o->hi - o->hdr))
            memcpy(&start, o->hdr + at, sizeof start);
        uintptr_t pc = (uintptr_t)o->hdr + (uintptr_t)(intptr_t)start + rnd(200);
        struct gt_layout l = gt_cfi_layout(o, pc);
        CHECK(l.kind != GT_FRAME_EMPTY && l.kind <= GT_FRAME_ODD && l.cfa >= -GT_LAYOUT_CFA_MAX &&
              l.cfa < GT_LAYOUT_CFA_MAX &&
              (!l.fp_words || l.fp_words + 1 - l.ra_words <= GT_LAYOUT_FP_MAX));
        good += l.kind == GT_FRAME_SP || l.kind == GT_FRAME_FP;
    }
    return good;
}

static void damage(uint8_t *p, size_t size)
{
    for (uint32_t i = 0, n = 1 + rnd(2000); i < n; i++) {
        size_t where = rnd((uint32_t)size);
        p[where] = rnd(4) ? (uint8_t)rnd(256) : 0xff;
    }
}

static void damaged(void)
{
    struct table t = {0};
    dl_iterate_phdr(find_table, &t); /* libc's is the biggest */
    CHECK(t.hdr);
    for (int round = 0; round < 2000; round++) {
        bool at_end = round & 1;
        size_t size = round < 2 ? t.size : rnd(4) ? t.size - rnd(4096) : 16 + rnd(60000);
        size = size > t.size ? t.size : size;
        uint8_t *copy = room(size, at_end);
        memcpy(copy, t.hdr, size);
        struct gt_cfi_object o = {copy, copy + size, copy};
        if (round < 2)
            CHECK(ask(&o, 3000) > 2500, "the undamaged table is not understood");
        else if (size > 1000)
            damage(copy + (rnd(4) ? 12 : 0), size - 12);
        ask(&o, 300);
        give_back(copy, size, at_end);
    }
}

/* A small table whose every byte takes every value. */
static void every_byte(void)
{
    static struct made m;
    MAKE(&m, "zR", 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x02, 40, 0x0c, 7, 8, 0x0b, 0x0f,
         3, 0x76, 0x78, 0x06);
    size_t size = (size_t)(m.object.hi - m.object.lo);
    uintptr_t offset = code_of(&m) - (uintptr_t)m.bytes;
    uint8_t *copy = room(size, true);
    memcpy(copy, m.bytes, size);
    struct gt_cfi_object o = {copy, copy + size, copy};
    for (size_t i = 0; i < size; i++) {
        for (int v = 0; v < 256; v++) {
            copy[i] = (uint8_t)v;
            for (uintptr_t pc = 0; pc < 64; pc += 7)
                gt_cfi_layout(&o, (uintptr_t)copy + offset + pc);
        }
        copy[i] = m.bytes[i];
    }
    give_back(copy, size, true);
}

int main(void)
{
    by_hand();
    damaged();
    every_byte();
    return 0;
}
