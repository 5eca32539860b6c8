/*
 * file_locks WAY FILE: three workers, each with the file open for itself, take its lock ten times.
 * A worker holds it for 20 ms in commit_record, then works for 2 ms. The workers are processes, or,
 * with the way "threads", threads. With "ends" a worker makes a process for each time, which ends
 * with the lock. Prints how long the lock was held and how long all took, in ns, and how often a
 * worker wanted it while another one had it.
 */
#include "../../prog/program.h"
#include <sys/file.h>

enum { WORKERS = 3, ROUNDS = 10 };

static const char *way, *path;
static struct shared {
    _Atomic int64_t held;
    _Atomic int begun, holders, waits; /* workers; those with the lock; how often another had it */
} * all;

static void need(int result)
{
    if (result < 0)
        abort();
}

static int record(int fd, int command, short type)
{
    struct flock what = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, command, &what);
}

static void take(int fd)
{
    need(strcmp(way, "fcntl") == 0   ? record(fd, F_SETLKW, F_WRLCK)
         : strcmp(way, "ofd") == 0   ? record(fd, F_OFD_SETLKW, F_WRLCK)
         : strcmp(way, "lockf") == 0 ? lockf(fd, F_LOCK, 0)
                                     : flock(fd, LOCK_EX));
}

static int open_file(void)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    need(fd);
    return fd;
}

/* Returns the descriptor for the next round. */
static int give_up(int fd)
{
    if (strcmp(way, "close") == 0) {
        need(close(fd));
        return open_file();
    }
    if (strcmp(way, "ends") == 0)
        return fd;
    need(strcmp(way, "fcntl") == 0   ? record(fd, F_SETLK, F_UNLCK)
         : strcmp(way, "ofd") == 0   ? record(fd, F_OFD_SETLK, F_UNLCK)
         : strcmp(way, "lockf") == 0 ? lockf(fd, F_ULOCK, 0)
                                     : flock(fd, LOCK_UN));
    return fd;
}

__attribute__((noinline)) static int commit_record(int fd)
{
    all->waits += all->holders;
    take(fd);
    int64_t since = now_ns();
    all->holders++;
    usleep(20000);
    all->holders--;
    all->held += now_ns() - since;
    return give_up(fd);
}

__attribute__((noinline)) static void prepare_next(void)
{
    usleep(2000);
}

/* The first worker does not have the lock for itself for a while. */
static void await_others(void)
{
    all->begun++;
    while (all->begun < WORKERS)
        sched_yield();
}

static void *work(void *arg)
{
    int fd = open_file();
    await_others();
    for (int i = 0; i < ROUNDS; i++) {
        fd = commit_record(fd);
        prepare_next();
    }
    close(fd);
    return arg;
}

static void work_by_processes(void)
{
    await_others();
    for (int i = 0; i < ROUNDS; i++) {
        if (fork() == 0) {
            commit_record(open_file());
            exit(0);
        }
        wait(NULL);
        prepare_next();
    }
}

static void run_processes(void)
{
    for (int i = 0; i < WORKERS; i++) {
        if (fork() == 0) {
            if (strcmp(way, "ends") == 0)
                work_by_processes();
            else
                work(NULL);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

static void run_threads(void)
{
    pthread_t thread[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        need(-pthread_create(&thread[i], NULL, work, NULL));
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    way = argv[1];
    path = argv[2];
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t since = now_ns();
    if (strcmp(way, "threads") == 0)
        run_threads();
    else
        run_processes();
    printf("%lld %lld %d\n", (long long)all->held, (long long)(now_ns() - since), all->waits);
    return 0;
}
