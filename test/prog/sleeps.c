/* One thread, argv[1] sleeps of no length: events without a second thread to write them. */
#include "program.h"

int main(int argc, char **argv)
{
    struct timespec none = {0, 0};
    for (long n = argc > 1 ? atol(argv[1]) : 10; n > 0; n--)
        nanosleep(&none, NULL);
    return 0;
}
