/* A hundred forks in close succession. */
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    for (int i = 0; i < 100; i++) {
        if (!fork())
            return 0;
    }
    while (wait(NULL) > 0)
        ;
}
