/*
 * main wakes the waiter "first", which does not run at once: rightly_woken WAY. Meanwhile another
 * thread or the library may take that wake-up for a mistake:
 * - timeout: the wait of "second" ends by its timeout, with the mutex, before that of "first".
 * - cancelled: "second" is cancelled, and gets the mutex before "first".
 * - interrupted: a signal ends "second"'s sem_wait, while "first" is in a signal handler.
 * - elsewhere: another process posts, too, and "second" takes a token before "first".
 * - held: "first" sleeps for the mutex at the end of a generation. Then main wakes "second".
 */
#include "../../../preload/gotrace.h"
#include "../../prog/program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t *token;
static _Atomic int first, second, in_handler, may_leave;
static const char *way;

static bool is(const char *name)
{
    return strcmp(way, name) == 0;
}

static bool by_sem(void)
{
    return is("interrupted") || is("elsewhere");
}

/*
 * Waits until the thread sleeps in a call whose first argument is one of the `size` bytes:
 * futex(2).
 */
static void await_sleep(_Atomic int *tid, const void *object, size_t size)
{
    uintptr_t at = 0;
    while (at - (uintptr_t)object >= size) {
        char path[64], text[256] = "";
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", *tid);
        int fd = open(path, O_RDONLY);
        bool known = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
        close(fd);
        char *end = text;
        at = known && strtol(text, &end, 10) >= 0 ? strtoul(end, NULL, 16) : 0;
    }
}

static void await_signalled(_Atomic int *tid)
{
    await_sleep(tid, &mutex, sizeof mutex);
}

static void stand(int number)
{
    in_handler++;
    while (may_leave != number)
        ;
}

static void begin(_Atomic int *tid, const char *name)
{
    gotrace_log(0, "name", name);
    pthread_mutex_lock(&mutex);
    *tid = (int)syscall(SYS_gettid);
}

static void *wait_first(void *arg)
{
    begin(&first, "first");
    if (by_sem()) {
        pthread_mutex_unlock(&mutex);
        sem_wait(token);
        return arg;
    }
    pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void unlock(void *arg)
{
    pthread_mutex_unlock(arg);
}

static void *wait_second(void *arg)
{
    struct timespec soon = after(CLOCK_REALTIME, 100000000);
    begin(&second, "second");
    if (by_sem()) {
        pthread_mutex_unlock(&mutex);
        if ((sem_wait(token) != 0) != is("interrupted"))
            abort();
        return arg;
    }
    pthread_cleanup_push(unlock, &mutex);
    if (is("timeout"))
        pthread_cond_timedwait(&cond, &mutex, &soon);
    else
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return arg;
}

static void interrupt(pthread_t thread, int number, int flags)
{
    struct sigaction action = {.sa_handler = stand, .sa_flags = flags};
    int before = in_handler;
    sigaction(number, &action, NULL);
    pthread_kill(thread, number);
    while (in_handler == before)
        ;
}

static void post_elsewhere(void)
{
    pid_t child = fork();
    if (child == 0) {
        sem_post(token);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    way = argc > 1 ? argv[1] : "";
    token = mmap(NULL, sizeof *token, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(token, is("elsewhere"), 0);
    const void *object = by_sem() ? (void *)token : (void *)&cond;
    size_t size = by_sem() ? sizeof *token : sizeof cond;
    gotrace_log(0, "name", "main");
    pthread_create(&threads[0], NULL, wait_first, NULL);
    await_sleep(&first, object, size);
    pthread_create(&threads[1], NULL, wait_second, NULL);
    await_sleep(&second, object, size);
    if (by_sem()) {
        interrupt(threads[0], SIGUSR1, SA_RESTART);
        interrupt(threads[1], SIGUSR2, is("elsewhere") ? SA_RESTART : 0);
        sem_post(token);
        if (is("elsewhere"))
            post_elsewhere();
        may_leave = SIGUSR2;
        pthread_join(threads[1], NULL);
        may_leave = SIGUSR1;
        pthread_join(threads[0], NULL);
        return 0;
    }
    pthread_mutex_lock(&mutex);
    if (is("cancelled"))
        pthread_cancel(threads[1]);
    if (!is("held"))
        await_signalled(&second);
    pthread_cond_signal(&cond);
    await_signalled(&first);
    if (is("held")) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        gotrace_snapshot(NULL);
        pthread_cond_signal(&cond);
        await_signalled(&second);
    }
    pthread_mutex_unlock(&mutex);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
