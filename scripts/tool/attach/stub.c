/* See stub.h. */
#include "stub.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>

/* The pages: struct gt_stub_pages, vector registers, a stack for the borrowed thread, the picture.
 */
#define PAGES 0x220000
#define VECTORS 0x8000
#define STACK_TOP 0x20000 /* GT_STUB_PICTURE */
#define CLOCK 0x7000
#define PATIENCE 3 /* GT_STUB_PATIENCE_S */

_Static_assert(GT_STUB_PATIENCE_S == PATIENCE, "");
_Static_assert(GT_STUB_PICTURE == STACK_TOP, "");
_Static_assert(GT_STUB_PICTURE + GT_STUB_PICTURE_BYTES == PAGES, "");
_Static_assert(sizeof(struct gt_stub_pages) < CLOCK, "room for what both threads share");
_Static_assert(offsetof(struct gt_stub_pages, thread) == 0, "");
_Static_assert(offsetof(struct gt_stub_pages, not_made) == 8, "");
_Static_assert(offsetof(struct gt_stub_pages, go) == 12, "");
_Static_assert(offsetof(struct gt_stub_pages, done) == 16, "");
_Static_assert(offsetof(struct gt_stub_pages, result) == 20, "");
_Static_assert(offsetof(struct gt_stub_pages, seen) == 24, "");
_Static_assert(offsetof(struct gt_stub_pages, path) == 28, "");
_Static_assert(offsetof(struct gt_stub_pages, settings) == 28 + 4096, "");
_Static_assert(offsetof(struct gt_stub_pages, text) == 28 + 4096 + 16384, "");
_Static_assert(offsetof(struct gt_stub_constants, mask) == 48, "");
_Static_assert(sizeof(struct gt_stub_constants) == 56 + 27 * 8, "");

#define TEXT_OF(x) #x
#define NUMBER(x) TEXT_OF(x)

/* The constants are the addresses, then the mask, then registers in the kernel's order. */
#define FUNCTION(i) "(8 * " #i ") + gt_stub_constants_(%rip)"
#define REGISTER(i) "(56 + 8 * " #i ") + gt_stub_constants_(%rip)"

/* clang-format off */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        "gt_stub_:\n"
        /* The borrowed thread. All signals are held. */
        "  mov $14, %eax\n" /* rt_sigprocmask */
        "  mov $2, %edi\n"
        "  lea all_(%rip), %rsi\n"
        "  xor %edx, %edx\n"
        "  mov $8, %r10d\n"
        "  syscall\n"
        "  mov $9, %eax\n" /* mmap */
        "  xor %edi, %edi\n"
        "  mov $" NUMBER(PAGES) ", %esi\n"
        "  mov $3, %edx\n"
        "  mov $0x22, %r10d\n"
        "  mov $-1, %r8\n"
        "  xor %r9d, %r9d\n"
        "  syscall\n"
        "  mov %rax, %rbx\n"
        "  lea -256(%rsp), %rsp\n" /* if mmap failed, the flags are pushed below the red zone */
        "  cmp $-4096, %rax\n"
        "  ja back_\n"
        "  lea " NUMBER(STACK_TOP) "(%rbx), %rsp\n"
        "  mov $-1, %eax\n"
        "  mov $-1, %edx\n"
        "  xsave64 " NUMBER(VECTORS) "(%rbx)\n"
        "  cld\n"
        "  call *" FUNCTION(0) "\n"
        "  mov %rax, %r12\n"
        "  mov (%rax), %r13d\n"
        "  mov %rbx, %rdi\n"
        "  xor %esi, %esi\n"
        "  lea loader_(%rip), %rdx\n"
        "  mov %rbx, %rcx\n"
        "  call *" FUNCTION(1) "\n"
        "  mov %eax, 8(%rbx)\n"
        "  mov %r13d, (%r12)\n"
        "  mov $-1, %eax\n"
        "  mov $-1, %edx\n"
        "  xrstor64 " NUMBER(VECTORS) "(%rbx)\n"
        "back_:\n"
        "  mov $14, %eax\n"
        "  mov $2, %edi\n"
        "  lea " FUNCTION(6) ", %rsi\n"
        "  xor %edx, %edx\n"
        "  mov $8, %r10d\n"
        "  syscall\n"
        "last_:\n"
        "  push " REGISTER(18) "\n"
        "  popf\n"
        "  mov " REGISTER(0) ", %r15\n"
        "  mov " REGISTER(1) ", %r14\n"
        "  mov " REGISTER(2) ", %r13\n"
        "  mov " REGISTER(3) ", %r12\n"
        "  mov " REGISTER(4) ", %rbp\n"
        "  mov " REGISTER(5) ", %rbx\n"
        "  mov " REGISTER(6) ", %r11\n"
        "  mov " REGISTER(7) ", %r10\n"
        "  mov " REGISTER(8) ", %r9\n"
        "  mov " REGISTER(9) ", %r8\n"
        "  mov " REGISTER(10) ", %rax\n"
        "  mov " REGISTER(11) ", %rcx\n"
        "  mov " REGISTER(12) ", %rdx\n"
        "  mov " REGISTER(13) ", %rsi\n"
        "  mov " REGISTER(14) ", %rdi\n"
        "  mov " REGISTER(19) ", %rsp\n"
        "  jmp *" REGISTER(16) "\n"

        /* The new thread. */
        "loader_:\n"
        "  push %rbx\n"
        "  push %r12\n"
        "  push %r13\n"
        "  mov %rdi, %rbx\n"
        "  mov $157, %eax\n" /* prctl(PR_SET_NAME) */
        "  mov $15, %edi\n"
        "  lea name_(%rip), %rsi\n"
        "  syscall\n"
        "  mov $436, %eax\n" /* close_range(0, ~0, CLOSE_RANGE_UNSHARE) */
        "  xor %edi, %edi\n"
        "  mov $-1, %esi\n"
        "  mov $2, %edx\n"
        "  syscall\n"
        "  mov %fs:16, %rdi\n" /* pthread_self() */
        "  call *" FUNCTION(2) "\n"
        "  lea 12(%rbx), %r12\n"
        "  call await_\n"
        "  test %eax, %eax\n"
        "  jz leave_\n"
        "  lea 28(%rbx), %rdi\n"
        "  mov $0x1002, %esi\n" /* RTLD_NOW | RTLD_NODELETE */
        "  call *" FUNCTION(3) "\n"
        "  test %rax, %rax\n"
        "  jz failed_\n"
        "  mov %rax, %rdi\n"
        "  lea entry_(%rip), %rsi\n"
        "  call *" FUNCTION(4) "\n"
        "  test %rax, %rax\n"
        "  jz failed_\n"
        "  lea 28 + 4096(%rbx), %rdi\n"
        "  lea " NUMBER(STACK_TOP) "(%rbx), %rsi\n"
        "  call *%rax\n"
        "  mov %eax, 20(%rbx)\n"
        "  movl $1, 16(%rbx)\n"
        "  jmp told_\n"
        "failed_:\n"
        "  call *" FUNCTION(5) "\n"
        "  test %rax, %rax\n"
        "  jz end_of_text_\n"
        "  lea 28 + 4096 + 16384(%rbx), %rdi\n"
        "  mov $" NUMBER(511) ", %ecx\n"
        "next_:\n"
        "  mov (%rax), %dl\n"
        "  mov %dl, (%rdi)\n"
        "  inc %rax\n"
        "  inc %rdi\n"
        "  test %dl, %dl\n"
        "  loopnz next_\n"
        "end_of_text_:\n"
        "  movl $2, 16(%rbx)\n"
        "told_:\n"
        "  lea 24(%rbx), %r12\n"
        "  call await_\n"
        "leave_:\n"
        "  mov $11, %eax\n" /* munmap */
        "  mov %rbx, %rdi\n"
        "  mov $" NUMBER(PAGES) ", %esi\n"
        "  syscall\n"
        "  xor %eax, %eax\n"
        "  pop %r13\n"
        "  pop %r12\n"
        "  pop %rbx\n"
        "  ret\n"

        /* Waits until the word at r12 is not 0; returns it in eax, 0: it stayed 0. */
        "await_:\n"
        "  call clock_\n"
        "  mov %rax, %r13\n"
        "  add $" NUMBER(PATIENCE) ", %r13\n"
        "again_:\n"
        "  mov (%r12), %eax\n"
        "  test %eax, %eax\n"
        "  jnz known_\n"
        "  mov $35, %eax\n" /* nanosleep */
        "  lea tick_(%rip), %rdi\n"
        "  xor %esi, %esi\n"
        "  syscall\n"
        "  call clock_\n"
        "  cmp %r13, %rax\n"
        "  jle again_\n"
        "  xor %eax, %eax\n"
        "known_:\n"
        "  ret\n"

        /* Returns the time in seconds. */
        "clock_:\n"
        "  mov $228, %eax\n" /* clock_gettime(CLOCK_MONOTONIC) */
        "  mov $1, %edi\n"
        "  lea " NUMBER(CLOCK) "(%rbx), %rsi\n"
        "  syscall\n"
        "  mov " NUMBER(CLOCK) "(%rbx), %rax\n"
        "  ret\n"

        ".balign 8\n"
        "all_: .quad -1\n"
        "tick_: .quad 0, 500000\n"
        "name_: .asciz \"gotrace\"\n"
        "entry_: .asciz \"gotrace_attached\"\n"
        ".balign 8\n"
        "gt_stub_constants_: .zero 56 + 27 * 8\n"
        "gt_stub_end_:\n"
        ".globl gt_stub_constants_at, gt_stub_last\n"
        ".hidden gt_stub_constants_at, gt_stub_last\n"
        "gt_stub_constants_at: .quad gt_stub_constants_ - gt_stub_\n"
        "gt_stub_last: .quad last_ - gt_stub_\n"
        "gt_stub_size_: .quad gt_stub_end_ - gt_stub_\n"
        ".popsection\n");
/* clang-format on */

extern const char gt_stub_[];
extern const size_t gt_stub_size_;

/* Whether the kernel has enabled XSAVE, as kernels have for ten years. */
static bool has_xsave(void)
{
    enum { OSXSAVE = 1 << 27 };
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & OSXSAVE);
}

const void *gt_stub_code(size_t *size)
{
    *size = gt_stub_size_;
    return has_xsave() ? gt_stub_ : NULL;
}

uint64_t gt_stub_pages_of(const struct user_regs_struct *r)
{
    return r->rbx < (uint64_t)-4096 ? r->rbx : 0;
}

struct user_regs_struct gt_stub_entry(const struct user_regs_struct *in_call, uint64_t code)
{
    struct user_regs_struct r = *in_call;
    r.rip = code;
    r.orig_rax = (uint64_t)-1; /* no call is to be made again */
    return r;
}

/* The kernel's own result of an interrupted call that goes on where it was, as a sleep does. */
#define ERESTART_RESTARTBLOCK 516

struct user_regs_struct gt_stub_again(const struct user_regs_struct *in_call)
{
    enum { SYSCALL_INSTRUCTION = 2 };
    struct user_regs_struct r = *in_call;
    bool goes_on = (int64_t)in_call->rax == -ERESTART_RESTARTBLOCK;
    r.rax = goes_on ? SYS_restart_syscall : in_call->orig_rax;
    r.rip -= SYSCALL_INSTRUCTION;
    return r;
}

#else

/* port: needs the code above for this architecture */
const size_t gt_stub_constants_at = 0, gt_stub_last = 0;

const void *gt_stub_code(size_t *size)
{
    *size = 0;
    return NULL;
}

uint64_t gt_stub_pages_of(const struct user_regs_struct *r)
{
    (void)r;
    return 0;
}

struct user_regs_struct gt_stub_entry(const struct user_regs_struct *in_call, uint64_t code)
{
    (void)code;
    return *in_call;
}

struct user_regs_struct gt_stub_again(const struct user_regs_struct *in_call)
{
    return *in_call;
}

#endif
