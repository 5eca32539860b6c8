/* A log, by the header as INSTALLED or of this tree. Prints what gotrace_start returns. */
#ifdef INSTALLED
#include <gotrace.h>
#else
#include "../../../preload/gotrace.h"
#endif
#include <stdio.h>
int main(void)
{
    gotrace_log(0, "category", "message");
    printf("%d\n", gotrace_start());
    return 0;
}
