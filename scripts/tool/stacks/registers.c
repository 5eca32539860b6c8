/* See registers.h. */
#include "registers.h"

#include <errno.h>
#include <string.h>

/*
 * Results inside the kernel of calls that are to be repeated if no signal handler runs. Programs
 * never see them, so no header for programs has them.
 */
enum { ERESTARTSYS = 512, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 516 };

#if defined(__x86_64__)

uint64_t gt_registers_pc(const struct user_regs_struct *r)
{
    return r->rip;
}

uint64_t gt_registers_sp(const struct user_regs_struct *r)
{
    return r->rsp;
}

uint64_t gt_registers_thread(const struct user_regs_struct *r)
{
    return r->fs_base;
}

bool gt_registers_set_thread(struct user_regs_struct *r, uint64_t at,
                             const struct gt_tcb_head *head)
{
    bool good = head->tcb == at && head->self == at;
    if (good)
        r->fs_base = at;
    return good;
}

unsigned gt_registers_dwarf(const struct user_regs_struct *r, uint64_t out[GT_DWARF_REGISTERS])
{
    const uint64_t all[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                            r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof *all;
}

void gt_registers_set_frame(struct user_regs_struct *r, uint64_t frame)
{
    r->rbp = frame;
}

unsigned gt_registers_saved(const struct user_regs_struct *r, uint64_t out[GT_SAVED_REGISTERS])
{
    const uint64_t saved[] = {r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15};
    memcpy(out, saved, sizeof saved);
    return sizeof saved / sizeof *saved;
}

struct user_regs_struct gt_registers_of_call(const struct gt_system_call *call)
{
    const uint64_t *argument = call->argument;
    return (struct user_regs_struct){.rip = call->pc,
                                     .rsp = call->sp,
                                     .rdi = argument[0],
                                     .rsi = argument[1],
                                     .rdx = argument[2],
                                     .r10 = argument[3],
                                     .r8 = argument[4],
                                     .r9 = argument[5]};
}

bool gt_registers_in_call(unsigned dwarf)
{
    enum { RDX = 1, RSI = 4, RDI = 5, RSP = 7, R8 = 8, R9 = 9, R10 = 10 };
    return (1u << RDX | 1u << RSI | 1u << RDI | 1u << RSP | 1u << R8 | 1u << R9 | 1u << R10) >>
               dwarf &
           1;
}

static bool is_interrupted(long result)
{
    switch (-result) {
    case EINTR:
    case ERESTARTSYS:
    case ERESTARTNOINTR:
    case ERESTARTNOHAND:
    case ERESTART_RESTARTBLOCK: return true;
    default: return false;
    }
}

struct gt_system_call gt_registers_call(const struct user_regs_struct *r,
                                        const struct gt_system_call *before, bool *eintr)
{
    struct gt_system_call call = {
        (long)r->orig_rax, {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9}, 0, 0};
    (void)before;
    if (call.number < 0 || !is_interrupted((long)r->rax))
        call.number = -1;
    *eintr = call.number >= 0 && (long)r->rax == -EINTR;
    return call;
}

/* The kernel looks at this result once more: if a handler has to run, the call returns EINTR. */
void gt_registers_restart(struct user_regs_struct *r, const struct gt_system_call *call)
{
    (void)call;
    r->rax = (uint64_t)-ERESTARTNOHAND;
}

#elif defined(__aarch64__)

uint64_t gt_registers_pc(const struct user_regs_struct *r)
{
    return r->pc;
}

uint64_t gt_registers_sp(const struct user_regs_struct *r)
{
    return r->sp;
}

uint64_t gt_registers_thread(const struct user_regs_struct *r)
{
    (void)r;
    return 0;
}

bool gt_registers_set_thread(struct user_regs_struct *r, uint64_t at,
                             const struct gt_tcb_head *head)
{
    (void)r;
    (void)at;
    (void)head;
    return false;
}

unsigned gt_registers_dwarf(const struct user_regs_struct *r, uint64_t out[GT_DWARF_REGISTERS])
{
    memcpy(out, r->regs, sizeof r->regs);
    out[31] = r->sp;
    return 32;
}

struct user_regs_struct gt_registers_of_call(const struct gt_system_call *call)
{
    struct user_regs_struct r = {.sp = call->sp, .pc = call->pc};
    memcpy(r.regs, call->argument, sizeof call->argument);
    return r;
}

bool gt_registers_in_call(unsigned dwarf)
{
    enum { X5 = 5, SP = 31 };
    return dwarf <= X5 || dwarf == SP;
}

void gt_registers_set_frame(struct user_regs_struct *r, uint64_t frame)
{
    r->regs[29] = frame;
}

unsigned gt_registers_saved(const struct user_regs_struct *r, uint64_t out[GT_SAVED_REGISTERS])
{
    memcpy(out, r->regs + 19, GT_SAVED_REGISTERS * sizeof *out);
    return GT_SAVED_REGISTERS;
}

/*
 * The result overwrites the first argument. A call that the kernel will repeat is set up before the
 * thread stops: the next instruction is then the call.
 */
struct gt_system_call gt_registers_call(const struct user_regs_struct *r,
                                        const struct gt_system_call *before, bool *eintr)
{
    struct gt_system_call call = *before;
    bool same = call.number >= 0 && r->sp == call.sp;
    *eintr = same && r->pc == call.pc && (long)r->regs[0] == -EINTR;
    if (!same || !(*eintr || r->pc == call.pc - 4))
        call.number = -1;
    return call;
}

void gt_registers_restart(struct user_regs_struct *r, const struct gt_system_call *call)
{
    r->regs[0] = call->argument[0];
    r->pc -= 4;
}

#else
#error "port: gotrace stacks needs to know where a system call's arguments are"
#endif
