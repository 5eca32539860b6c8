/*
 * Timeouts by the clock of CPU time, in memory that is unmapped meanwhile, at bad addresses. Prints
 * how long the first thread could run and had no CPU, in ns, as the kernel counts it.
 */
#include "../../prog/program.h"
#include "queued.h"

#include <linux/futex.h>
static struct timespec *gone;
static volatile int over;
static void *unmap(void *arg)
{
    usleep(30000);
    munmap(gone, 4096);
    return arg;
}
static void *spin(void *arg)
{
    while (!over)
        ;
    return arg;
} // the clock that is slept by goes on while somebody runs
static struct timespec *page(void)
{
    pthread_t t;
    gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *gone = (struct timespec){0, 60000000};
    pthread_create(&t, NULL, unmap, NULL);
    pthread_detach(t);
    return gone;
}
int main(void)
{
    static int word;
    pthread_t t;
    if (nanosleep(page(), NULL) || ppoll(NULL, 0, page(), NULL))
        return 1;
    if (syscall(SYS_futex, &word, FUTEX_WAIT, 0, page(), NULL, 0) != -1 || errno != ETIMEDOUT)
        return 2;
    if (nanosleep((void *)8, NULL) != -1 || errno != EFAULT || nanosleep(NULL, NULL) != -1 ||
        errno != EFAULT)
        return 3;
    pthread_create(&t, NULL, spin, NULL);
    for (int i = 0; i < 5; i++)
        clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &(struct timespec){0, 300000}, NULL);
    over = 1;
    pthread_join(t, NULL);
    printf("%ld\n", queued());
    return 0;
}
