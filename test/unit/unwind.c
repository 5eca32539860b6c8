/*
 * The walker on stacks whose call frame information lies: it may stop early, it must not read past
 * the end of the stack (behind which there is a page that cannot be read), and the next walk must
 * be right again. What it says of honest stacks: test/integration/test_unwind.py.
 */
#include "check.h"

#include "preload/stacks/unwind.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE 4096u
#define NOINLINE __attribute__((noinline, noclone))

/* Both call fn(). far_frame says it is larger than the stack; fp_frame that its caller is at `fp`.
 */
void far_frame(void (*fn)(void));
void fp_frame(void (*fn)(void), uintptr_t fp);

/*
 * Instructions: stopped, where one is interrupted; called, in a function without a caller. Hidden:
 * where they stand in a table, linkers for aarch64 take local labels for the section's beginning.
 */
#define LABEL extern __attribute__((visibility("hidden"))) const char
LABEL stopped[], called[];

#if defined(__x86_64__)

/* stopped: where a function has its caller's fp back, which it is said to have below sp still. */
__asm__(".text\n"
        "far_frame:\n"
        ".cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_def_cfa_offset 4000000\n"
        "    call *%rdi\n"
        "    pop %rbx\n"
        "    ret\n"
        ".cfi_endproc\n"
        "fp_frame:\n"
        ".cfi_startproc\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    sub $8, %rsp\n"
        "    mov %rsi, %rbp\n"
        "    .cfi_def_cfa %rbp, 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    call *%rdi\n"
        "    add $8, %rsp\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".cfi_endproc\n"
        "popping:\n"
        ".cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa_offset 8\n"
        "stopped:\n"
        "    ret\n"
        ".cfi_endproc\n"
        "outermost:\n"
        ".cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    call outermost\n"
        "called:\n"
        "    ud2\n"
        ".cfi_endproc\n");

static void stop(ucontext_t *context, uintptr_t *sp)
{
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)stopped;
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
    *sp = (uintptr_t)called;
}

#elif defined(__aarch64__)

/* stopped: in a leaf, whose caller is in a register only. */
__asm__(".text\n"
        "far_frame:\n"
        ".cfi_startproc\n"
        "    stp x29, x30, [sp, -16]!\n"
        "    .cfi_def_cfa_offset 262128\n"
        "    .cfi_offset x29, -262128\n"
        "    .cfi_offset x30, -262120\n"
        "    blr x0\n"
        "    ldp x29, x30, [sp], 16\n"
        "    ret\n"
        ".cfi_endproc\n"
        "fp_frame:\n"
        ".cfi_startproc\n"
        "    stp x29, x30, [sp, -16]!\n"
        "    mov x29, x1\n"
        "    .cfi_def_cfa x29, 16\n"
        "    .cfi_offset x29, -16\n"
        "    .cfi_offset x30, -8\n"
        "    blr x0\n"
        "    ldp x29, x30, [sp], 16\n"
        "    ret\n"
        ".cfi_endproc\n"
        "leaf:\n"
        ".cfi_startproc\n"
        "stopped:\n"
        "    ret\n"
        ".cfi_endproc\n"
        "linkage:\n" /* the beginning of a procedure linkage table, then what ld.so has */
        "    stp x16, x30, [sp, -16]!\n"
        "    adrp x16, linkage\n"
        "    ldr x17, [x16]\n"
        "    add x16, x16, 8\n"
        "    br x17\n"
        ".cfi_startproc\n"
        "    hint #34\n" /* bti c */
        "    .cfi_offset x30, 8\n"
        "    stp x8, x9, [sp, -208]!\n"
        "    .cfi_def_cfa_offset 208\n"
        "    blr x17\n"
        "    ldp x8, x9, [sp], 208\n"
        "    .cfi_def_cfa_offset 0\n"
        "    ldp x17, x30, [sp], 16\n"
        "    .cfi_def_cfa_offset -16\n"
        "    br x16\n"
        ".cfi_endproc\n"
        "caller:\n"
        ".cfi_startproc\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset x30, -8\n"
        "    bl linkage\n"
        "calls:\n"
        "    udf 0\n"
        ".cfi_endproc\n"
        "outermost:\n"
        ".cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    bl outermost\n"
        "called:\n"
        "    udf 0\n"
        ".cfi_endproc\n");

/* As a function that signs it would have the return address. Does nothing on older CPUs. */
static uintptr_t sign(uintptr_t address, uintptr_t sp)
{
    register uintptr_t x17 __asm__("x17") = address;
    register uintptr_t x16 __asm__("x16") = sp;
    __asm__("hint #8" : "+r"(x17) : "r"(x16)); /* PACIA1716 */
    return x17;
}

static void stop(ucontext_t *context, uintptr_t *sp)
{
    context->uc_mcontext.pc = (uintptr_t)stopped;
    context->uc_mcontext.sp = (uintptr_t)sp;
    context->uc_mcontext.regs[30] = sign((uintptr_t)called, (uintptr_t)sp);
}

#endif

static struct gt_trail trail;
static uint32_t frames;
static enum gt_walked walked;
static bool broken;

NOINLINE static void walk(void)
{
    uint64_t again[GT_TRAIL_MAX];
    walked = gt_unwind(&trail, 1, &frames);
    broken = walked >= GT_WALK_FRESH;
    const struct gt_path *p = gt_trail_last(&trail);
    if (!broken)
        frames = p->frames;
    CHECK(frames <= GT_TRAIL_MAX);
    /* From this function's frame, not from that of gt_unwind. */
    const uintptr_t *frame = __builtin_frame_address(0);
    uint32_t n = gt_unwind_hook(&trail, 1, frame, gt_arch_within(frame), again, NULL);
    CHECK(n < frames || frames == GT_TRAIL_MAX);
    CHECK(broken || (n == frames - 1 && memcmp(again, &p->pcs[gt_path_first(p) + 2], n * 8) == 0));
}

/* Two stacks in turn are remembered, a third one takes the place of the older. */
NOINLINE static void deeper(int n)
{
    if (n > 0)
        deeper(n - 1);
    else
        walk();
    __asm__ volatile("");
}

static void to_and_fro(void)
{
    for (int i = 0; i < 8; i++) {
        deeper(1 + i % 2 * 5);
        CHECK((walked == GT_WALK_SAME) == (i >= 2), "%d", i);
    }
    for (int i = 0; i < 6; i++) {
        deeper(10 + i % 3);
        CHECK(walked == GT_WALK_TRAIL, "%d", i);
    }
}

/* From scratch and by the trail: the same. */
NOINLINE static void honest(void)
{
    uint64_t pcs[GT_TRAIL_MAX];
    trail.path[0].frames = trail.path[1].frames = 0;
    for (int i = 0; i < 3; i++) {
        walk();
        CHECK(!broken);
        const uint64_t *now = &gt_trail_last(&trail)->pcs[gt_path_first(gt_trail_last(&trail)) + 1];
        /* but for where this loop, which may be unrolled, calls */
        CHECK(i == 0 || memcmp(pcs + 2, now + 2, (frames - 2) * sizeof *pcs) == 0);
        memcpy(pcs, now, frames * sizeof *pcs);
    }
    CHECK(frames >= 3);
}

/* On a stack that ends at `end`. */
static void lies(uintptr_t end)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t values[] = {
        0,       1,         8,         here - 4096, here + 1,         here + 64,
        end - 8, end,       end - 16,  end - 24,    end + 8,          end + PAGE,
        1 << 20, 1ul << 46, 1ul << 63, UINTPTR_MAX, UINTPTR_MAX - 15, UINTPTR_MAX - 23,
    };
    honest();
    far_frame(walk);
    CHECK(frames >= 2 && broken);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fp_frame(walk, values[i]);
        CHECK(frames >= 2);
        honest();
    }
    for (uintptr_t fp = end - 1000; fp < end + 1000; fp += 8) {
        fp_frame(walk, fp);
        CHECK(frames >= 2);
    }
    honest();
}

/*
 * An interrupted function whose caller's registers are in the last word of a page, or in registers;
 * then the stack is gone.
 */
static void interrupted(void)
{
    uint64_t pcs[GT_FRAMES_MAX];
    uintptr_t *page =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t without = GT_ARCH_RA_BELOW ? 1 : 2; /* frames that are known without a stack */
    ucontext_t context = {0};
    stop(&context, page + PAGE / sizeof *page);
    CHECK_EQ(gt_unwind_context(&trail, 1, &context, pcs, NULL), 2);
    CHECK_EQ(pcs[0], (uintptr_t)stopped);
    CHECK_EQ(pcs[1], (uintptr_t)called);
    CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
    CHECK_EQ(gt_unwind_context(&trail, 1, &context, pcs, NULL), without);
    CHECK(mprotect(page, 2 * PAGE, PROT_NONE) == 0);
    CHECK_EQ(gt_unwind_context(&trail, 1, &context, pcs, NULL), without);
    munmap(page, 2 * PAGE);
}

#if defined(__aarch64__)
/* At each instruction of `linkage`, on whose stack are so many words then. */
static void while_bound(void)
{
    LABEL linkage[], calls[];
    static const struct {
        uint8_t words;
        bool ra_is_elsewhere;
    } at[] = {{0}, {2}, {2}, {2}, {2}, {2}, {2}, {28, true}, {28, true}, {2, true}, {0}};
    static uintptr_t stack[64];
    uintptr_t *of_caller = &stack[40];
    of_caller[3] = (uintptr_t)called;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        uint64_t pcs[GT_FRAMES_MAX];
        ucontext_t context = {0};
        of_caller[-1] = at[i].words ? (uintptr_t)calls : 0;
        context.uc_mcontext.pc = (uintptr_t)linkage + 4 * i;
        context.uc_mcontext.sp = (uintptr_t)(of_caller - at[i].words);
        context.uc_mcontext.regs[30] = at[i].ra_is_elsewhere ? 8 : (uintptr_t)calls;
        uint32_t n = gt_unwind_context(&trail, 1, &context, pcs, NULL);
        CHECK(n == 3, "%u at %zu", n, i);
        CHECK_EQ(pcs[1], (uintptr_t)calls);
        CHECK_EQ(pcs[2], (uintptr_t)called);
    }
}
#endif

static void *in_thread(void *arg)
{
    gt_trail_begin(&trail, (size_t)(uintptr_t)arg);
    lies((uintptr_t)pthread_self());
    return NULL;
}

static ucontext_t here, there;
static uintptr_t end_of_coroutine;

static void coroutine(void)
{
    lies(end_of_coroutine);
    swapcontext(&there, &here);
}

static void in_coroutine(void)
{
    enum { SIZE = 16 * PAGE };
    char *stack = mmap(NULL, SIZE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(stack + PAGE, SIZE, PROT_READ | PROT_WRITE) == 0);
    end_of_coroutine = (uintptr_t)stack + PAGE + SIZE;
    getcontext(&there);
    there.uc_stack.ss_sp = stack + PAGE;
    there.uc_stack.ss_size = SIZE;
    makecontext(&there, coroutine, 0);
    gt_trail_begin(&trail, 0);
    swapcontext(&here, &there);
}

/* With a stack of our own, so that we know what is behind it. */
static void thread_with(size_t known)
{
    enum { SIZE = 64 * PAGE };
    pthread_attr_t attr;
    pthread_t thread;
    char *stack = mmap(NULL, SIZE + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(stack, SIZE, PROT_READ | PROT_WRITE) == 0);
    pthread_attr_init(&attr);
    CHECK(pthread_attr_setstack(&attr, stack, SIZE) == 0);
    CHECK(pthread_create(&thread, &attr, in_thread, (void *)known) == 0);
    pthread_join(thread, NULL);
}

int main(void)
{
    if (!gt_unwind_init(0, 0))
        return 77;
    gt_trail_begin(&trail, 0);
    CHECK(trail.stack_hi > trail.stack_lo, "the main thread's stack is not known");
    lies(trail.stack_hi);
    to_and_fro();
    interrupted();
#if defined(__aarch64__)
    while_bound();
#endif
    thread_with(64 * PAGE);
    thread_with(0);
    in_coroutine();
    return 0;
}
