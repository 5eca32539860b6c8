/* A committer holds journal_lock during a slow read, while three clients wait for the lock. */
#include "../../prog/program.h"
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];
/* A slow disk: it answers after 5 ms. */
static void *disk(void *arg)
{
    for (int i = 0; i < 40; i++) {
        usleep(5000);
        if (write(pipes[1], "", 1) != 1)
            abort();
    }
    return arg;
}
__attribute__((noinline)) static void commit(void)
{
    char c;
    pthread_mutex_lock(&journal_lock);
    if (read(pipes[0], &c, 1) != 1)
        abort();
    pthread_mutex_unlock(&journal_lock);
    usleep(200);
}
__attribute__((noinline)) static void append(void)
{
    pthread_mutex_lock(&journal_lock);
    pthread_mutex_unlock(&journal_lock);
    usleep(200);
}
static void *committer(void *arg)
{
    pthread_setname_np(pthread_self(), "committer");
    for (int i = 0; i < 40; i++)
        commit();
    return arg;
}
static void *client(void *arg)
{
    for (int i = 0; i < 300; i++)
        append();
    return arg;
}
int main(void)
{
    pthread_t t[5];
    if (pipe(pipes) != 0)
        abort();
    pthread_create(&t[0], NULL, disk, NULL);
    pthread_create(&t[1], NULL, committer, NULL);
    for (int i = 2; i < 5; i++)
        pthread_create(&t[i], NULL, client, NULL);
    for (int i = 0; i < 5; i++)
        pthread_join(t[i], NULL);
    return 0;
}
