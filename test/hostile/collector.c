/*
 * Stops its threads with a signal wherever they are, as the collectors of Boehm and Mono do, and
 * makes calls while they stand still: also in the middle of a hook. Waits in the handler for a
 * second signal. Prints the collections, and how many took as long as the tracer's patience with a
 * lock: what a stopped thread holds must make nobody wait.
 */
#include "../prog/program.h"

enum { MUTATORS = 6, COLLECTIONS = 400, STOP = SIGUSR1, GO_ON = SIGUSR2 };

static pthread_t mutators[MUTATORS];
static sem_t stopped, resumed, begin, marked;
static atomic_int done;
static pthread_mutex_t theirs[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t ours = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;

static void on_go_on(int signal)
{
    (void)signal;
}

static void on_stop(int signal)
{
    sigset_t all_but;
    (void)signal;
    sigfillset(&all_but);
    sigdelset(&all_but, GO_ON);
    sem_post(&stopped);
    sigsuspend(&all_but);
    sem_post(&resumed);
}

static void *immediate(void *arg)
{
    pthread_setname_np(pthread_self(), "immediate");
    return arg;
}

/* All that fills buffers, wakes others, begins and ends threads. */
static void *mutate(void *arg)
{
    pthread_mutex_t *mutex = &theirs[(long)arg % 2];
    for (unsigned i = 0; !done; i++) {
        pthread_t thread;
        pthread_mutex_lock(mutex);
        void *volatile block = malloc(100 + i % 5000);
        sched_yield();
        free(block);
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(mutex);
        if (i % 50 == 0 && pthread_create(&thread, NULL, immediate, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

static void must(int error, const char *what)
{
    if (error) {
        printf("%s: %s\n", what, strerror(error));
        exit(1);
    }
}

/*
 * Marking, with a helper that is not stopped. Nothing here may need what a stopped thread can hold:
 * locks and conditions of its own, no malloc, no pthread_create.
 */
static void mark(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&ours);
        sched_yield();
        pthread_mutex_unlock(&ours);
    }
}

static void *help(void *arg)
{
    while (sem_wait(&begin) == 0 && !done) {
        mark();
        sem_post(&marked);
    }
    return arg;
}

static void with_the_world_stopped(int round)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    sem_post(&begin);
    mark();
    pthread_mutex_lock(&ours);
    pthread_cond_timedwait(&never, &ours, &now);
    pthread_mutex_unlock(&ours);
    sem_wait(&marked);
    if (round % 20 == 0)
        usleep(1000);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void collect(int round)
{
    for (int i = 0; i < MUTATORS; i++)
        must(pthread_kill(mutators[i], STOP), "pthread_kill");
    for (int i = 0; i < MUTATORS; i++)
        while (sem_wait(&stopped) != 0)
            ;
    with_the_world_stopped(round);
    for (int i = 0; i < MUTATORS; i++)
        must(pthread_kill(mutators[i], GO_ON), "pthread_kill");
    for (int i = 0; i < MUTATORS; i++)
        while (sem_wait(&resumed) != 0)
            ;
}

static void handle(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask); /* GO_ON comes when it is waited for */
    sigaction(signal, &action, NULL);
}

int main(void)
{
    pthread_t helper;
    int slow = 0;
    sem_t *const sems[] = {&stopped, &resumed, &begin, &marked};
    for (int i = 0; i < 4; i++)
        sem_init(sems[i], 0, 0);
    handle(STOP, on_stop);
    handle(GO_ON, on_go_on);
    for (long i = 0; i < MUTATORS; i++)
        must(pthread_create(&mutators[i], NULL, mutate, (void *)i), "pthread_create");
    must(pthread_create(&helper, NULL, help, NULL), "pthread_create");
    for (int round = 0; round < COLLECTIONS; round++) {
        double begin_s = seconds();
        collect(round);
        slow += seconds() - begin_s > 0.9;
        usleep(1000); /* the world runs */
    }
    done = 1;
    sem_post(&begin);
    pthread_join(helper, NULL);
    for (int i = 0; i < MUTATORS; i++)
        pthread_join(mutators[i], NULL);
    printf("%d collections, %d slow\n", COLLECTIONS, slow);
    return 0;
}
