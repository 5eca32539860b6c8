/*
 * What differs between architectures, in one header each: a port is one more of them. Only
 * preload/gotrace.h, which programs include, says for itself what it needs.
 *
 * Each defines
 *
 * - the clock: gt_arch_counter, gt_arch_counter_usable, GT_ARCH_COUNTER_SHIFT,
 *   GT_ARCH_VDSO_CLOCK_GETTIME (clock.h);
 * - gt_arch_pause, in a loop that spins;
 * - GT_ARCH_USER_END: beyond all addresses of the program's code and data, but for those that it
 *   asks the kernel for by name;
 * - frames: the numbers that DWARF has for registers, GT_ARCH_REG_FP, _SP and _RA;
 *   GT_ARCH_RA_BELOW, where every frame keeps its return address, in bytes below the CFA, 0: call
 *   frame information says where, and calls leave it in a register; gt_arch_code, an address of
 *   code out of that; gt_arch_within, for what takes a frame pointer: an address in the function
 *   that has it; GT_ARCH_CODE_ALIGN and GT_ARCH_STACK_ALIGN, what instructions and frames are
 *   aligned to, as powers of two; gt_arch_return, how code goes on that only gives back its frame
 *   and returns: of GT_ARCH_RETURN_MAX bytes;
 * - calls that ld.so has still to bind, where they leave the return address in a register:
 *   gt_arch_plt_pushed, whether the instruction belongs to the first entry of a procedure linkage
 *   table, which has pushed it as the last of two words: by so many instructions,
 *   GT_ARCH_PLT_BEFORE and _AFTER; gt_arch_is_landing, whether it only marks where jumps may land;
 * - signals: GT_ARCH_SIGNAL_SP, where the frame of one keeps the stack pointer, 0: call frame
 *   information does not say so, and gt_arch_is_trampoline knows the two instructions that a
 *   handler returns to; GT_ARCH_SIGNAL_CONTEXT, where in that frame the ucontext_t is; what the
 *   handler has interrupted: gt_arch_interrupted, and GT_ARCH_CONTEXT_SIZE, how much of a
 *   ucontext_t is read for it;
 * - what perf_event_open(2) samples: GT_ARCH_PERF_REGISTERS (as asked for, a bit each),
 *   GT_ARCH_PERF_COUNT of them, and gt_arch_sampled, as they come;
 * - ELF: GT_ARCH_MACHINE, and the relocations GT_ARCH_JUMP_SLOT, _GLOB_DAT and _ADDRESS;
 * - GT_ARCH_NUMBERED_ENTRIES(table, function, n): n entries of GT_ARCH_ENTRY_BYTES each, which go
 * on in the function, with their number as its second argument;
 * - GT_ARCH_AUDIT, as seccomp filters see it;
 * - glibc: GT_ARCH_COND_VERSION, the version of pthread_cond_t's ABI since 2.3.2, "" where there
 *   was never another one, else GT_ARCH_COND_OLD_VERSION is that; GT_ARCH_HEAP_HEADERS, whether the
 *   word before a block of malloc's says how large that is.
 */
#ifndef GT_ARCH_H
#define GT_ARCH_H

#include <elf.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct gt_arch_registers {
    uintptr_t pc, sp, fp;
    uintptr_t ra; /* 0: calls do not leave it in a register */
};

/* Up to where a return address lies, and where fp is restored from; 0: it is kept. */
struct gt_arch_frame {
    uint32_t size, fp_below; /* from sp on; from the end of that on */
};

#if defined(__x86_64__)
#include "x86_64.h"
#elif defined(__aarch64__)
#include "aarch64.h"
#else
#error "port: a header in encoder/base/arch"
#endif

#endif
