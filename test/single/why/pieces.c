/*
 * Two workers take numbers from a queue of one, and compute a microsecond with each: pieces
 * [batch]. batch: they take 500 at a time.
 *
 * Prints the CPU time of the program, in ns.
 */
#include "../../prog/program.h"
enum { ITEMS = 5000, ROOM = 1, BATCH = 500 };
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static long item[ROOM], first, n, each = 1;
static volatile long sum[2];
static __attribute__((noinline)) void put(long x)
{
    pthread_mutex_lock(&queue_lock);
    while (n == ROOM)
        pthread_cond_wait(&emptied, &queue_lock);
    item[(first + n++) % ROOM] = x;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue_lock);
}
static __attribute__((noinline)) long take(void)
{
    pthread_mutex_lock(&queue_lock);
    while (n == 0)
        pthread_cond_wait(&filled, &queue_lock);
    long x = item[first];
    first = (first + 1) % ROOM;
    n--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&queue_lock);
    return x;
}
static __attribute__((noinline)) long hash(long x)
{
    for (int i = 0; i < 500; i++)
        x = (long)((unsigned long)x * 6364136223846793005u + 1442695040888963407u);
    return x;
}
static void *work(void *arg)
{
    for (long x; (x = take()) >= 0;) {
        for (long i = 0; i < each; i++)
            sum[(intptr_t)arg] = sum[(intptr_t)arg] ^ hash(x + i);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t worker[2];
    each = argc > 1 && strcmp(argv[1], "batch") == 0 ? BATCH : 1;
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&worker[i], NULL, work, (void *)i);
    for (long i = 0; i < ITEMS / each; i++)
        put(i);
    for (int i = 0; i < 2; i++)
        put(-1);
    for (int i = 0; i < 2; i++)
        pthread_join(worker[i], NULL);
    printf("%llu\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
