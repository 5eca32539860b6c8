/*
 * A stopped thread's registers: the one place of `gotrace stacks` where architectures differ.
 */
#ifndef GT_REGISTERS_H
#define GT_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum { GT_CALL_NONE = -1, GT_CALL_RUNNING = -2 }; /* the latter: it may be in any or none */

struct gt_call {
    long number; /* less than 0: none */
    uint64_t argument[6];
    uint64_t sp, pc; /* where it was made; only as /proc/PID/syscall tells it */
};

enum { GT_DWARF_REGISTERS = 33, GT_SAVED_REGISTERS = 10 };

uint64_t gt_registers_pc(const struct user_regs_struct *r);
uint64_t gt_registers_sp(const struct user_regs_struct *r);

/* Where libc's own of the thread begins; 0: these registers do not tell. */
uint64_t gt_registers_thread(const struct user_regs_struct *r);

/* Sets that, if these first words of what lies there, at, are those of libc's; false: no such. */
bool gt_registers_set_thread(struct user_regs_struct *r, uint64_t at, const uint64_t words[3]);

/* In DWARF's order; how many. */
unsigned gt_registers_dwarf(const struct user_regs_struct *r, uint64_t out[GT_DWARF_REGISTERS]);

/* Of a thread that can only be asked for its call: what that tells, and 0. */
struct user_regs_struct gt_registers_of_call(const struct gt_call *call);

/* Whether that tells this one, by its place in DWARF's order. */
bool gt_registers_in_call(unsigned dwarf);

/* The frame pointer, when that has been found by other means. */
void gt_registers_set_frame(struct user_regs_struct *r, uint64_t frame);
enum { GT_DWARF_FRAME = 6 }; /* its place in DWARF's order, on x86-64 */

/* Those that a function keeps for its caller; how many. */
unsigned gt_registers_saved(const struct user_regs_struct *r, uint64_t out[GT_SAVED_REGISTERS]);

/*
 * The system call that the thread was in when it was stopped and that is not over. `before`: what
 * it was in a moment earlier; number -1: nothing is known of that. *eintr: the kernel has made it
 * fail with EINTR, since the thread was to stop.
 */
struct gt_call gt_registers_call(const struct user_regs_struct *r, const struct gt_call *before,
                                 bool *eintr);

/* Has such a call made once more, as the kernel does with most others. */
void gt_registers_restart(struct user_regs_struct *r, const struct gt_call *call);

#endif
