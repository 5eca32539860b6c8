/* A library whose constructor is a whole program with threads, which ends as HOW says. */
#include "../../prog/program.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int in_constructor[2];
static void *work(void *unused)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&m);
        usleep(50);
        pthread_mutex_unlock(&m);
    }
    return unused;
}
static void work_twice(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
static void *end_beside(void *unused)
{
    char c;
    if (read(in_constructor[0], &c, 1) == 1)
        _exit(3);
    return unused;
}
__attribute__((constructor)) static void application(void)
{
    const char *how = getenv("HOW");
    work_twice();
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(3);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exec") == 0)
        execlp("sh", "sh", "-c", "exit 3", (char *)NULL);
    if (strcmp(how, "fork") == 0 && fork() == 0) {
        work_twice();
        exit(3);
    }
    if (strcmp(how, "fork") == 0) {
        int status;
        wait(&status);
        exit(WEXITSTATUS(status));
    }
    if (strcmp(how, "beside") == 0) {
        pthread_t t;
        if (pipe(in_constructor) != 0)
            exit(1);
        pthread_create(&t, NULL, end_beside, NULL);
        if (write(in_constructor[1], "", 1) != 1)
            exit(1);
        pause();
    }
}
