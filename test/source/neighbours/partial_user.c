/*
 * Frees what malloc made, also within libc, in a program whose malloc and free alone are replaced.
 */
#include "../../prog/program.h"

static void *run(void *arg)
{
    for (int i = 0; i < 200; i++) {
        char *p = malloc(100);
        strcpy(p, "x");
        free(p);
    }
    return arg ? arg : strdup("hello");
}

int main(void)
{
    pthread_t thread;
    void *result, *blocks = realloc(calloc(10, 100), 5000); /* libc's: not to be freed */
    char *line = NULL;
    size_t room = 0;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, &result);
    printf("%s %d\n", (char *)result, blocks != NULL);
    free(result);
    FILE *file = fopen("/proc/sys/kernel/ostype", "r");
    printf("%d\n", getline(&line, &room, file) > 3);
    free(line);
    fclose(file);
    return 4;
}
