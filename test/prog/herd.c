/*
 * herd HOW THREADS ROUNDS: in each round all threads wait, and one call or loop of the main thread
 * wakes them all: at a barrier, by a broadcast, by a post for each, by one FUTEX_WAKE. Prints the
 * seconds of CPU that the process has used, and how often its threads have slept.
 */
#include "program.h"
#include <linux/futex.h>

static unsigned threads;
static int rounds;

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER, all_wait = PTHREAD_COND_INITIALIZER;
static unsigned waiting;
static int current; /* round; under mutex */
static sem_t go[2], come;
static _Atomic int word;

static void wait_at_barrier(int round)
{
    (void)round;
    pthread_barrier_wait(&barrier);
}

static void wait_for_turn(int round)
{
    pthread_mutex_lock(&mutex);
    if (++waiting == threads)
        pthread_cond_signal(&all_wait);
    while (current == round)
        pthread_cond_wait(&turn, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void broadcast(int round)
{
    pthread_mutex_lock(&mutex);
    while (waiting < threads)
        pthread_cond_wait(&all_wait, &mutex);
    waiting = 0;
    current = round + 1;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&mutex);
}

/* A semaphore for odd rounds and one for even ones: no thread takes another one's post. */
static void wait_for_post(int round)
{
    sem_post(&come);
    sem_wait(&go[round % 2]);
}

static void await_all(void)
{
    for (unsigned i = 0; i < threads; i++)
        sem_wait(&come);
}

static void post(int round)
{
    await_all();
    for (unsigned i = 0; i < threads; i++)
        sem_post(&go[round % 2]);
}

static void wait_for_word(int round)
{
    sem_post(&come);
    while (word == round)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
}

static void wake_word(int round)
{
    await_all();
    word = round + 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static const struct way {
    const char *name;
    void (*wait)(int round), (*wake)(int round);
} ways[] = {{"barrier", wait_at_barrier, wait_at_barrier},
            {"broadcast", wait_for_turn, broadcast},
            {"posts", wait_for_post, post},
            {"futex", wait_for_word, wake_word}},
  *way;

static void *work(void *arg)
{
    for (int i = 0; i < rounds; i++)
        way->wait(i);
    return arg;
}

static void start(pthread_t *thread)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    if (pthread_create(thread, &attr, work, NULL) != 0)
        exit(77); /* the system has no room for so many */
}

static double cpu_seconds(const struct rusage *used)
{
    return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
           (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    for (way = ways; argc == 4 && strcmp(way->name, argv[1]) != 0;)
        way++;
    threads = (unsigned)atoi(argv[2]);
    rounds = atoi(argv[3]);
    pthread_barrier_init(&barrier, NULL, threads + 1);
    sem_init(&go[0], 0, 0);
    sem_init(&go[1], 0, 0);
    sem_init(&come, 0, 0);
    pthread_t *thread = calloc(threads, sizeof *thread);
    for (unsigned i = 0; i < threads; i++)
        start(&thread[i]);
    for (int i = 0; i < rounds; i++)
        way->wake(i);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%.3f %ld\n", cpu_seconds(&used), used.ru_nvcsw);
}
