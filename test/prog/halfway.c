/*
 * Calls that a debugger's stop would end before their time: what has copied a part, and timeouts
 * that would begin anew. A thread for each, named after it; readers that let the large ones get on
 * slowly. Writes "ready", and at the end of each "NAME: result errno milliseconds".
 */
#include "program.h"
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum { SIZE = 300000, SECONDS = 3, PAUSE_US = 8000, SLICE = 1024 };

static char block[SIZE];
static const struct timespec constant = {SECONDS, 0};
static pthread_barrier_t all;

/* Large ones: where they write to is read slowly, or the other way round ---------------------- */

static void *drain(void *arg)
{
    char part[SLICE];
    int fd = (int)(long)arg;
    prctl(PR_SET_NAME, "drains");
    while (read(fd, part, sizeof part) > 0)
        usleep(PAUSE_US);
    return NULL;
}

static void *feed(void *arg)
{
    int fd = (int)(long)arg;
    prctl(PR_SET_NAME, "feeds");
    for (int left = SIZE; left > 0; left -= SLICE) {
        if (write(fd, block, left < SLICE ? (size_t)left : SLICE) < 0)
            abort();
        usleep(PAUSE_US);
    }
    return NULL;
}

static void start(void *(*what)(void *), int fd)
{
    pthread_t thread;
    pthread_create(&thread, NULL, what, (void *)(long)fd);
}

static int to_pipe(void)
{
    int ends[2];
    if (pipe(ends))
        abort();
    start(drain, ends[0]);
    return ends[1];
}

static int to_socket(void)
{
    int ends[2], least = 4096;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        abort();
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
    start(drain, ends[0]);
    return ends[1];
}

static int from_socket(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        abort();
    start(feed, ends[1]);
    return ends[0];
}

static int from_file(void)
{
    char path[] = "/tmp/halfway-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    if (write(fd, block, SIZE) != SIZE || lseek(fd, 0, SEEK_SET))
        abort();
    return fd;
}

CALL(do_write, write(to_pipe(), block, SIZE))

static long do_writev(void)
{
    struct iovec parts[] = {{block, SIZE / 2}, {block, SIZE / 2}};
    return writev(to_pipe(), parts, 2);
}

CALL(do_send, send(to_socket(), block, SIZE, 0))

static long do_sendmsg(void)
{
    struct iovec part = {block, SIZE};
    return sendmsg(to_socket(), &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, 0);
}

CALL(do_sendfile, sendfile(to_socket(), from_file(), NULL, SIZE))
CALL(do_recv, recv(from_socket(), block, SIZE, MSG_WAITALL))

/* One that makes its call itself, and has a frame pointer. */
#if defined(__x86_64__)
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static long raw_write(int fd)
{
    char volatile room[100];
    long result;
    room[0] = 1;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_write), "D"((long)fd), "S"(block), "d"((long)SIZE)
                     : "rcx", "r11", "memory");
    return result + room[0] - 1;
}
#else
static long raw_write(int fd)
{
    return write(fd, block, SIZE);
}
#endif

CALL(do_raw, raw_write(to_pipe()))

/* Timeouts ------------------------------------------------------------------------------------- */

static long do_nanosleep(void)
{
    struct timespec time = constant;
    long result = nanosleep(&time, &time);
    return time.tv_sec == SECONDS && time.tv_nsec == 0 ? result : 1; /* it is nobody's but ours */
}

CALL(do_poll, poll(NULL, 0, SECONDS * 1000))
CALL(do_ppoll, syscall(SYS_ppoll, NULL, 0, &constant, NULL, 8))

static long do_select(void)
{
    return select(0, NULL, NULL, NULL, &(struct timeval){SECONDS, 0});
}

CALL(do_pselect, syscall(SYS_pselect6, 0, NULL, NULL, NULL, &constant, NULL))

static long do_epoll(void)
{
    return epoll_wait(epoll_create1(0), &(struct epoll_event){0}, 1, SECONDS * 1000);
}

static long do_sigtimedwait(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR1);
    return sigtimedwait(&none, NULL, &constant);
}

static long do_semtimedop(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    long result = semtimedop(id, &(struct sembuf){.sem_op = -1}, 1, &constant);
    int error = errno;
    semctl(id, 0, IPC_RMID);
    errno = error;
    return result;
}

static long do_recv_timed(void)
{
    int ends[2];
    struct timeval time = {SECONDS, 0};
    char c;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        abort();
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return recv(ends[0], &c, 1, 0);
}

/* All ------------------------------------------------------------------------------------------ */

static const struct call {
    const char *name;
    long (*run)(void);
} calls[] = {{"write", do_write},
             {"writev", do_writev},
             {"send", do_send},
             {"sendmsg", do_sendmsg},
             {"sendfile", do_sendfile},

             {"recv", do_recv},
             {"raw", do_raw},
             {"nanosleep", do_nanosleep},
             {"poll", do_poll},
             {"ppoll", do_ppoll},
             {"select", do_select},
             {"pselect", do_pselect},
             {"epoll", do_epoll},
             {"sigtimedwait", do_sigtimedwait},
             {"semtimedop", do_semtimedop},
             {"recv timed", do_recv_timed}};

enum { CALLS = sizeof calls / sizeof *calls };

static void *run(void *arg)
{
    const struct call *call = arg;
    struct timespec begin, end;
    prctl(PR_SET_NAME, call->name);
    pthread_barrier_wait(&all);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    errno = 0;
    long result = call->run();
    int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s: %ld %d %ld\n", call->name, result, result < 0 ? error : 0,
           (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
    return NULL;
}

int main(void)
{
    pthread_t threads[CALLS];
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    pthread_barrier_init(&all, NULL, CALLS + 1);
    for (int i = 0; i < CALLS; i++)
        pthread_create(&threads[i], NULL, run, (void *)&calls[i]);
    puts("ready");
    fflush(stdout);
    pthread_barrier_wait(&all);
    for (int i = 0; i < CALLS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
