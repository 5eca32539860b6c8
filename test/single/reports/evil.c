/* Threads whose names would turn the text of a terminal around, colour it, and end lines. */
#include "../../prog/program.h"
static void *sleeper(void *name)
{
    prctl(PR_SET_NAME, name);
    usleep(20000);
    return NULL;
}
int main(void)
{
    char *names[] = {"a\u202eb\u2066c\x1b[1m\n", "\u200fd\u2028e\u061cf", "x\x7f\xc2\x9by\xffz-é"};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, sleeper, names[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}
