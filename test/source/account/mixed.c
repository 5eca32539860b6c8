/*
 * A thread whose calls of read take CPU time, and which sleeps without libc, so that no hook sees
 * it.
 */
#include "../../prog/program.h"
static void *mixed(void *arg)
{
    static char bytes[1 << 20];
    int zero = open("/dev/zero", O_RDONLY);
    pthread_setname_np(pthread_self(), "mixed");
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 5; k++)
            if (read(zero, bytes, sizeof bytes) < 0)
                abort();
        struct timespec time = {0, 10000000};
        long r = SYS_nanosleep;
        __asm__ volatile("syscall" : "+a"(r) : "D"(&time), "S"(0) : "rcx", "r11", "memory");
    }
    return arg;
}
int main(void)
{
    RUN_THREADS(1, mixed, NULL);
    return 0;
}
