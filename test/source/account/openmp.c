/* OpenMP threads with nothing to do, between whose turns the first thread sleeps 100 ms. */
#include <omp.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 5; i++) {
#pragma omp parallel num_threads(4)
        __asm__ volatile("" ::: "memory");
        usleep(100000);
    }
    return 0;
}
