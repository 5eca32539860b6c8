/*
 * Two workers that nobody signals: each finds its next job only when its timed wait is over. Prints
 * how often they waited, and how many of these waits timed out.
 */
#include "../../prog/program.h"

enum { WORKERS = 2, JOBS = 20, LIMIT_NS = 30000000, WORK_US = 2000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, fewer = PTHREAD_COND_INITIALIZER;
static int jobs, done, waits, timeouts;

static __attribute__((noinline)) void take_job(void)
{
    pthread_mutex_lock(&lock);
    while (!jobs && done < JOBS) {
        struct timespec until = after(CLOCK_REALTIME, LIMIT_NS);
        waits++;
        timeouts += pthread_cond_timedwait(&more, &lock, &until) == ETIMEDOUT;
    }
    jobs -= jobs > 0;
    pthread_mutex_unlock(&lock);
}

static void *work(void *arg)
{
    while (done < JOBS) {
        take_job();
        usleep(WORK_US);
        pthread_mutex_lock(&lock);
        done++;
        pthread_cond_signal(&fewer);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(void)
{
    pthread_t thread[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i < JOBS; i += WORKERS) {
        pthread_mutex_lock(&lock);
        jobs += WORKERS;
        while (done < i + WORKERS)
            pthread_cond_wait(&fewer, &lock);
        pthread_mutex_unlock(&lock);
        usleep(WORK_US);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    printf("%d %d\n", waits, timeouts);
    return 0;
}
