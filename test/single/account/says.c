/* A log of the program that begins as the log of an account does, and has letters of two bytes. */
#include <unistd.h>

#include "../../../preload/gotrace.h"

int main(void)
{
    gotrace_log(0, "key", "gotrace-account was \303\251t\303\251");
    usleep(20000);
    return 0;
}
