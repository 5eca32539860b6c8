/* Becomes itself as often as its argument says. With a second argument it forks before that. */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"

static void *tell(void *text)
{
    gotrace_log(0, "image", text);
    return NULL;
}

/* Becomes itself so often; forks before that on request. */
int main(int argc, char **argv)
{
    int status, left = atoi(argv[1]);
    char text[16];
    if (argc > 2 && fork())
        return wait(&status) < 0 || status;
    RUN_THREADS(1, tell, argv[1]);
    snprintf(text, sizeof text, "%d", left - 1);
    return left ? execl("/proc/self/exe", argv[0], text, NULL) : 0;
}
