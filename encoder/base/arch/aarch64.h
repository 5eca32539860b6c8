/* See arch.h. */
#pragma once

/*
 * Reads the virtual counter without the ISB that would order the read: the CPU may read it before
 * earlier instructions are done. Times are no more exact than that, and the order of effects does
 * not rest on them (writer.h, rule 6).
 */
static inline uint64_t gt_arch_counter(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
}

/* The generic timer is constant by architecture. */
static inline bool gt_arch_counter_usable(void)
{
    return true;
}

/* No instruction tells it: MIDR_EL1 has numbers only. */
static inline void gt_arch_cpu_model(char model[static GT_ARCH_CPU_MODEL])
{
    *model = 0;
}

#define GT_ARCH_COUNTER_SHIFT 0
#define GT_ARCH_VDSO_CLOCK_GETTIME "__kernel_clock_gettime"

/* `yield` does nothing on most cores; this waits for a few dozen cycles. */
static inline void gt_arch_pause(void)
{
    __asm__ volatile("isb");
}

static inline long gt_arch_syscall(long number, const long argument[6])
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = argument[0];
    register long x1 __asm__("x1") = argument[1];
    register long x2 __asm__("x2") = argument[2];
    register long x3 __asm__("x3") = argument[3];
    register long x4 __asm__("x4") = argument[4];
    register long x5 __asm__("x5") = argument[5];
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

#define GT_ARCH_USER_END (1ull << 48)

enum { GT_ARCH_REG_FP = 29, GT_ARCH_REG_SP = 31, GT_ARCH_REG_RA = 30, GT_ARCH_RA_BELOW = 0 };
/* Not 16 bytes: CFAs that Clang gives relative to x29 are only multiples of eight. */
enum { GT_ARCH_CODE_ALIGN = 2, GT_ARCH_STACK_ALIGN = 3 };

/*
 * Removes the signature that pointer authentication has put into the upper bits of a return
 * address. XPACLRI does nothing on CPUs without pointer authentication, nor to an unsigned address.
 * So no caller needs to know which addresses are signed (DW_CFA_AARCH64_negate_ra_state), nor with
 * which key.
 */
static inline uintptr_t gt_arch_code(uintptr_t address)
{
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint #7" : "+r"(x30));
    return x30;
}

/* The asm takes `frame` as an input: the compiler must not move it before the frame exists. */
static inline uintptr_t gt_arch_within(const void *frame)
{
    uintptr_t pc;
    __asm__ volatile("adr %0, ." : "=r"(pc) : "r"(frame));
    return pc;
}

/*
 * The kernel's signal trampoline has had no call frame information since Linux 5.8, and misleading
 * information before. Unwinders know it by its instructions `mov x8, #__NR_rt_sigreturn; svc #0`.
 * The signal frame is the siginfo_t, then the struct ucontext.
 */
enum { GT_ARCH_SIGNAL_SP = 0, GT_ARCH_SIGNAL_CONTEXT = 128 };

static inline bool gt_arch_is_trampoline(const uint32_t code[2])
{
    return code[0] == 0xd2801168 && code[1] == 0xd4000001;
}

/* The first PLT entry: behind `stp x16, x30, [sp, #-16]!`, up to `br x17` four instructions on. */
enum { GT_ARCH_PLT_BEFORE = 4, GT_ARCH_PLT_AFTER = 3 };

static inline bool gt_arch_plt_pushed(const uint32_t *at)
{
    for (const uint32_t *push = at - 4; push < at; push++) {
        if (push[0] == 0xa9bf7bf0 && push[4] == 0xd61f0220)
            return true;
    }
    return false;
}

/* `bti c`. */
static inline bool gt_arch_is_landing(const uint32_t *at)
{
    return *at == 0xd503245f;
}

enum { GT_ARCH_CONTEXT_SIZE = offsetof(ucontext_t, uc_mcontext.__reserved) };

static inline struct gt_arch_registers gt_arch_interrupted(const void *context)
{
    const mcontext_t *m = &((const ucontext_t *)context)->uc_mcontext;
    return (struct gt_arch_registers){m->pc, m->sp, m->regs[GT_ARCH_REG_FP],
                                      m->regs[GT_ARCH_REG_RA]};
}

#define GT_ARCH_PERF_REGISTERS (1ull << 29 | 1ull << 30 | 1ull << 31 | 1ull << 32)
enum { GT_ARCH_PERF_COUNT = 4 };

static inline struct gt_arch_registers
gt_arch_sampled(const uint64_t x29_x30_sp_pc[GT_ARCH_PERF_COUNT])
{
    return (struct gt_arch_registers){x29_x30_sp_pc[3], x29_x30_sp_pc[2], x29_x30_sp_pc[0],
                                      x29_x30_sp_pc[1]};
}

enum { GT_ARCH_RETURN_MAX = 4 };

/* Not needed: aarch64 code without call frame information mostly keeps a frame pointer. */
static inline bool gt_arch_return(const uint8_t code[GT_ARCH_RETURN_MAX],
                                  struct gt_arch_frame *frame)
{
    (void)code;
    (void)frame;
    return false;
}

#define GT_ARCH_MACHINE EM_AARCH64
#define GT_ARCH_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GT_ARCH_GLOB_DAT R_AARCH64_GLOB_DAT
#define GT_ARCH_ADDRESS R_AARCH64_ABS64

#define GT_ARCH_ENTRY_BYTES 16
#define GT_ARCH_NUMBERED_ENTRIES(table, function, n)                                            \
    __asm__(".pushsection .text\n .balign 16\n .hidden " #table "\n .globl " #table "\n" #table \
            ":\n .cfi_startproc\n .set gt_entry, 0\n .rept " #n                                 \
            "\n .balign 16\n hint #34\n mov w1, #gt_entry\n b " #function "\n"                  \
            " .set gt_entry, gt_entry + 1\n .endr\n .cfi_endproc\n .popsection")

#define GT_ARCH_AUDIT AUDIT_ARCH_AARCH64

#define GT_ARCH_COND_VERSION ""
/* _STAT_VER of headers before glibc 2.33. */
#define GT_ARCH_STAT_VERSION 0
#define GT_ARCH_SPAWN_VERSION ""
#define GT_ARCH_HEAP_HEADERS false /* a header may carry another memory tag than its block */
