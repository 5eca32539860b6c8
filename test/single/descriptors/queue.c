/*
 * queue WAY [await]: is told of a message in a queue by mq_notify(3), as WAY says by a signal or by
 * a thread, which it asked for before it made its first thread. With await it first waits until
 * some thread of the process has a descriptor table of its own. Prints "told" or "not told".
 */
#include "../../prog/program.h"

#include <dirent.h>
#include <mqueue.h>

enum { PATIENCE_S = 10 };

static sem_t by_thread;

static void in_thread(union sigval unused)
{
    (void)unused;
    sem_post(&by_thread);
}

/* Whether each thread has the descriptor. One that has ended counts, too. */
static bool is_everybodys(int fd)
{
    char path[sizeof "/proc/self/task//fd/" + 2 * sizeof(int) * 3];
    bool all = true;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        struct stat at;
        snprintf(path, sizeof path, "/proc/self/task/%.10s/fd/%d", task->d_name, fd);
        all &= task->d_name[0] == '.' || lstat(path, &at) == 0;
    }
    closedir(tasks);
    return all;
}

static void await_table(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (is_everybodys(fd))
        usleep(1000);
    close(fd);
}

static void *nothing(void *unused)
{
    return unused;
}

static bool is_told(bool by_signal, const sigset_t *usr1)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (!by_signal)
        return sem_timedwait(&by_thread, &until) == 0;
    return sigtimedwait(usr1, NULL, &(struct timespec){PATIENCE_S, 0}) == SIGUSR1;
}

int main(int argc, char **argv)
{
    char name[32];
    pthread_t thread;
    sigset_t usr1;
    bool by_signal = argc > 1 && strcmp(argv[1], "signal") == 0;
    struct mq_attr sizes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    struct sigevent wish = {.sigev_notify = by_signal ? SIGEV_SIGNAL : SIGEV_THREAD,
                            .sigev_notify_function = in_thread};
    if (by_signal) /* shares its place with the function above */
        wish.sigev_signo = SIGUSR1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    sem_init(&by_thread, 0, 0);
    snprintf(name, sizeof name, "/queue-%d", getpid());
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &sizes);
    mq_unlink(name);
    if (mq_notify(queue, &wish) != 0 || pthread_create(&thread, NULL, nothing, NULL) != 0)
        return 2;
    pthread_join(thread, NULL);
    if (argc > 2)
        await_table();
    mq_send(queue, "x", 1, 0);
    puts(is_told(by_signal, &usr1) ? "told" : "not told");
    return 0;
}
