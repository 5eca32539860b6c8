/*
 * Does as its argument says for a second, and is ended by a signal meanwhile: only "condition",
 * "joined" and "answer" stand still. The others rest, work, or wait for a process. "deadlock" has
 * another name.
 */
#include "../../prog/program.h"
#include <sys/un.h>
enum { JOBS = 20, JOB_US = 1000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopped = PTHREAD_COND_INITIALIZER;
static int pipe_ends[2], pair[2];
static void read_byte(int from)
{
    char c;
    if (read(from, &c, 1) != 1)
        _exit(1);
}
static void write_byte(int to)
{
    if (write(to, "x", 1) != 1)
        _exit(1);
}
static void *start(void *(*routine)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, routine, NULL);
    return (void *)thread;
}
static void *work_for_others(void *arg)
{
    for (;;) {
        read_byte(pipe_ends[0]);
        usleep(JOB_US);
    }
    return arg;
}
static void *work(void *arg)
{
    for (;;)
        usleep(JOB_US);
    return arg;
}
static void *serve_client(void *arg)
{
    read_byte(pair[0]);
    usleep(JOB_US);
    write_byte(pair[0]);
    read_byte(pair[0]);
    return arg;
}
static void *take_other_first(void *arg)
{
    pthread_mutex_lock(&other);
    write_byte(pipe_ends[1]);
    read_byte(pair[0]);
    pthread_mutex_lock(&mutex);
    return arg;
}
static void wait_to_be_stopped(void)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&stopped, &mutex);
}
static void *work_and_wait(void *arg)
{
    for (int i = 0; i < 3; i++)
        usleep(JOB_US);
    wait_to_be_stopped();
    return arg;
}
static void accept_client(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX}; /* the kernel chooses a name */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (void *)&at, sizeof at.sun_family) || listen(fd, 1))
        _exit(1);
    accept(fd, NULL, NULL);
}
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    for (int i = 0; i < JOBS; i++)
        usleep(JOB_US);
    alarm(1);
    if (strcmp(what, "condition") == 0) {
        wait_to_be_stopped();
    } else if (strcmp(what, "joined") == 0) {
        pthread_join((pthread_t)start(work_and_wait), NULL);
    } else if (strcmp(what, "answer") == 0) {
        start(serve_client);
        write_byte(pair[1]);
        read_byte(pair[1]);
        read_byte(pair[1]); /* the other end waits for a question */
    } else if (strcmp(what, "workers") == 0) {
        start(work_for_others);
        for (int i = 0; i < JOBS; i++) {
            usleep(5 * JOB_US); /* so that the worker comes to its rest */
            write_byte(pipe_ends[1]);
        }
        wait_to_be_stopped();
    } else if (strcmp(what, "works") == 0) {
        pthread_join((pthread_t)start(work), NULL);
    } else if (strcmp(what, "accepts") == 0) {
        start(serve_client);
        write_byte(pair[1]);
        accept_client();
    } else if (strcmp(what, "child") == 0) {
        if (fork() == 0)
            _exit(usleep(1500000));
        wait(NULL);
    } else if (strcmp(what, "timed") == 0) {
        struct timespec until = {.tv_sec = time(NULL) + 1000};
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&stopped, &mutex, &until);
    } else if (strcmp(what, "deadlock") == 0) {
        pthread_mutex_lock(&mutex);
        start(take_other_first);
        read_byte(pipe_ends[0]);
        write_byte(pair[1]);
        pthread_mutex_lock(&other);
    }
    return 0;
}
