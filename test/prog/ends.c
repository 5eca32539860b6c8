/*
 * The ways a process can end; argv[1] names one. Two more threads exist meanwhile, one of them
 * asleep on a condition variable.
 */
#include "libc.h"
#include "truth.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int finished;

static void *idle(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&barrier);
    while (!finished)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *call_exit(void *arg)
{
    exit(*(int *)arg);
}

static void finish(void)
{
    pthread_mutex_lock(&mutex);
    finished = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
}

static void say_at_exit(void)
{
    puts("at exit");
}

static void *last(void *arg)
{
    usleep(20000);
    puts("the last thread ends");
    finish();
    return arg;
}

/*
 * In the last round of destructors it runs after the tracer's own, whose key is older: for a while
 * the process has no thread that the trace shows.
 */
static pthread_key_t key;

static void late_destructor(void *round)
{
    if ((intptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, (void *)((intptr_t)round + 1));
        return;
    }
    usleep(300000);
    puts("the last destructor ran");
}

static void *last_with_destructor(void *arg)
{
    pthread_setspecific(key, (void *)1);
    finish();
    return arg;
}

#define AFTER "echo after exec; exit 9"

static void exec_shell(const char *how)
{
    char *argv[] = {"sh", "-c", AFTER, NULL};
    int shell = open("/bin/sh", O_PATH | O_CLOEXEC);
    if (strcmp(how, "fexecve") == 0)
        fexecve(shell, argv, environ);
    if (strcmp(how, "execveat") == 0)
        execveat(shell, "", argv, environ, AT_EMPTY_PATH);
    if (strcmp(how, "SYS_execve") == 0)
        syscall(SYS_execve, "/bin/sh", argv, environ);
}

int main(int argc, char **argv)
{
    static int status = 7;
    pthread_t thread;
    const char *how = argc > 1 ? argv[1] : "return";
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, idle, NULL);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex); /* free once that thread sleeps */
    pthread_mutex_unlock(&mutex);
    puts(how);
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(4);
    if (strcmp(how, "_Exit") == 0)
        _Exit(5);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(6);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "thread-exit") == 0) {
        pthread_create(&thread, NULL, call_exit, &status);
        pause();
    }
    if (strcmp(how, "last-flushes") == 0) {
        setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
        atexit(say_at_exit);
        finish();
        pthread_join(thread, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(how, "SYS_exit") == 0) {
        finish();
        pthread_join(thread, NULL);
        syscall(SYS_exit, 8);
    }
    if (strcmp(how, "SYS_exit_group") == 0)
        syscall(SYS_exit_group, 10);
    if (strcmp(how, "unseen") == 0) {
        pthread_create(&thread, NULL, last, NULL);
        RAW(SYS_exit, 9);
    }
    if (strcmp(how, "last-thread") == 0) {
        pthread_create(&thread, NULL, last, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(how, "last-destructor") == 0) {
        pthread_key_create(&key, late_destructor);
        pthread_create(&thread, NULL, last_with_destructor, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(how, "exec") == 0)
        execlp("sh", "sh", "-c", AFTER, NULL);
    if (strstr(how, "exec"))
        exec_shell(how);
    if (strcmp(how, "SIGTERM") == 0 || strcmp(how, "SIGINT") == 0) {
        usleep(150000); /* the first generation closes after 100 ms */
        raise(strcmp(how, "SIGINT") == 0 ? SIGINT : SIGTERM);
    }
    return 2;
}
