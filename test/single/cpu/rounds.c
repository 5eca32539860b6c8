/* Threads compute in three recordings, and in a child. */
#include "burners.h"
static void *both(void *seconds)
{
    burn(seconds);
    raise(SIGUSR2);
    return burn(seconds);
}
int main(void)
{
    for (int i = 0; i < 3; i++) {
        double seconds = 0.2;
        pthread_t other;
        pthread_create(&other, NULL, burn, &seconds);
        both(&seconds);
        pthread_join(other, NULL);
    }
    if (fork() == 0) {
        threads(2, burn, 0.2);
        exit(0);
    }
    wait(NULL);
    return 0;
}
