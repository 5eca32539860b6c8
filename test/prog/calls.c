/*
 * Threads that wait in system calls and for the network, in each call there is. See rows.h.
 * calls_fortify.c and calls_lfs.c are this program with other names of the same functions.
 */
#include "rows.h"

#include <aio.h>
#include <dirent.h>
#include <fts.h>
#include <grp.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/time_types.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <resolv.h>
#include <shadow.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <termios.h>
#include <wchar.h>
#include <wordexp.h>

/* What does the arranging ---------------------------------------------------------------------- */

static int in, out;              /* the threads read from `in` and write to `out` … */
static int far;                  /* … and the main thread has the other end */
static volatile size_t four = 4; /* not a constant, so that the compiler cannot check it */
static volatile int read_only = O_RDONLY, write_only = O_WRONLY;
static char page[4096];
static struct iovec vector = {page, 4};
static int opened[16], opened_count;

static int keep(long fd)
{
    errno = fd < 0 ? (int)-fd : 0;
    EXPECT(fd >= 0 && opened_count < 16);
    return opened[opened_count++] = (int)fd;
}

static void close_all(void)
{
    while (opened_count)
        RAW(SYS_close, opened[--opened_count]);
}

DO(put, EXPECT(RAW(SYS_write, far, "abc\n", 4) == 4))

static void take(void)
{
    static char rest[4096];
    EXPECT(RAW(SYS_read, far, rest, sizeof rest) > 0);
}

static void take_all(void)
{
    static char rest[1024];
    while (RAW(SYS_recvfrom, far, rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
}

static void two_pipe_ends(int fd[2])
{
    EXPECT(RAW(SYS_pipe2, fd, 0) == 0);
    keep(fd[0]);
    keep(fd[1]);
    EXPECT(RAW(SYS_fcntl, fd[1], F_SETPIPE_SZ, 4096) >= 4096);
}

static void empty_pipe(void)
{
    int fd[2];
    two_pipe_ends(fd);
    in = fd[0];
    far = fd[1];
}

static void full_pipe(void)
{
    int fd[2];
    two_pipe_ends(fd);
    far = fd[0];
    out = fd[1];
    EXPECT(RAW(SYS_write, out, page, sizeof page) == sizeof page);
}

static void empty_socket(void)
{
    int fd[2];
    EXPECT(RAW(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    in = out = keep(fd[0]);
    far = keep(fd[1]);
}

static void full_socket(void)
{
    empty_socket();
    while (RAW(SYS_sendto, out, page, 1024, MSG_DONTWAIT) > 0)
        ;
}

static int a_file(void)
{
    int fd = keep(RAW(SYS_memfd_create, "calls", 0));
    EXPECT(RAW(SYS_write, fd, page, sizeof page) == sizeof page);
    RAW(SYS_lseek, fd, 0, SEEK_SET);
    return fd;
}

static void files(void)
{
    in = a_file();
    out = a_file();
}

static void handled(int sig)
{
    (void)sig;
}

static void handle(void (*handler)(int), int flags)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};
    EXPECT(sigaction(SIGUSR1, &sa, NULL) == 0);
}

DO(interrupt, EXPECT(RAW(SYS_tgkill, getpid(), parties[0].tid, SIGUSR1) == 0))

static void block_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Reading and writing -------------------------------------------------------------------------- */

static long do_read(void)
{
    char buffer[16];
    return read(in, buffer, four);
}

CALL(do_readv, readv(in, &vector, 1))
CALL(do_preadv2, preadv2(in, &vector, 1, -1, 0))
CALL(do_write, write(out, page, four))
CALL(do_writev, writev(out, &vector, 1))
CALL(do_pwritev2, pwritev2(out, &vector, 1, -1, 0))
CALL(write_block, write(out, page, 1024))
CALL(writev_block, writev(out, &(struct iovec){page, 1024}, 1))

static void pty(void)
{
    char name[64];
    int unlock = 0, number;
    far = keep(RAW(SYS_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY));
    EXPECT(RAW(SYS_ioctl, far, TIOCSPTLCK, &unlock) == 0);
    EXPECT(RAW(SYS_ioctl, far, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    in = keep(RAW(SYS_openat, AT_FDCWD, name, O_RDWR | O_NOCTTY));
}

DO(an_eventfd, in = far = keep(eventfd(0, 0)))

static long read_eventfd(void)
{
    uint64_t value = 0;
    return read(in, &value, 8) == 8 ? (long)value : -1;
}

static long do_eventfd_read(void)
{
    eventfd_t value = 0;
    return eventfd_read(in, &value) == 0 ? (long)value : -1;
}

static void full_eventfd(void)
{
    uint64_t most = UINT64_MAX - 1;
    an_eventfd();
    out = in;
    EXPECT(RAW(SYS_write, out, &most, 8) == 8);
}

CALL(do_eventfd_write, eventfd_write(out, 3))

static void put_event(void)
{
    uint64_t value = 5;
    EXPECT(RAW(SYS_write, far, &value, 8) == 8);
}

DO(a_timerfd, in = keep(timerfd_create(CLOCK_MONOTONIC, 0)))

static long read_timer_after(uint64_t ns)
{
    uint64_t value;
    struct itimerspec spec = {.it_value = {0, (long)ns}};
    do { /* until it is not interrupted between the timer's start and the call */
        starting();
        EXPECT(RAW(SYS_timerfd_settime, in, 0, &spec, NULL) == 0);
    } while (now() - self->start > ns / 50);
    return read(in, &value, 8);
}

CALL(read_timerfd, read_timer_after(TIMEOUT))

/*
 * Ten calls of 1 ms, each followed by 9 ms of computing. One that came back late may have begun
 * late, too: how long it had to wait is not known then.
 */
static long read_ten(void)
{
    for (int i = 0; i < 10; i++) {
        EXPECT(read_timer_after(MS) == 8);
        noted(self->start, now() - self->start < MS + MS / 5 ? MS : 0);
        busy(9 * MS);
    }
    return 0;
}

static long poll_ten(void)
{
    for (int i = 0; i < 10; i++) {
        struct pollfd none = {-1, POLLIN, 0};
        uint64_t start = now();
        EXPECT(poll(&none, 1, 1) == 0);
        noted(start, MS);
        busy(9 * MS);
    }
    return 0;
}

static void interruptible(void)
{
    empty_pipe();
    handle(handled, 0);
}

static void restartable(void)
{
    empty_pipe();
    handle(handled, SA_RESTART);
}

/* The signal does not end the call: the data does. */
static void interrupt_then_put(void)
{
    interrupt();
    busy(HOLD / 2);
    parties[0].woken = now();
    put();
}

static sem_t posted;

static void post(int sig)
{
    (void)sig;
    sem_post(&posted);
}

static void posting_handler(void)
{
    empty_pipe();
    handle(post, SA_RESTART);
    EXPECT(sem_init(&posted, 0, 0) == 0);
}

/* The first thread reads; its signal handler ends the wait of the second. */
static long read_or_sem_wait(void)
{
    if (self->index == 0)
        return do_read();
    self->class = "sync";
    self->hook = "sem_wait";
    self->waker = parties[0].tid;
    return sem_wait(&posted);
}

DO(cancel, EXPECT(pthread_cancel(parties[0].thread) == 0))

static int far_pipe;

static void pipe_and_socket(void)
{
    int fd[2];
    empty_socket();
    two_pipe_ends(fd);
    out = in;
    in = fd[0];
    far_pipe = fd[1];
}

/* The first thread reads a pipe, the second receives. */
static long read_or_recv(void)
{
    char buffer[16];
    if (self->index == 0)
        return do_read();
    self->class = "network";
    self->hook = "recv";
    return recv(out, buffer, four, 0);
}

/* Longer than two generations. */
static void put_late(void)
{
    struct timespec ts = {2, 500 * MS};
    RAW(SYS_nanosleep, &ts, NULL);
    parties[0].woken = parties[1].woken = now();
    EXPECT(RAW(SYS_write, far_pipe, "abc\n", 4) == 4);
    put();
}

/* The process ends while they wait. */
static void end_process(void)
{
    char text[512];
    int n = 0;
    struct timespec ts = {0, 200 * MS};
    RAW(SYS_nanosleep, &ts, NULL);
    for (int i = 0; i < 2; i++) {
        struct party *p = &parties[i];
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %d 0 %llu %llu %s %llu\n", p->hook,
                      p->tid, (unsigned long long)(now() - p->start),
                      (unsigned long long)(now() - p->asleep), p->class,
                      (unsigned long long)p->start);
    }
    RAW(SYS_write, 1, text, n);
    _exit(3);
}

/* Files ---------------------------------------------------------------------------------------- */

static char path[64];
static int result_fd = -1;

static void fifo(void)
{
    snprintf(path, sizeof path, "/tmp/gotrace-calls-%d", main_tid);
    EXPECT(mkfifo(path, 0600) == 0);
}

DO(open_reader, keep(RAW(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK)))
DO(open_writer, keep(RAW(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK)))

/* Keeps the descriptor that the call opened, if it did. */
static void result_over(void)
{
    if (result_fd >= 0)
        keep(result_fd);
    result_fd = -1;
    close_all();
}

static void fifo_over(void)
{
    unlink(path);
    result_over();
}

static long gave(int fd)
{
    result_fd = fd;
    return fd < 0 ? -1 : 0;
}

CALL(open_read, gave(open(path, read_only)))
CALL(open_write, gave(open(path, write_only)))
CALL(open_at, gave(openat(AT_FDCWD, path, read_only)))

static int (*by_openat2)(int, const char *, const struct open_how *, size_t);

static void fifo_for_openat2(void)
{
    *(void **)&by_openat2 = dlsym(RTLD_DEFAULT, "openat2");
    fifo();
    if (by_openat2)
        return;
    skipped = "no openat2 in this libc (glibc 2.43)";
}

static long open_at2(void)
{
    struct open_how how = {.flags = O_RDONLY};
    return gave(by_openat2(AT_FDCWD, path, &how, sizeof how));
}

CALL(create, gave(creat(path, 0600)))

static void file_to_pipe(void)
{
    full_pipe();
    in = a_file();
}

CALL(do_sendfile, sendfile(out, in, NULL, 4))

static void two_pipes(void)
{
    int fd[2];
    empty_pipe();
    two_pipe_ends(fd);
    out = fd[1];
}

CALL(do_splice, splice(in, NULL, out, NULL, 4, 0))
CALL(do_tee, tee(in, out, 4, 0))

/* Two open descriptions of one file; the main thread has locked it. */
static void two_descriptions(void)
{
    char name[64];
    in = a_file();
    snprintf(name, sizeof name, "/proc/self/fd/%d", in);
    far = keep(RAW(SYS_openat, AT_FDCWD, name, O_RDWR));
}

static void hold_flock(void)
{
    two_descriptions();
    EXPECT(RAW(SYS_flock, far, LOCK_EX) == 0);
}

DO(give_flock, EXPECT(RAW(SYS_flock, far, LOCK_UN) == 0))

static long ofd(int type)
{
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET};
    return RAW(SYS_fcntl, far, F_OFD_SETLK, &lock);
}

static void hold_record(void)
{
    two_descriptions();
    EXPECT(ofd(F_WRLCK) == 0);
}

DO(give_record, EXPECT(ofd(F_UNLCK) == 0))
CALL(do_flock, flock(in, LOCK_EX))
CALL(do_lockf, lockf(in, F_LOCK, 0))
CALL(fcntl_posix, fcntl(in, F_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}))
CALL(fcntl_ofd, fcntl(in, F_OFD_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}))

/* Children and signals ------------------------------------------------------------------------- */

static long child;

/* Made by a system call that no hook sees; ends with 7 when it can read a byte. */
static void a_child(void)
{
    empty_pipe();
    child = RAW(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        RAW(SYS_close, far); /* ends as well when nobody else has that end */
        RAW(SYS_read, in, page, 1);
        RAW(SYS_exit_group, 7);
    }
    EXPECT(child > 0);
}

/* The child, too, when nobody has waited for it. */
static void child_over(void)
{
    close_all();
    RAW(SYS_wait4, child, NULL, 0, NULL);
}

static long status_of(long pid, int status)
{
    return pid == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long do_wait(void)
{
    int status = 0;
    pid_t pid = wait(&status);
    return status_of(pid, status);
}

static long do_waitpid(void)
{
    int status = 0;
    pid_t pid = waitpid((pid_t)child, &status, 0);
    return status_of(pid, status);
}

static long do_wait3(void)
{
    int status = 0;
    pid_t pid = wait3(&status, 0, NULL);
    return status_of(pid, status);
}

static long do_wait4(void)
{
    int status = 0;
    pid_t pid = wait4((pid_t)child, &status, 0, NULL);
    return status_of(pid, status);
}

static long do_waitid(void)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child, &info, WEXITED) == 0 ? info.si_status : -1;
}

static sigset_t user_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return set;
}

static long do_sigwait(void)
{
    int sig = 0;
    sigset_t set = user_signal();
    block_signal();
    starting();
    return sigwait(&set, &sig) == 0 ? sig : -1;
}

static long do_sigwaitinfo(void)
{
    sigset_t set = user_signal();
    block_signal();
    starting();
    return sigwaitinfo(&set, NULL);
}

static long do_sigtimedwait(void)
{
    sigset_t set = user_signal();
    struct timespec late = {10, 0};
    block_signal();
    starting();
    return sigtimedwait(&set, NULL, &late);
}

static long sigtimedwait_timeout(void)
{
    sigset_t set = user_signal();
    struct timespec soon = {0, TIMEOUT};
    block_signal();
    starting();
    return sigtimedwait(&set, NULL, &soon);
}

DO(handler, handle(handled, 0))

static long do_sigsuspend(void)
{
    sigset_t none;
    sigemptyset(&none);
    block_signal();
    starting();
    return sigsuspend(&none);
}

int __xpg_sigpause(int signal); /* what the headers call, which warn of it, too */

static long do_sigpause(void)
{
    block_signal();
    starting();
    return __xpg_sigpause(SIGUSR1);
}

CALL(do_pause, pause())

CALL(ppoll_signal, ppoll(NULL, 0, NULL, NULL))

/* Queues --------------------------------------------------------------------------------------- */

static int queue;
static struct {
    long type;
    char text[8000];
} message = {1, "abc"};

static void msg_queue(void)
{
    queue = msgget(IPC_PRIVATE, 0600);
    EXPECT(queue >= 0);
}

static void msg_full(void)
{
    msg_queue();
    while (RAW(SYS_msgsnd, queue, &message, sizeof message.text, IPC_NOWAIT) == 0)
        ;
}

DO(msg_over, EXPECT(msgctl(queue, IPC_RMID, NULL) == 0))
CALL(do_msgsnd, msgsnd(queue, &message, sizeof message.text, 0))
CALL(do_msgrcv, msgrcv(queue, page, 8, 0, 0))
DO(msg_put, EXPECT(RAW(SYS_msgsnd, queue, &message, 4, 0) == 0))

static void msg_take(void)
{
    static char rest[sizeof message];
    EXPECT(RAW(SYS_msgrcv, queue, rest, sizeof message.text, 0, 0) > 0);
}

static struct sembuf down = {0, -1, 0}, up = {0, 1, 0};

static void sem_set(void)
{
    queue = semget(IPC_PRIVATE, 1, 0600);
    EXPECT(queue >= 0);
}

DO(sem_set_over, EXPECT(semctl(queue, 0, IPC_RMID) == 0))
CALL(do_semop, semop(queue, &down, 1))
CALL(do_semtimedop, semtimedop(queue, &down, 1, &(struct timespec){10, 0}))
CALL(semtimedop_timeout, semtimedop(queue, &down, 1, &(struct timespec){0, TIMEOUT}))
DO(sem_up, EXPECT(RAW(SYS_semtimedop, queue, &up, 1, NULL) == 0))

static void mq_new(void)
{
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
    snprintf(path, sizeof path, "/gotrace-calls-%d", main_tid);
    queue = keep(mq_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &attr));
    EXPECT(mq_unlink(path) == 0);
}

DO(mq_put, EXPECT(RAW(SYS_mq_timedsend, queue, "abc", 4, 0, NULL) == 0))

static void mq_take(void)
{
    static char rest[8];
    EXPECT(RAW(SYS_mq_timedreceive, queue, rest, 8, NULL, NULL) == 4);
}

static void mq_full(void)
{
    mq_new();
    mq_put();
}

CALL(do_mq_send, mq_send(queue, "abc", 4, 0))
CALL(do_mq_receive, mq_receive(queue, page, 8, NULL))

static long do_mq_timedsend(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    return mq_timedsend(queue, "abc", 4, 0, &late);
}

static long do_mq_timedreceive(void)
{
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    return mq_timedreceive(queue, page, 8, NULL, &late);
}

static long mq_timeout(void)
{
    struct timespec soon = after(CLOCK_REALTIME, TIMEOUT);
    return mq_timedreceive(queue, page, 8, NULL, &soon);
}

/* Asynchronous input and output ---------------------------------------------------------------- */

static struct aiocb aio;

static void aio_started(void)
{
    empty_pipe();
    aio = (struct aiocb){.aio_fildes = in, .aio_buf = page, .aio_nbytes = 4};
    EXPECT(aio_read(&aio) == 0);
}

static long do_aio_suspend(void)
{
    const struct aiocb *list[] = {&aio};
    return aio_suspend(list, 1, NULL);
}

static void aio_over(void)
{
    if (aio_error(&aio) == EINPROGRESS) /* its waiter was cancelled */
        put();
    while (aio_error(&aio) == EINPROGRESS)
        busy(20000);
    EXPECT(aio_error(&aio) == 0 && aio_return(&aio) == 4);
    close_all();
}

static aio_context_t context;

static void io_started(void)
{
    static struct iocb control, *list[] = {&control};
    empty_pipe();
    long r = RAW(SYS_io_setup, 1, &context);
    if (r < 0) {
        skipped = "no io_setup";
        return;
    }
    control = (struct iocb){.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (unsigned)in};
    control.aio_buf = POLLIN;
    EXPECT(RAW(SYS_io_submit, context, 1, list) == 1);
}

CALL(do_io_getevents, syscall(SYS_io_getevents, context, 1, 1, &(struct io_event){0}, NULL))

static void io_over(void)
{
    EXPECT(!context || RAW(SYS_io_destroy, context) == 0);
    context = 0;
    close_all();
}

static void a_ring(void)
{
    struct io_uring_params params = {.flags = 0};
    long fd = RAW(SYS_io_uring_setup, 1, &params);
    if (fd < 0 || !(params.features & IORING_FEAT_EXT_ARG)) {
        skipped = "no io_uring";
        return;
    }
    in = keep(fd);
}

/* Nothing was submitted: it waits for its time to be over. */
static long do_io_uring_enter(void)
{
    struct __kernel_timespec soon = {0, TIMEOUT};
    struct io_uring_getevents_arg arg = {.ts = (uint64_t)(uintptr_t)&soon};
    return syscall(SYS_io_uring_enter, in, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                   &arg, sizeof arg);
}

/* Standard input and output -------------------------------------------------------------------- */

static FILE *stream;

static void stream_in(void)
{
    empty_pipe();
    stream = fdopen((int)RAW(SYS_dup, in), "r");
    EXPECT(stream);
}

static void stream_out(void)
{
    full_pipe();
    stream = fdopen((int)RAW(SYS_dup, out), "w");
    EXPECT(stream);
}

static void stream_direct(void)
{
    stream_out();
    setvbuf(stream, NULL, _IONBF, 0);
}

static void stream_dirty(void)
{
    stream_out();
    EXPECT(fwrite("abc\n", 1, 4, stream) == 4);
}

static void stream_over(void)
{
    RAW(SYS_fcntl, fileno(stream), F_SETFL, O_NONBLOCK); /* what it still has goes nowhere */
    fclose(stream);
    close_all();
}

static long do_fread(void)
{
    char buffer[16];
    return (long)fread(buffer, 1, four, stream);
}

static long do_fgets(void)
{
    char buffer[16];
    return fgets(buffer, (int)four + 1, stream) ? (long)strlen(buffer) : -1;
}

static char *line;

static long do_getline(void)
{
    static size_t size;
    return getline(&line, &size, stream);
}

CALL(do_fwrite, (long)fwrite(page, 1, four, stream))
CALL(do_fflush, fflush(stream))
CALL(do_fclose, fclose(stream))

static int number_of_letters(void)
{
    return (int)four - 1;
}

/* By these pointers: the headers have a macro or an inline function of the name. */
static int (*volatile by_getc_unlocked)(FILE *) = getc_unlocked;
static int (*volatile by_putc_unlocked)(int, FILE *) = putc_unlocked;

CALL(do_getc_unlocked, by_getc_unlocked(stream))
CALL(do_putc_unlocked, by_putc_unlocked('a', stream))
CALL(do_uflow, getc_unlocked(stream))
CALL(do_overflow, putc_unlocked('a', stream))

static long do_fscanf(void)
{
    char word[16];
    return fscanf(stream, "%15s", word) + (long)strlen(word);
}

static long do_fwscanf(void)
{
    wchar_t word[16];
    return fwscanf(stream, L"%15ls", word) + (long)wcslen(word);
}

CALL(do_fgetwc, (long)fgetwc(stream))

static long do_fgetws(void)
{
    wchar_t buffer[16];
    return fgetws(buffer, (int)four + 1, stream) ? (long)wcslen(buffer) : -1;
}

CALL(do_fputwc, (long)fputwc(L'a', stream))
CALL(do_fputws, fputws(L"abc", stream) < 0)
CALL(do_fwprintf, fwprintf(stream, L"%d", number_of_letters()))
CALL(do_dprintf, dprintf(out, "%s %d", "abc", number_of_letters()))
CALL(do_freopen, freopen("/dev/null", "w", stream) == stream)

int _IO_getc(FILE *file); /* what getc was in programs built with a glibc before 2.28 */
int _IO_putc(int c, FILE *file);

CALL(do_IO_getc, _IO_getc(stream))
CALL(do_IO_putc, _IO_putc('a', stream))
CALL(do_getw, getw(stream))
CALL(do_putw, putw(1, stream))

/* Writes what is in the buffer before it finds out that a pipe has no places. */
CALL(do_fseek, fseek(stream, 0, SEEK_SET))

static long do_rewind(void)
{
    rewind(stream);
    return ferror(stream);
}

static void stream_locked(void)
{
    stream_in();
    flockfile(stream);
}

static long do_flockfile(void)
{
    flockfile(stream);
    return 0;
}

DO(unlock_stream, funlockfile(stream))

static char words[64];

/* A shell has this end of it only by its number, and not the other one. */
static void pipe_for_shell(void)
{
    empty_pipe();
    EXPECT(RAW(SYS_fcntl, far, F_SETFD, FD_CLOEXEC) == 0);
}

static void words_from_pipe(void)
{
    pipe_for_shell();
    snprintf(words, sizeof words, "$(read x </proc/self/fd/%d; echo $x y)", in);
}

static long do_wordexp(void)
{
    wordexp_t found;
    int error = wordexp(words, &found, 0);
    long n = error ? -error : (long)found.we_wordc;
    if (!error)
        wordfree(&found);
    return n;
}

static void piped(void)
{
    pipe_for_shell();
    char command[64];
    snprintf(command, sizeof command, "read x </proc/self/fd/%d; exit 7", in);
    stream = popen(command, "r");
    EXPECT(stream);
}

CALL(do_pclose, WEXITSTATUS(pclose(stream)))

/* Sockets -------------------------------------------------------------------------------------- */

static struct sockaddr_un address;
static socklen_t address_size;

static int a_socket(int flags)
{
    return keep(RAW(SYS_socket, AF_UNIX, SOCK_STREAM | flags, 0));
}

static void listener(void)
{
    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    address_size = sizeof address;
    in = a_socket(0);
    EXPECT(bind(in, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
    EXPECT(getsockname(in, (struct sockaddr *)&address, &address_size) == 0);
    EXPECT(listen(in, 0) == 0);
}

DO(connect_raw, EXPECT(RAW(SYS_connect, a_socket(SOCK_NONBLOCK), &address, address_size) == 0))

static void full_listener(void)
{
    listener();
    connect_raw();
    out = a_socket(0);
}

DO(accept_raw, keep(RAW(SYS_accept4, in, NULL, NULL, 0)))
CALL(do_accept, gave(accept(in, NULL, NULL)))
CALL(do_accept4, gave(accept4(in, NULL, NULL, SOCK_CLOEXEC)))
CALL(do_connect, connect(out, (struct sockaddr *)&address, address_size))

static long do_recv(void)
{
    char buffer[16];
    return recv(in, buffer, four, 0);
}

static long do_recvfrom(void)
{
    char buffer[16];
    return recvfrom(in, buffer, four, 0, NULL, NULL);
}

CALL(do_recvmsg, recvmsg(in, &(struct msghdr){.msg_iov = &vector, .msg_iovlen = 1}, 0))

static long do_recvmmsg(void)
{
    struct mmsghdr header = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};
    return recvmmsg(in, &header, 1, 0, NULL);
}

static void timed_socket(void)
{
    struct timeval time = {0, TIMEOUT / 1000};
    empty_socket();
    EXPECT(setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
}

DO(shut, EXPECT(RAW(SYS_shutdown, far, SHUT_WR) == 0))
CALL(do_send, send(out, page, 1024, 0))
CALL(do_sendto, sendto(out, page, 1024, 0, NULL, 0))

static long do_sendmsg(void)
{
    struct iovec block = {page, 1024};
    struct msghdr header = {.msg_iov = &block, .msg_iovlen = 1};
    return sendmsg(out, &header, 0);
}

static long do_sendmmsg(void)
{
    struct iovec block = {page, 1024};
    struct mmsghdr header = {.msg_hdr = {.msg_iov = &block, .msg_iovlen = 1}};
    return sendmmsg(out, &header, 1, 0);
}

CALL(do_poll, poll((struct pollfd[4]){{in, POLLIN, 0}}, four - 3, 10000))
CALL(poll_timeout, poll((struct pollfd[4]){{in, POLLIN, 0}}, four - 3, TIMEOUT / MS))

static long do_ppoll(void)
{
    struct pollfd fds[4] = {{in, POLLIN, 0}};
    struct timespec late = {10, 0};
    return ppoll(fds, four - 3, &late, NULL);
}

static long do_select(void)
{
    fd_set set;
    struct timeval late = {10, 0};
    FD_ZERO(&set);
    FD_SET(in, &set);
    return select(in + 1, &set, NULL, NULL, &late);
}

CALL(select_timeout, select(0, NULL, NULL, NULL, &(struct timeval){0, TIMEOUT / 1000}))

static long do_pselect(void)
{
    fd_set set;
    struct timespec late = {10, 0};
    FD_ZERO(&set);
    FD_SET(in, &set);
    return pselect(in + 1, &set, NULL, NULL, &late, NULL);
}

static int epoll;

static void an_epoll(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    empty_pipe();
    epoll = keep(epoll_create1(0));
    EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, in, &event) == 0);
}

CALL(do_epoll_wait, epoll_wait(epoll, &(struct epoll_event){0}, 1, 10000))
CALL(epoll_wait_timeout, epoll_wait(epoll, &(struct epoll_event){0}, 1, TIMEOUT / MS))
CALL(do_epoll_pwait, epoll_pwait(epoll, &(struct epoll_event){0}, 1, 10000, NULL))

#if __GLIBC_PREREQ(2, 35)
static void an_epoll_of_ns(void)
{
    struct epoll_event event;
    struct timespec at_once = {0, 0};
    an_epoll();
    if (RAW(SYS_epoll_pwait2, epoll, &event, 1, &at_once, NULL, 0) < 0)
        skipped = "no epoll_pwait2";
}

static long do_epoll_pwait2(void)
{
    struct epoll_event event;
    struct timespec late = {10, 0};
    return epoll_pwait2(epoll, &event, 1, &late, NULL);
}
#endif

/* Names ---------------------------------------------------------------------------------------- */

static struct sockaddr_in server;

/* A name server of ours, unless names are not looked up there at all. */
static void name_server(void)
{
    FILE *file = fopen("/etc/nsswitch.conf", "r");
    char text[256];
    int dns = file == NULL;
    while (file && fgets(text, sizeof text, file))
        dns |= strncmp(text, "hosts:", 6) == 0 && strstr(text, "dns");
    if (file)
        fclose(file);
    if (!dns)
        skipped = "no dns in nsswitch.conf";
    socklen_t size = sizeof server;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    far = keep(RAW(SYS_socket, AF_INET, SOCK_DGRAM, 0));
    EXPECT(bind(far, (struct sockaddr *)&server, sizeof server) == 0);
    EXPECT(getsockname(far, (struct sockaddr *)&server, &size) == 0);
}

static long do_getaddrinfo(void)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    EXPECT(res_init() == 0);
    _res.nscount = 1;
    _res.nsaddr_list[0] = server;
    errno = 0;
    starting();
    int error = getaddrinfo("known.gotrace.test.", NULL, &hints, &found);
    long result =
        error ? error : (long)ntohl(((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr);
    if (!error)
        freeaddrinfo(found);
    return result;
}

/* Direct queries, with libc's state or one of the program's own. */

static unsigned char reply[512];

static void ask_server(struct __res_state *state)
{
    state->nscount = 1;
    state->nsaddr_list[0] = server;
    errno = 0;
    starting();
}

static long do_res_query(void)
{
    EXPECT(res_init() == 0);
    ask_server(&_res);
    return res_query("known.gotrace.test", C_IN, T_A, reply, sizeof reply);
}

static long do_res_search(void)
{
    EXPECT(res_init() == 0);
    ask_server(&_res);
    return res_search("known.gotrace.test.", C_IN, T_A, reply, sizeof reply);
}

static long do_res_send(void)
{
    unsigned char question[128];
    EXPECT(res_init() == 0);
    int n = res_mkquery(QUERY, "known.gotrace.test", C_IN, T_A, NULL, 0, NULL, question,
                        sizeof question);
    EXPECT(n > 12);
    ask_server(&_res);
    return res_send(question, n, reply, sizeof reply);
}

static long do_res_nquery(void)
{
    struct __res_state state = {.nscount = 0};
    EXPECT(res_ninit(&state) == 0);
    ask_server(&state);
    int n = res_nquery(&state, "known.gotrace.test", C_IN, T_A, reply, sizeof reply);
    res_nclose(&state);
    return n;
}

/* 10.1.2.3 */
static void answer(void)
{
    static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 1, 2, 3};
    static unsigned char packet[512];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    long n =
        RAW(SYS_recvfrom, far, packet, sizeof packet - sizeof record, MSG_DONTWAIT, &from, &size);
    EXPECT(n > 12);
    packet[2] |= 0x84;
    packet[3] = 0x80;
    packet[7] = 1;
    packet[11] = 0;
    long end = 12;
    while (packet[end])
        end += packet[end] + 1;
    end += 5;
    memcpy(packet + end, record, sizeof record);
    EXPECT(RAW(SYS_sendto, far, packet, end + (long)sizeof record, 0, &from, size) > 0);
}

/* What cannot be made to wait ------------------------------------------------------------------ */

/* A row that makes a call three times. */
#define THRICE(name, expression)      \
    static long name(void)            \
    {                                 \
        long result = 0;              \
        for (int i = 0; i < 3; i++) { \
            uint64_t start = now();   \
            result += (expression);   \
            noted(start, 0);          \
        }                             \
        return result;                \
    }

static char small[16];
static int number;

THRICE(read_file, read(in, small, four))
THRICE(write_file, write(out, page, four))
THRICE(pread_file, pread(in, small, four, 8))
THRICE(pwrite_file, pwrite(out, page, four, 8))
THRICE(readv_file, readv(in, &vector, 1))
THRICE(writev_file, writev(out, &vector, 1))
THRICE(preadv_file, preadv(in, &vector, 1, 8))
THRICE(pwritev_file, pwritev(out, &vector, 1, 8))
THRICE(preadv2_file, preadv2(in, &vector, 1, 8, 0))
THRICE(pwritev2_file, pwritev2(out, &vector, 1, 8, 0))
THRICE(open_file, gave(keep(open("/dev/null", read_only))))
THRICE(open_missing, open("/nonexistent/file", read_only))
THRICE(openat_file, gave(keep(openat(AT_FDCWD, "/dev/null", read_only))))
THRICE(creat_file, gave(keep(creat("/dev/null", 0600))))
THRICE(fsync_file, fsync(out))
THRICE(fdatasync_file, fdatasync(out))
THRICE(sync_file_range_file, sync_file_range(out, 0, 4, SYNC_FILE_RANGE_WRITE))
THRICE(msync_page, msync(NULL, 0, MS_SYNC))
THRICE(copy_file, copy_file_range(in, NULL, out, NULL, 4, 0))
THRICE(sendfile_file, sendfile(out, in, NULL, 4))
THRICE(flock_free, flock(in, LOCK_EX))
THRICE(getrandom_some, getrandom(small, four, 0))
THRICE(ioctl_file, ioctl(in, FIONREAD, &number))
THRICE(read_bad, read(-1, small, four))
THRICE(fcntl_setlkw, fcntl_posix())

static char *no_arguments[] = {"true", NULL};

static int spawn(void)
{
    pid_t pid;
    int result = posix_spawn(&pid, "/bin/true", NULL, NULL, no_arguments, no_arguments + 1);
    EXPECT(result == 0 && RAW(SYS_wait4, pid, NULL, 0, NULL) == pid);
    return result;
}

THRICE(spawn_call, spawn())

static DIR *dir;

static void a_directory(void)
{
    files();
    dir = opendir("/proc/self");
    EXPECT(dir);
}

THRICE(ftruncate_call, ftruncate(out, 4096))
THRICE(syncfs_call, syncfs(out))
THRICE(sync_call, (sync(), 0))
THRICE(readdir_call, readdir(dir) != NULL)
THRICE(fallocate_call, fallocate(out, 0, 0, 4096))
THRICE(getpwuid_call, getpwuid(0) != NULL)
THRICE(getgrgid_call, getgrgid(0) != NULL)
THRICE(getservbyname_call, getservbyname("no-such-service", "tcp") != NULL)
THRICE(getprotobyname_call, getprotobyname("no-such-protocol") != NULL)
THRICE(getspnam_call, getspnam("no-such-user") != NULL)
THRICE(innetgr_call, innetgr("no-such-group", NULL, NULL, NULL))

/* Nothing is to be waited for, or looked up. */
static long getaddrinfo_now(void)
{
    struct gaicb request = {.ar_name = "127.0.0.1"}, *list[] = {&request};
    int error = getaddrinfo_a(GAI_WAIT, list, 1, NULL);
    freeaddrinfo(request.ar_result);
    return error;
}

static long gai_suspend_none(void)
{
    const struct gaicb *none = NULL;
    return gai_suspend(&none, 1, NULL);
}

/* A socket has one name. Only a bind of a datagram socket to a name that the program chose is
 * shown. */
static long bind_new(void)
{
    static int n;
    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, 64, "gotrace-calls-%d-%d", getpid(), n++);
    return bind(keep(RAW(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)), (struct sockaddr *)&address,
                sizeof address);
}

THRICE(bind_call, bind_new())
THRICE(getaddrinfo_a_call, getaddrinfo_now())
THRICE(gai_suspend_call, gai_suspend_none())

static char there[] = "/tmp/gotrace-calls-XXXXXX", beside[64];

static void a_named_file(void)
{
    snprintf(there, sizeof there, "/tmp/gotrace-calls-XXXXXX");
    keep(mkstemp(there));
    snprintf(beside, sizeof beside, "%s-2", there);
}

static void named_file_over(void)
{
    RAW(SYS_unlinkat, AT_FDCWD, there, 0);
    RAW(SYS_unlinkat, AT_FDCWD, beside, 0);
    close_all();
}

static long new_file(void)
{
    char name[] = "/tmp/gotrace-calls-XXXXXX";
    int fd = keep(mkstemp(name));
    RAW(SYS_unlinkat, AT_FDCWD, name, 0);
    return gave(fd);
}

static long scan(int (*compare)(const struct dirent **, const struct dirent **))
{
    struct dirent **list;
    int n = scandir("/proc/self/net", &list, NULL, compare);
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    return n > 2;
}

static FTS *tree;

static void a_tree(void)
{
    static char *paths[] = {"/proc/self/attr", NULL};
    tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    EXPECT(tree);
}

DO(tree_over, fts_close(tree))

int umount2(const char *path, int flags); /* <sys/mount.h> and <linux/fs.h> do not go together */

static struct stat st;
static struct statx stx;
static struct statvfs vfs;
static struct statfs fs;

THRICE(mkstemp_call, new_file())
THRICE(link_call, link(there, beside))
THRICE(symlink_call, symlink("text", there))
THRICE(rename_call, rename(there, there))
THRICE(unlink_call, unlink("/tmp/gotrace-calls-none"))
THRICE(remove_call, remove("/tmp/gotrace-calls-none"))
THRICE(mkdir_call, mkdir(there, 0700))
THRICE(rmdir_call, rmdir(there))
THRICE(mkfifo_call, mkfifo(there, 0600))
THRICE(readlink_call, readlink(there, beside, sizeof beside))
THRICE(access_call, access(there, R_OK))
THRICE(chmod_call, chmod(there, 0600))
THRICE(fchmod_call, fchmod(out, 0600))
THRICE(chown_call, chown(there, getuid(), getgid()))
THRICE(stat_call, stat(there, &st))
THRICE(lstat_call, lstat(there, &st))
THRICE(fstat_call, fstat(out, &st))
THRICE(fstatat_call, fstatat(AT_FDCWD, there, &st, 0))
THRICE(statx_call, statx(AT_FDCWD, there, 0, STATX_SIZE, &stx))
THRICE(statfs_call, statfs(there, &fs))
THRICE(statvfs_call, statvfs(there, &vfs))
THRICE(fstatvfs_call, fstatvfs(out, &vfs))
THRICE(umount_call, umount2("/nonexistent", 0))
THRICE(opendir_call, closedir(opendir("/proc/self")))
THRICE(scandir_call, scan(alphasort))
THRICE(fts_read_call, fts_read(tree) != NULL)
THRICE(fadvise_call, posix_fadvise(out, 0, 0, POSIX_FADV_WILLNEED))
THRICE(readahead_call, readahead(out, 0, 4096))
THRICE(mlock_call, mlock(page, 1))
THRICE(klogctl_call, klogctl(10, NULL, 0) >= -1)
THRICE(break_call, tcsendbreak(out, 0))

/* What does not wait although it could. */
static long nothing_there(void)
{
    struct pollfd fds[4] = {{in, POLLIN, 0}};
    struct timeval zero = {0, 0};
    EXPECT(fcntl(in, F_SETFL, O_NONBLOCK) == 0);
    for (int i = 0; i < 1000; i++) {
        EXPECT(read(in, small, four) == -1 && errno == EAGAIN);
        EXPECT(recv(out, small, four, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        EXPECT(poll(fds, four - 3, 0) == 0);
        EXPECT(select(0, NULL, NULL, NULL, &zero) == 0);
        EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    }
    errno = 0;
    return 0;
}

#if __GLIBC_PREREQ(2, 38)
#define SCANF(name) "__isoc23_" name
#else
#define SCANF(name) "__isoc99_" name
#endif

#if __GLIBC_PREREQ(2, 34)
#define RES(name) "res_" name
#else
#define RES(name) "__res_" name
#endif

/*
 * Kinds of rows: S, a system call that waits; N, a wait for the network; Z, a sleep; X, a system
 * call that cannot wait, made three times; T, like X on a file that has a name.
 */
/* clang-format off: a row is a line */
#define S(...)                          \
    {                                   \
        __VA_ARGS__, .class = "syscall" \
    }
#define N(...)                          \
    {                                   \
        __VA_ARGS__, .class = "network" \
    }
#define Z(...)                        \
    {                                 \
        __VA_ARGS__, .class = "sleep" \
    }
#define X(...)                                                               \
    {                                                                        \
        __VA_ARGS__, .class = "syscall", .kind = COUNTED, .after = close_all \
    }
#define T(name, call)                                                        \
    {                                                                        \
        name, name, a_named_file, call, .class = "syscall", .kind = COUNTED, \
                                        .after = named_file_over             \
    }
static const struct row table[] = {
    S("read-pipe", "read", empty_pipe, do_read, put, .after = close_all),
    S("write-pipe", "write", full_pipe, do_write, take, .after = close_all),
    S("readv-pipe", "readv", empty_pipe, do_readv, put, .after = close_all),
    S("writev-pipe", "writev", full_pipe, do_writev, take, .after = close_all),
    S("preadv2-pipe", "preadv2", empty_pipe, do_preadv2, put, .after = close_all),
    S("pwritev2-pipe", "pwritev2", full_pipe, do_pwritev2, take, .after = close_all),
    S("read-pty", "read", pty, do_read, put, .after = close_all),
    S("read-eventfd", "read", an_eventfd, read_eventfd, put_event, .after = close_all),
    S("eventfd_read", "eventfd_read", an_eventfd, do_eventfd_read, put_event, .after = close_all),
    S("eventfd_write", "eventfd_write", full_eventfd, do_eventfd_write, take, .after = close_all),
    S("read-timerfd", "read", a_timerfd, read_timerfd, .after = close_all),
    S("read-interrupted", "read", interruptible, do_read, interrupt, .after = close_all),
    S("read-restarted", "read", restartable, do_read, interrupt_then_put, .after = close_all),
    S("read-handler-posts", "read", posting_handler, read_or_sem_wait, interrupt_then_put,
      .after = close_all, .threads = 2, .at_futex = 1),
    S("read-cancelled", "read", empty_pipe, do_read, cancel, .after = close_all),
    S("open-fifo", "open", fifo, open_read, open_writer, .after = fifo_over),
    S("open-fifo-write", "open", fifo, open_write, open_reader, .after = fifo_over),
    S("openat-fifo", "openat", fifo, open_at, open_writer, .after = fifo_over),
    S("openat2-fifo", "openat2", fifo_for_openat2, open_at2, open_writer, .after = fifo_over),
    S("creat-fifo", "creat", fifo, create, open_reader, .after = fifo_over),
    S("sendfile", "sendfile", file_to_pipe, do_sendfile, take, .after = close_all),
    S("splice", "splice", two_pipes, do_splice, put, .after = close_all),
    S("tee", "tee", two_pipes, do_tee, put, .after = close_all),
    S("flock", "flock", hold_flock, do_flock, give_flock, .after = close_all),
    S("lockf", "lockf", hold_record, do_lockf, give_record, .after = close_all),
    S("fcntl-setlkw", "fcntl", hold_record, fcntl_posix, give_record, .after = close_all),
    S("fcntl-ofd_setlkw", "fcntl", hold_record, fcntl_ofd, give_record, .after = close_all),
    S("wait", "wait", a_child, do_wait, put, .after = child_over),
    S("waitpid", "waitpid", a_child, do_waitpid, put, .after = child_over),
    S("wait3", "wait3", a_child, do_wait3, put, .after = child_over),
    S("wait4", "wait4", a_child, do_wait4, put, .after = child_over),
    S("waitid", "waitid", a_child, do_waitid, put, .after = child_over),
    S("sigwait", "sigwait", handler, do_sigwait, interrupt),
    S("sigwaitinfo", "sigwaitinfo", handler, do_sigwaitinfo, interrupt),
    S("sigtimedwait", "sigtimedwait", handler, do_sigtimedwait, interrupt),
    S("sigtimedwait-timeout", "sigtimedwait", handler, sigtimedwait_timeout, .release = NULL),
    S("sigsuspend", "sigsuspend", handler, do_sigsuspend, interrupt),
    S("sigpause", "__xpg_sigpause", handler, do_sigpause, interrupt),
    S("pause", "pause", handler, do_pause, interrupt),
    S("ppoll-signal", "ppoll", handler, ppoll_signal, interrupt),
    S("msgsnd", "msgsnd", msg_full, do_msgsnd, msg_take, .after = msg_over),
    S("msgrcv", "msgrcv", msg_queue, do_msgrcv, msg_put, .after = msg_over),
    S("semop", "semop", sem_set, do_semop, sem_up, .after = sem_set_over),
    S("semtimedop", "semtimedop", sem_set, do_semtimedop, sem_up, .after = sem_set_over),
    S("semtimedop-timeout", "semtimedop", sem_set, semtimedop_timeout, .after = sem_set_over),
    S("mq_send", "mq_send", mq_full, do_mq_send, mq_take, .after = close_all),
    S("mq_receive", "mq_receive", mq_new, do_mq_receive, mq_put, .after = close_all),
    S("mq_timedsend", "mq_timedsend", mq_full, do_mq_timedsend, mq_take, .after = close_all),
    S("mq_timedreceive", "mq_timedreceive", mq_new, do_mq_timedreceive, mq_put, .after = close_all),
    S("mq_timedreceive-timeout", "mq_timedreceive", mq_new, mq_timeout, .after = close_all),
    S("aio_suspend", "aio_suspend", aio_started, do_aio_suspend, put, .after = aio_over,
      .at_futex = 1),
    S("io_getevents", "io_getevents", io_started, do_io_getevents, put, .after = io_over),
    S("io_uring_enter", "io_uring_enter", a_ring, do_io_uring_enter, .after = close_all),
    S("fread", "fread", stream_in, do_fread, put, .after = stream_over),
    S("fgets", "fgets", stream_in, do_fgets, put, .after = stream_over),
    S("getline", "getline", stream_in, do_getline, put, .after = stream_over),
    S("fwrite", "fwrite", stream_direct, do_fwrite, take, .after = stream_over),
    S("fflush", "fflush", stream_dirty, do_fflush, take, .after = stream_over),
    S("getc_unlocked", "getc_unlocked", stream_in, do_getc_unlocked, put, .after = stream_over),
    S("__uflow", "__uflow", stream_in, do_uflow, put, .after = stream_over),
    S("putc_unlocked", "putc_unlocked", stream_direct, do_putc_unlocked, take,
      .after = stream_over),
    S("__overflow", "__overflow", stream_direct, do_overflow, take, .after = stream_over),
    S("fscanf", SCANF("fscanf"), stream_in, do_fscanf, put, .after = stream_over),
    S("fwscanf", SCANF("fwscanf"), stream_in, do_fwscanf, put, .after = stream_over),
    S("fgetwc", "fgetwc", stream_in, do_fgetwc, put, .after = stream_over),
    S("fgetws", "fgetws", stream_in, do_fgetws, put, .after = stream_over),
    S("fputwc", "fputwc", stream_direct, do_fputwc, take, .after = stream_over),
    S("fputws", "fputws", stream_direct, do_fputws, take, .after = stream_over),
    S("fwprintf", "fwprintf", stream_direct, do_fwprintf, take, .after = stream_over),
    S("dprintf", "dprintf", full_pipe, do_dprintf, take, .after = close_all, .no_cancel = 1),
    S("_IO_getc", "_IO_getc", stream_in, do_IO_getc, put, .after = stream_over),
    S("_IO_putc", "_IO_putc", stream_direct, do_IO_putc, take, .after = stream_over),
    S("getw", "getw", stream_in, do_getw, put, .after = stream_over),
    S("putw", "putw", stream_direct, do_putw, take, .after = stream_over),
    S("fseek", "fseek", stream_dirty, do_fseek, take, .after = stream_over),
    S("rewind", "rewind", stream_dirty, do_rewind, take, .after = stream_over),
    {"flockfile", "flockfile", stream_locked, do_flockfile, unlock_stream, .release = unlock_stream,
     .after = stream_over, .class = "sync", .foreign = 1},
    S("wordexp", "wordexp", words_from_pipe, do_wordexp, put, .after = close_all),
    S("freopen", "freopen", stream_dirty, do_freopen, take, .after = stream_over),
    S("pclose", "pclose", piped, do_pclose, put, .after = close_all),
    X("posix_spawn", "posix_spawn", files, spawn_call),
    S("fclose", "fclose", stream_dirty, do_fclose, take, .after = close_all),

    N("getaddrinfo", "getaddrinfo", name_server, do_getaddrinfo, answer, .after = close_all),
    N("res_query", RES("query"), name_server, do_res_query, answer, .after = close_all),
    N("res_search", RES("search"), name_server, do_res_search, answer, .after = close_all),
    N("res_send", RES("send"), name_server, do_res_send, answer, .after = close_all),
    N("res_nquery", RES("nquery"), name_server, do_res_nquery, answer, .after = close_all),
    N("accept", "accept", listener, do_accept, connect_raw, .after = result_over),
    N("accept4", "accept4", listener, do_accept4, connect_raw, .after = result_over),
    N("connect", "connect", full_listener, do_connect, accept_raw, .after = close_all),
    N("recv", "recv", empty_socket, do_recv, put, .after = close_all),
    N("recvfrom", "recvfrom", empty_socket, do_recvfrom, put, .after = close_all),
    N("recvmsg", "recvmsg", empty_socket, do_recvmsg, put, .after = close_all),
    N("recvmmsg", "recvmmsg", empty_socket, do_recvmmsg, put, .after = close_all),
    N("recv-timeout", "recv", timed_socket, do_recv, .after = close_all),
    N("recv-end", "recv", empty_socket, do_recv, shut, .after = close_all),
    N("send", "send", full_socket, do_send, take_all, .after = close_all),
    N("sendto", "sendto", full_socket, do_sendto, take_all, .after = close_all),
    N("sendmsg", "sendmsg", full_socket, do_sendmsg, take_all, .after = close_all),
    N("sendmmsg", "sendmmsg", full_socket, do_sendmmsg, take_all, .after = close_all),
    N("read-socket", "read", empty_socket, do_read, put, .after = close_all),
    N("write-socket", "write", full_socket, write_block, take_all, .after = close_all),
    N("readv-socket", "readv", empty_socket, do_readv, put, .after = close_all),
    N("writev-socket", "writev", full_socket, writev_block, take_all, .after = close_all),
    N("poll", "poll", empty_pipe, do_poll, put, .after = close_all),
    N("poll-timeout", "poll", empty_pipe, poll_timeout, .after = close_all),
    N("poll-interrupted", "poll", restartable, do_poll, interrupt, .after = close_all),
    N("ppoll", "ppoll", empty_pipe, do_ppoll, put, .after = close_all),
    N("select", "select", empty_pipe, do_select, put, .after = close_all),
    Z("select-timeout", "select", empty_pipe, select_timeout, .after = close_all),
    N("pselect", "pselect", empty_pipe, do_pselect, put, .after = close_all),
    N("epoll_wait", "epoll_wait", an_epoll, do_epoll_wait, put, .after = close_all),
    N("epoll_wait-timeout", "epoll_wait", an_epoll, epoll_wait_timeout, .after = close_all),
    N("epoll_pwait", "epoll_pwait", an_epoll, do_epoll_pwait, put, .after = close_all),
#if __GLIBC_PREREQ(2, 35)
    N("epoll_pwait2", "epoll_pwait2", an_epoll_of_ns, do_epoll_pwait2, put, .after = close_all),
#endif

    X("read-file", "read", files, read_file),
    X("write-file", "write", files, write_file),
    X("pread-file", "pread", files, pread_file),
    X("pwrite-file", "pwrite", files, pwrite_file),
    X("readv-file", "readv", files, readv_file),
    X("writev-file", "writev", files, writev_file),
    X("preadv-file", "preadv", files, preadv_file),
    X("pwritev-file", "pwritev", files, pwritev_file),
    X("preadv2-file", "preadv2", files, preadv2_file),
    X("pwritev2-file", "pwritev2", files, pwritev2_file),
    X("open-file", "open", files, open_file),
    X("open-missing", "open", files, open_missing),
    X("openat-file", "openat", files, openat_file),
    X("creat-file", "creat", files, creat_file),
    X("fsync", "fsync", files, fsync_file),
    X("fdatasync", "fdatasync", files, fdatasync_file),
    X("sync_file_range", "sync_file_range", files, sync_file_range_file),
    X("msync", "msync", files, msync_page),
    X("copy_file_range", "copy_file_range", files, copy_file),
    X("sendfile-file", "sendfile", files, sendfile_file),
    X("flock-free", "flock", files, flock_free),
    X("fcntl-free", "fcntl", files, fcntl_setlkw),
    X("getrandom", "getrandom", files, getrandom_some),
    X("ioctl", "ioctl", files, ioctl_file),
    X("read-bad", "read", files, read_bad),

    X("ftruncate", "ftruncate", files, ftruncate_call),
    X("syncfs", "syncfs", files, syncfs_call),
    X("sync", "sync", files, sync_call),
    X("readdir", "readdir", a_directory, readdir_call),
    X("fallocate", "fallocate", files, fallocate_call),
    N("getpwuid", "getpwuid", files, getpwuid_call, .kind = COUNTED, .after = close_all),
    N("getgrgid", "getgrgid", files, getgrgid_call, .kind = COUNTED, .after = close_all),

    X("posix_fadvise", "posix_fadvise", files, fadvise_call),
    X("readahead", "readahead", files, readahead_call),
    X("mlock", "mlock", files, mlock_call),
    X("klogctl", "klogctl", files, klogctl_call),
    X("tcsendbreak", "tcsendbreak", files, break_call),
    X("fchmod", "fchmod", files, fchmod_call),
    X("fstatvfs", "fstatvfs", files, fstatvfs_call),
    X("umount2", "umount2", files, umount_call),
    X("unlink", "unlink", files, unlink_call),
    X("bind", "bind", files, bind_call),
    X("remove", "remove", files, remove_call),
    X("opendir", "opendir", files, opendir_call),
    X("scandir", "scandir", files, scandir_call),
    X("mkstemp", "mkstemp", files, mkstemp_call),
    S("fts_read", "fts_read", a_tree, fts_read_call, .kind = COUNTED, .after = tree_over),
    T("link", link_call),
    T("symlink", symlink_call),
    T("rename", rename_call),
    T("mkdir", mkdir_call),
    T("rmdir", rmdir_call),
    T("mkfifo", mkfifo_call),
    T("readlink", readlink_call),
    T("access", access_call),
    T("chmod", chmod_call),
    T("chown", chown_call),
    T("stat", stat_call),
    T("lstat", lstat_call),
    T("fstatat", fstatat_call),
    T("statx", statx_call),
    X("fstat", "fstat", files, fstat_call),
    T("statfs", statfs_call),
    T("statvfs", statvfs_call),
    N("getservbyname", "getservbyname", files, getservbyname_call, .kind = COUNTED,
      .after = close_all),
    N("getprotobyname", "getprotobyname", files, getprotobyname_call, .kind = COUNTED,
      .after = close_all),
    N("getspnam", "getspnam", files, getspnam_call, .kind = COUNTED, .after = close_all),
    N("innetgr", "innetgr", files, innetgr_call, .kind = COUNTED, .after = close_all),
    N("getaddrinfo_a", "getaddrinfo_a", files, getaddrinfo_a_call, .kind = COUNTED,
      .after = close_all),
    N("gai_suspend", "gai_suspend", files, gai_suspend_call, .kind = COUNTED, .after = close_all),

    S("nothing-there", "", pipe_and_socket, nothing_there, .after = close_all, .kind = QUIET),
    S("ten", "read", a_timerfd, read_ten, .after = close_all, .kind = SPECIAL),
    N("ten-network", "poll", empty_pipe, poll_ten, .after = close_all, .kind = SPECIAL),
    S("long", "read", pipe_and_socket, read_or_recv, put_late, .after = close_all, .threads = 2,
      .kind = SPECIAL),
    S("end", "read", pipe_and_socket, read_or_recv, end_process, .threads = 2, .kind = SPECIAL),
    {.name = NULL},
};
/* clang-format on */

int main(int argc, char **argv)
{
    return rows_main(table, argc, argv);
}
