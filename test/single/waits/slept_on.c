/*
 * More workers than items, so that the kernel and the library's registry choose different ones:
 * slept_on WAY END. WAY: cond or sem. Then all workers sleep: by the program's count and by the
 * kernel's word. The log "asleep" says so. END: "exit" ends the process so; "snapshot" ends a
 * generation, logs "awake", and ends the workers.
 */
#include "../../../preload/gotrace.h"
#include "../../prog/asleep.h"

enum { WORKERS = 16, ITEMS = 20000, MANY = 12 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static sem_t tokens;
static int items;
static bool stop, by_sem;
static _Atomic int done, tid[WORKERS];

/* false: it is over. */
static bool take(void)
{
    if (by_sem) {
        sem_wait(&tokens);
        return !stop;
    }
    pthread_mutex_lock(&mutex);
    while (!items && !stop)
        pthread_cond_wait(&more, &mutex);
    bool item = !stop;
    items -= item;
    pthread_mutex_unlock(&mutex);
    return item;
}

static void *work(void *arg)
{
    *(_Atomic int *)arg = (int)syscall(SYS_gettid);
    while (take()) {
        compute_ns(3000);
        done++;
    }
    return NULL;
}

static void give(void)
{
    if (by_sem) {
        sem_post(&tokens);
        return;
    }
    pthread_mutex_lock(&mutex);
    items++;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
}

static bool all_sleep(void)
{
    for (int i = 0; i < WORKERS; i++) {
        if (!tid[i] || !is_asleep(tid[i]))
            return false;
    }
    return done == ITEMS;
}

/* Twice: a worker that has just counted its item may still run. */
static void await_sleep(void)
{
    for (int times = 0; times < 2; times = all_sleep() ? times + 1 : 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void finish(pthread_t *threads)
{
    pthread_mutex_lock(&mutex);
    stop = true;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKERS; i++)
        sem_post(&tokens);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS];
    by_sem = argc > 1 && strcmp(argv[1], "sem") == 0;
    sem_init(&tokens, 0, 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, &tid[i]);
    for (int i = 0; i < ITEMS; i++) {
        give();
        if (i % MANY == 0)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    await_sleep();
    gotrace_log(0, "phase", "asleep");
    if (argc > 2 && strcmp(argv[2], "snapshot") == 0) {
        gotrace_snapshot(NULL);
        gotrace_log(0, "phase", "awake");
        finish(threads);
    }
    exit(0);
}
