/* See arch.h. */
#pragma once

#include <cpuid.h>

static inline uint64_t gt_arch_counter(void)
{
    return __builtin_ia32_rdtsc();
}

/*
 * CPUID 8000_0007h EDX bit 8, "invariant TSC" (Intel SDM 18.17.1, AMD APM 2.16). Every CPU in
 * 64-bit mode has this leaf: it has the next one, which tells the width of addresses. So the
 * highest leaf is not asked for, as __get_cpuid would do: in a virtual machine each CPUID takes
 * some 10 us.
 */
static inline bool gt_arch_counter_usable(void)
{
    unsigned a, b, c, d;
    __cpuid(0x80000007, a, b, c, d);
    return d & 1u << 8;
}

/* CPUID 8000_0002h to 8000_0004h: the processor brand string. They are below the leaf above. */
static inline void gt_arch_cpu_model(char model[static GT_ARCH_CPU_MODEL])
{
    enum { FIRST = 0x80000002, LEAVES = 3, REGISTERS = 4 };
    uint32_t words[LEAVES][REGISTERS];
    for (uint32_t i = 0; i < LEAVES; i++)
        __cpuid(FIRST + i, words[i][0], words[i][1], words[i][2], words[i][3]);
    __builtin_memcpy(model, words, sizeof words);
    model[sizeof words] = 0;
}

#define GT_ARCH_COUNTER_SHIFT 4
#define GT_ARCH_VDSO_CLOCK_GETTIME "__vdso_clock_gettime"

static inline void gt_arch_pause(void)
{
    __builtin_ia32_pause();
}

static inline long gt_arch_syscall(long number, const long argument[6])
{
    register long r10 __asm__("r10") = argument[3];
    register long r8 __asm__("r8") = argument[4];
    register long r9 __asm__("r9") = argument[5];
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(argument[0]), "S"(argument[1]), "d"(argument[2]), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return number;
}

#define GT_ARCH_USER_END (1ull << 47)

enum { GT_ARCH_REG_FP = 6, GT_ARCH_REG_SP = 7, GT_ARCH_REG_RA = 16, GT_ARCH_RA_BELOW = 8 };
enum { GT_ARCH_CODE_ALIGN = 0, GT_ARCH_STACK_ALIGN = 3 };

static inline uintptr_t gt_arch_code(uintptr_t address)
{
    return address;
}

static inline uintptr_t gt_arch_within(const void *frame)
{
    (void)frame;
    return 0; /* not needed: unwinding by the frame pointer alone works here */
}

/* The frame of rt_sigreturn is the struct ucontext: rsp is at 160 (kernel and libc agree). */
enum { GT_ARCH_SIGNAL_SP = 160, GT_ARCH_SIGNAL_CONTEXT = 0 };

static inline bool gt_arch_is_trampoline(const uint32_t code[2])
{
    (void)code;
    return false;
}

enum { GT_ARCH_PLT_BEFORE = 0, GT_ARCH_PLT_AFTER = 0 };

static inline bool gt_arch_plt_pushed(const uint32_t *at)
{
    (void)at;
    return false;
}

static inline bool gt_arch_is_landing(const uint32_t *at)
{
    (void)at;
    return false;
}

enum { GT_ARCH_CONTEXT_SIZE = offsetof(ucontext_t, uc_mcontext.fpregs) };

static inline struct gt_arch_registers gt_arch_interrupted(const void *context)
{
    const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;
    return (struct gt_arch_registers){(uintptr_t)regs[REG_RIP], (uintptr_t)regs[REG_RSP],
                                      (uintptr_t)regs[REG_RBP], 0};
}

/* Numbers of the kernel's asm/perf_regs.h, which is not there on every system. */
#define GT_ARCH_PERF_REGISTERS (1u << 6 | 1u << 7 | 1u << 8)
enum { GT_ARCH_PERF_COUNT = 3 };

static inline struct gt_arch_registers gt_arch_sampled(const uint64_t bp_sp_ip[GT_ARCH_PERF_COUNT])
{
    return (struct gt_arch_registers){bp_sp_ip[2], bp_sp_ip[1], bp_sp_ip[0], 0};
}

enum { GT_ARCH_RETURN_MAX = 24 };

/* The end of a function: "add $frame, %rsp", pops of registers, "ret". */
static inline bool gt_arch_return(const uint8_t code[GT_ARCH_RETURN_MAX],
                                  struct gt_arch_frame *frame)
{
    enum { POP = 0x58, POP_FP = 0x5d, REX_B = 0x41, RET = 0xc3, WORD = 8 };
    const uint8_t *last = code + GT_ARCH_RETURN_MAX - 1;
    uint32_t size = 0, fp_at = 0;
    bool has_fp = false;
    if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4 && code[3] < 0x80) {
        size = code[3];
        code += 4;
    } else if (code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xc4 && !code[5] && !code[6]) {
        size = code[3] | (uint32_t)code[4] << 8;
        code += 7;
    }
    for (bool rex; code < last; code += 1 + rex, size += WORD) {
        rex = *code == REX_B;
        if ((code[rex] & ~7) != POP)
            break;
        if (code[0] == POP_FP) {
            fp_at = size;
            has_fp = true;
        }
    }
    size += WORD;
    *frame = (struct gt_arch_frame){size, has_fp ? size - fp_at : 0};
    return *code == RET;
}

#define GT_ARCH_MACHINE EM_X86_64
#define GT_ARCH_JUMP_SLOT R_X86_64_JUMP_SLOT
#define GT_ARCH_GLOB_DAT R_X86_64_GLOB_DAT
#define GT_ARCH_ADDRESS R_X86_64_64

#define GT_ARCH_ENTRY_BYTES 16
#define GT_ARCH_NUMBERED_ENTRIES(table, function, n)                                            \
    __asm__(".pushsection .text\n .balign 16\n .hidden " #table "\n .globl " #table "\n" #table \
            ":\n .cfi_startproc\n .set gt_entry, 0\n .rept " #n                                 \
            "\n .balign 16\n endbr64\n movl $gt_entry, %esi\n jmp " #function "\n"              \
            " .set gt_entry, gt_entry + 1\n .endr\n .cfi_endproc\n .popsection")

#define GT_ARCH_AUDIT AUDIT_ARCH_X86_64

#define GT_ARCH_COND_VERSION "GLIBC_2.3.2"
/* _STAT_VER of headers before glibc 2.33. */
#define GT_ARCH_STAT_VERSION 1
#define GT_ARCH_SPAWN_VERSION "GLIBC_2.15"
#define GT_ARCH_COND_OLD_VERSION "GLIBC_2.2.5"
#define GT_ARCH_HEAP_HEADERS true
