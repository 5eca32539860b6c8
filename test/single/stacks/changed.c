/* Gives its rights away, and waits. */
#include "../../prog/program.h"
int main(void)
{
    int failed = setresuid(65534, 65534, 65534);
    puts("ready");
    fflush(stdout);
    return failed ? 1 : pause();
}
