/* Two thousand threads that sleep for 2 s. */
#include "../../prog/program.h"
static void *nap(void *arg)
{
    for (int i = 0; i < 20; i++)
        usleep(100000);
    return arg;
}
int main(void)
{
    static pthread_t t[2000];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (int i = 0; i < 2000; i++)
        if (pthread_create(&t[i], &attr, nap, NULL))
            abort();
    for (int i = 0; i < 2000; i++)
        pthread_join(t[i], NULL);
    return 0;
}
