/* Its first thread has ended, the second one reads. */
#include "../../prog/program.h"
static void *reads(void *arg)
{
    char c;
    return read(0, &c, 1) < 0 ? arg : NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, reads, NULL);
    pthread_exit(NULL);
}
