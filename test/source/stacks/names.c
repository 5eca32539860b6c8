/* Waits, under the name that it is given. */
#include "../../prog/program.h"
int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, argv[argc - 1]);
    puts("ready");
    fflush(stdout);
    return pause();
}
