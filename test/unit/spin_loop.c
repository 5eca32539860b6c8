/* Loops that can only wait, and loops that look alike, as a compiler makes them. */
#include "check.h"

#include "scripts/tool/why/spin_loop.h"

#ifdef __x86_64__

#define LOOP(name, code)                                                                    \
    extern const uint8_t name[], name##_at[], name##_end[];                                 \
    __asm__(".pushsection .text\n" #name ":\n" code "\n" #name "_end:\n.fill 80, 1, 0xcc\n" \
            ".popsection")

/* The label NAME_at is where a thread may be interrupted. */
LOOP(flag, "flag_at: mov 0x1000(%rip), %eax\n test %eax, %eax\n je flag_at\n ret");
LOOP(compared, "1: cmp %esi, (%rdi)\n compared_at: jl 1b\n ret");
LOOP(exchange, "mov $1, %edx\n 1: mov %edx, %eax\n exchange_at: xchg %eax, (%rdi)\n"
               "test %eax, %eax\n jne 1b\n ret");
LOOP(compare_exchange, "1: xor %eax, %eax\n lock cmpxchg %edx, 8(%rbx)\n"
                       "compare_exchange_at: jne 1b\n ret");
LOOP(tested_first, "1: mov (%rdi), %eax\n test %eax, %eax\n jne 1b\n mov $1, %eax\n"
                   "tested_first_at: xchg %eax, (%rdi)\n test %eax, %eax\n jne 1b\n ret");
LOOP(unoptimised, "1: nop\n mov -0x18(%rbp), %rax\n unoptimised_at: mov (%rax), %eax\n"
                  "mov %eax, -4(%rbp)\n cmpl $0, -4(%rbp)\n je 1b\n ret");
LOOP(backs_off, "mov $64, %ecx\n 1: mov (%rdi), %eax\n test %eax, %eax\n jne 2f\n pause\n"
                "backs_off_at: dec %ecx\n jne 1b\n 2: ret");

LOOP(list, "1: mov (%rax), %rax\n list_at: test %rax, %rax\n jne 1b\n ret");
LOOP(list_in_frame, "1: mov -8(%rbp), %rax\n mov (%rax), %rax\n list_in_frame_at: mov %rax, "
                    "-8(%rbp)\n cmpq $0, -8(%rbp)\n jne 1b\n ret");
LOOP(length, "length_at: inc %rax\n cmpb $0, (%rdi,%rax)\n jne length_at\n ret");
LOOP(sum, "1: add (%rdi), %eax\n add $4, %rdi\n sum_at: cmp %rsi, %rdi\n jne 1b\n ret");
LOOP(atomic_or, "mov (%rdi), %eax\n 1: mov %eax, %edx\n or $4, %edx\n atomic_or_at: lock cmpxchg "
                "%edx, (%rdi)\n jne 1b\n ret");
LOOP(fill, "1: mov %eax, (%rdi)\n fill_at: cmp %eax, (%rsi)\n jne 1b\n ret");
LOOP(calls, "1: call 1b\n calls_at: mov (%rdi), %eax\n test %eax, %eax\n je 1b\n ret");
LOOP(straight, "straight_at: mov (%rdi), %eax\n test %eax, %eax\n je 1f\n 1: ret");
LOOP(computes, "1: imul $0x19660d, %eax, %eax\n add $1, %ecx\n computes_at: cmp %esi, %ecx\n"
               "jne 1b\n ret");

int main(void)
{
    const struct {
        const char *name;
        const uint8_t *from, *at, *end;
        bool waits;
    } loops[] = {
#define ROW(name, waits) {#name, name, name##_at, name##_end, waits}
        ROW(flag, true),        ROW(compared, true),     ROW(exchange, true),
        ROW(unoptimised, true), ROW(tested_first, true), ROW(compare_exchange, true),
        ROW(backs_off, true),   ROW(list, false),        ROW(list_in_frame, false),
        ROW(length, false),     ROW(sum, false),         ROW(atomic_or, false),
        ROW(fill, false),       ROW(calls, false),       ROW(straight, false),
        ROW(computes, false),
    };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        size_t size = (size_t)(loops[i].end - loops[i].from),
               pc = (size_t)(loops[i].at - loops[i].from);
        CHECK(gt_spin_loop_at(loops[i].from, size, pc) == loops[i].waits, "%s", loops[i].name);
        CHECK(!gt_spin_loop_at(loops[i].from, pc, pc), "%s, cut", loops[i].name);
    }
    return 0;
}

#else

int main(void)
{
    return 77;
}

#endif
