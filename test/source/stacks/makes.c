/*
 * Waits in a function that is called by code which was made at run time and has no frame pointer.
 */
#include "../../prog/program.h"
static void waits(void)
{
    pause();
}
int main(void)
{
    static const unsigned char code[] = {
        0x55,                   /* push %rbp */
        0x48, 0x83, 0xec, 0x10, /* sub $16,%rsp */
        0x31, 0xed,             /* xor %ebp,%ebp */
        0xff, 0xd7,             /* call *%rdi */
        0x48, 0x83, 0xc4, 0x10, /* add $16,%rsp */
        0x5d, 0xc3,             /* pop %rbp; ret */
    };
    void *made = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    ((void (*)(void (*)(void)))made)(waits);
    return 0;
}
