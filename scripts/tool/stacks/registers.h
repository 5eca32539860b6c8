/*
 * A stopped thread's registers: the one place of `gotrace stacks` that depends on the architecture.
 */
#pragma once

#include "encoder/base/glibc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum { GT_CALL_NONE = -1, GT_CALL_RUNNING = -2 }; /* RUNNING: it may be in any call or none */

struct gt_system_call {
    long number; /* less than 0: none */
    uint64_t argument[6];
    uint64_t sp, pc; /* where the call was made; only from /proc/PID/syscall */
};

enum { GT_DWARF_REGISTERS = 33, GT_SAVED_REGISTERS = 10 };

uint64_t gt_registers_pc(const struct user_regs_struct *r);
uint64_t gt_registers_sp(const struct user_regs_struct *r);

/* The address of libc's own data of the thread (struct pthread); 0: these registers do not tell. */
uint64_t gt_registers_thread(const struct user_regs_struct *r);

/*
 * Sets that address to `at` if `head`, read from there, looks like libc's data; else returns false.
 */
bool gt_registers_set_thread(struct user_regs_struct *r, uint64_t at,
                             const struct gt_tcb_head *head);

/* Stores the registers in DWARF's order. Returns their number. */
unsigned gt_registers_dwarf(const struct user_regs_struct *r, uint64_t out[GT_DWARF_REGISTERS]);

/* The registers that a call tells, for a thread that was not stopped. The others are 0. */
struct user_regs_struct gt_registers_of_call(const struct gt_system_call *call);

/* Whether gt_registers_of_call knows the register with that number in DWARF's order. */
bool gt_registers_in_call(unsigned dwarf);

/* Sets the frame pointer, once frame.c has found it. */
void gt_registers_set_frame(struct user_regs_struct *r, uint64_t frame);
enum { GT_DWARF_FRAME = 6 }; /* its number in DWARF's order, on x86-64 */
#if defined(__aarch64__)
enum { GT_DWARF_STACK = 31 };
#else
enum { GT_DWARF_STACK = 7 };
#endif

/* Stores the registers that a function preserves for its caller. Returns their number. */
unsigned gt_registers_saved(const struct user_regs_struct *r, uint64_t out[GT_SAVED_REGISTERS]);

/*
 * The system call that the thread was in when it was stopped, if that call is not over. before: the
 * call that the thread was in a moment earlier; number -1: not known. *eintr: the kernel made the
 * call fail with EINTR because the thread had to stop.
 */
struct gt_system_call gt_registers_call(const struct user_regs_struct *r,
                                        const struct gt_system_call *before, bool *eintr);

/* Makes the kernel repeat a call that failed with EINTR, as it repeats most other calls. */
void gt_registers_restart(struct user_regs_struct *r, const struct gt_system_call *call);
