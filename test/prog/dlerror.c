/* Whether anybody has left an error of dlsym's behind; then one of its own. */
#include "program.h"

int main(void)
{
    const char *error = dlerror();
    puts(error ? error : "none");
    dlsym(RTLD_DEFAULT, "no such thing");
    error = dlerror();
    puts(error ? "one" : "none");
    return 0;
}
