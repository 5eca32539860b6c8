/*
 * Events of argv[1] ms whose truth the program knows: threads write numbered logs
 * ("n" of each: "logs THREAD N"), two play ball with a condition variable ("signals N", from the
 * first wait on), one waits for all of that time ("waited NS"), and one is in a call for it. With
 * "fork" as argv[2] a child does the same at the same time, and says "child PID" first. Another
 * argv[2] is the path of a file: it goes on until that is there.
 */
#include "../../preload/gotrace.h"

#include "program.h"

enum { THREADS = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ball = PTHREAD_COND_INITIALIZER, end_of_all = PTHREAD_COND_INITIALIZER;
static int has_ball;
static bool over, was_waited_for;
static _Atomic bool ends;
static uint64_t logs[THREADS], signals, waited_ns;
static int call[2];

static void *write_logs(void *arg)
{
    uintptr_t number = (uintptr_t)arg;
    char text[64];
    while (!ends) {
        snprintf(text, sizeof text, "%u:%llu", (unsigned)number,
                 (unsigned long long)++logs[number]);
        gotrace_log(0, "seam", text);
        if (logs[number] % 8 == 0)
            usleep(100);
    }
    return NULL;
}

static void *play(void *arg)
{
    int me = (int)(uintptr_t)arg;
    pthread_mutex_lock(&mutex);
    while (!ends) {
        while (has_ball != me && !ends) {
            was_waited_for = true;
            pthread_cond_wait(&ball, &mutex);
        }
        has_ball = !me;
        signals += was_waited_for;
        pthread_cond_signal(&ball);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *wait_all_the_time(void *unused)
{
    pthread_mutex_lock(&mutex);
    uint64_t begin = now_ns();
    while (!over)
        pthread_cond_wait(&end_of_all, &mutex);
    waited_ns = now_ns() - begin;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *call_all_the_time(void *unused)
{
    char c;
    return read(call[0], &c, 1) == 1 ? unused : NULL;
}

static void run(unsigned ms, const char *until)
{
    pthread_t threads[THREADS + 4];
    int n = 0;
    if (pipe(call) != 0)
        exit(2);
    pthread_create(&threads[n++], NULL, wait_all_the_time, NULL);
    pthread_create(&threads[n++], NULL, call_all_the_time, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[n++], NULL, write_logs, (void *)i);
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[n++], NULL, play, (void *)i);
    usleep(ms * 1000);
    while (until && access(until, F_OK) != 0)
        usleep(1000);
    ends = true;
    pthread_mutex_lock(&mutex);
    over = true;
    pthread_cond_signal(&end_of_all);
    pthread_cond_broadcast(&ball);
    pthread_mutex_unlock(&mutex);
    if (write(call[1], "", 1) != 1)
        exit(2);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        printf("%d logs %d %llu\n", (int)getpid(), i, (unsigned long long)logs[i]);
    printf("%d signals %llu\n", (int)getpid(), (unsigned long long)signals);
    printf("%d waited %llu\n", (int)getpid(), (unsigned long long)waited_ns);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool forks = argc > 2 && strcmp(argv[2], "fork") == 0;
    pid_t child = forks ? fork() : 0;
    run((unsigned)atoi(argv[1]), argc > 2 && !forks ? argv[2] : NULL);
    if (child)
        waitpid(child, NULL, 0);
}
