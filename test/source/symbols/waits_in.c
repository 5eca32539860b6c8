/* Waits in two functions of a library, one after the other, and for a line after each. */
#include "../../prog/program.h"
int first(void), second(void);
static void *wait_in(void *f)
{
    ((int (*)(void))f)();
    return f;
}
int main(void)
{
    void *functions[] = {first, second};
    for (int i = 0; i < 2; i++) {
        RUN_THREADS(1, wait_in, functions[i]);
        puts("waited");
        fflush(stdout);
        getchar();
    }
    return 0;
}
