/* Makes a thread when a byte comes. */
#include "naps.h"
int main(void)
{
    pthread_t t;
    read(0, &c, 1);
    pthread_create(&t, NULL, nap, NULL);
    pthread_join(t, NULL);
    naps();
}
