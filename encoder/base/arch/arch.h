/*
 * What differs between architectures, in one header each. A port adds one header. Only
 * preload/gotrace.h, which programs include, has architecture code of its own.
 *
 * Each header defines
 *
 * - the clock: gt_arch_counter, gt_arch_counter_usable, GT_ARCH_COUNTER_SHIFT (clock.h), and
 *   GT_ARCH_VDSO_CLOCK_GETTIME, the name of the vDSO's function.
 * - gt_arch_cpu_model: the name that the CPU has for itself; "": none.
 * - gt_arch_pause, for loops that spin.
 * - gt_arch_syscall: a system call with six arguments. Returns what the kernel returns: an error is
 *   a negative errno.
 * - GT_ARCH_USER_END, above all addresses of the program's code and data, except those that it asks
 *   the kernel for by name.
 * - DWARF numbers of registers: GT_ARCH_REG_FP, _SP and _RA.
 * - GT_ARCH_RA_BELOW: how many bytes below the CFA every frame keeps its return address. 0: calls
 *   leave the return address in a register, and call frame information says where it is later.
 * - gt_arch_code: the address of code in a return address.
 * - gt_arch_within: an address in the calling function, for unwinding that starts at its frame
 *   pointer.
 * - GT_ARCH_CODE_ALIGN and GT_ARCH_STACK_ALIGN: the alignment of instructions and of frames, as
 *   powers of two.
 * - gt_arch_return: how code continues that only frees its frame and returns, read from
 *   GT_ARCH_RETURN_MAX bytes of it.
 * - gt_arch_plt_pushed, where calls leave the return address in a register: whether an instruction
 *   is in the first entry of a procedure linkage table, which calls that ld.so has still to bind go
 *   through. Behind the start of that entry the return address is on the stack, the last of two
 *   words. The check reads GT_ARCH_PLT_BEFORE instructions before `at` and GT_ARCH_PLT_AFTER
 *   behind.
 * - gt_arch_is_landing: whether an instruction only marks where jumps may land.
 * - GT_ARCH_SIGNAL_SP: where a signal frame keeps the stack pointer. 0: call frame information does
 *   not tell, and gt_arch_is_trampoline recognises the two instructions that a handler returns to.
 * - GT_ARCH_SIGNAL_CONTEXT: where the ucontext_t is in a signal frame.
 * - gt_arch_interrupted: the registers that a signal handler has interrupted. It reads
 *   GT_ARCH_CONTEXT_SIZE bytes of a ucontext_t.
 * - samples of perf_event_open(2): GT_ARCH_PERF_REGISTERS, the registers to ask for (a bit each),
 *   GT_ARCH_PERF_COUNT, their number, and gt_arch_sampled, which reads them in their order.
 * - ELF: GT_ARCH_MACHINE, and the relocations GT_ARCH_JUMP_SLOT, _GLOB_DAT and _ADDRESS.
 * - GT_ARCH_NUMBERED_ENTRIES(table, function, n): n entries of GT_ARCH_ENTRY_BYTES each, which jump
 *   to the function with their number as its second argument.
 * - GT_ARCH_AUDIT, the architecture as seccomp filters see it.
 * - glibc: GT_ARCH_COND_VERSION, the version of pthread_cond_t's ABI since 2.3.2, or "" if there
 *   was never another one. Otherwise GT_ARCH_COND_OLD_VERSION is the version before.
 *   GT_ARCH_HEAP_HEADERS: whether the word before a block of malloc's holds the block's size.
 */
#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum { GT_ARCH_CPU_MODEL = 49 }; /* bytes of a CPU's name, with its zero */

struct gt_arch_registers {
    uintptr_t pc, sp, fp;
    uintptr_t ra; /* 0: calls do not leave it in a register */
};

/* The frame of code that is about to free it and return. */
struct gt_arch_frame {
    uint32_t size, fp_below; /* size: bytes from sp to the CFA; fp_below: the saved fp's distance
                                below the CFA, 0: fp is kept */
};

#if defined(__x86_64__)
#include "x86_64.h"
#elif defined(__aarch64__)
#include "aarch64.h"
#else
#error "port: a header in encoder/base/arch"
#endif
