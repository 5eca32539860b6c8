/*
 * Threads that run on when the program's destructors have freed what they use. Each says its name
 * if it gets there. Bare none does: the process is gone long before.
 */
#include "../../prog/program.h"

#define AFTERWARDS_NS 1000000000u /* the process gets to its destructors within this time */
#define SOON_NS 200000000u

static atomic_bool freed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, begun;

static void in_cond(void)
{
    struct timespec until = after(CLOCK_REALTIME, AFTERWARDS_NS);
    pthread_mutex_lock(&mutex);
    sem_post(&begun);
    pthread_cond_timedwait(&cond, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void in_sem(void)
{
    struct timespec until = after(CLOCK_REALTIME, AFTERWARDS_NS);
    sem_post(&begun);
    sem_timedwait(&sem, &until);
}

static void in_sleep(void)
{
    sem_post(&begun);
    nanosleep(&(struct timespec){.tv_sec = AFTERWARDS_NS / 1000000000}, NULL);
}

static void in_poll(void)
{
    sem_post(&begun);
    poll(NULL, 0, AFTERWARDS_NS / 1000000);
}

static void before_call(void)
{
    sem_post(&begun);
    while (!freed)
        ;
    for (uint64_t end = now_ns() + SOON_NS; now_ns() < end;)
        ;
    close(-1);
}

static const struct way {
    const char *name;
    void (*wait)(void);
} ways[] = {{"cond\n", in_cond},
            {"sem\n", in_sem},
            {"sleep\n", in_sleep},
            {"poll\n", in_poll},
            {"call\n", before_call}};

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void *remain(void *arg)
{
    const struct way *way = arg;
    way->wait();
    if (freed)
        say(way->name);
    return NULL;
}

__attribute__((destructor)) static void end(void)
{
    say("freed\n");
    freed = true;
}

int main(void)
{
    pthread_t thread;
    if (sem_init(&sem, 0, 0) || sem_init(&begun, 0, 0))
        return 1;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        pthread_create(&thread, NULL, remain, (void *)&ways[i]);
        pthread_detach(thread);
        sem_wait(&begun);
    }
    say("begun\n");
    return read(STDIN_FILENO, &(char){0}, 1) != 1;
}
