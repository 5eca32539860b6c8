/* Loads the library that it is given. */
#include "../../prog/program.h"
int main(int argc, char **argv)
{
    if (argc < 2 || !dlopen(argv[1], RTLD_NOW))
        fprintf(stderr, "%s\n", dlerror());
    return 3;
}
