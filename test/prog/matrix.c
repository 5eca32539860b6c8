/*
 * One process in which something happens, for integration/test_matrix.py:
 *   matrix CHILD WHEN DESCRIPTOR END
 * makes descriptors by DESCRIPTOR, then a child by CHILD, and ends by END; WHEN says how that
 * stands to its threads. The child makes such descriptors, too, and a thread, and ends the same
 * way: what executes this program anew runs `matrix child WHEN DESCRIPTOR END`. The output is the
 * same in each run: numbers of descriptors, what went through them, and how the child has ended.
 * The lines of a daemon come when they come.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/file.h>

#include "program.h"
#include "libc.h"

extern char **environ;

struct row {
    const char *name;
    void (*run)(void);
};

static const struct row *child, *when, *descriptor, *end;
static const char *role = "parent";
static bool may_make_threads;

/* A line at once, whole: processes share the stream. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, format);
    int n = snprintf(text, sizeof text, "%s: ", role);
    n += vsnprintf(text + n, sizeof text - (size_t)n - 1, format, ap);
    va_end(ap);
    text[n++] = '\n';
    if (write(1, text, (size_t)n) != n)
        _exit(99);
}

static void check(bool fine, const char *what)
{
    if (!fine) {
        say("%s: %s", what, strerror(errno));
        _exit(98);
    }
}

/* Threads ------------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *take_turns(void *arg)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void *call(void *arg)
{
    ((void (*)(void))arg)();
    return NULL;
}

/* The thread that held it may not be here. */
DO(forget_other_threads, pthread_mutex_init(&mutex, NULL))

static void in_thread(void *(*routine)(void *), void *arg)
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, routine, arg) == 0, "pthread_create");
    take_turns(NULL);
    pthread_join(thread, NULL);
}

/* Descriptors --------------------------------------------------------------------------------- */

static void pass(int in, int out)
{
    char buf[8] = "";
    check(write(in, "through", 7) == 7 && read(out, buf, 7) == 7, "pass");
    say("%s %d %d %s", descriptor->name, in, out, buf);
}

static void pass_copy(int (*copy)(int))
{
    int fds[2];
    check(pipe(fds) == 0, "pipe");
    int other = copy(fds[1]);
    check(other >= 0, "copy");
    pass(other, fds[0]);
}

static int copy_2(int fd)
{
    return dup2(fd, 40);
}

static int copy_3(int fd)
{
    return dup3(fd, 41, O_CLOEXEC);
}

static int copy_fcntl(int fd)
{
    return fcntl(fd, F_DUPFD, 42);
}

DO(by_dup, pass_copy(dup))
DO(by_dup2, pass_copy(copy_2))
DO(by_dup3, pass_copy(copy_3))
DO(by_fcntl, pass_copy(copy_fcntl))

static void by_pipe(void)
{
    int fds[2];
    check(pipe(fds) == 0, "pipe");
    pass(fds[1], fds[0]);
}

static void by_socketpair(void)
{
    int fds[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
    pass(fds[1], fds[0]);
}

static void by_eventfd(void)
{
    int fd = eventfd(0, 0);
    uint64_t n = 7;
    check(fd >= 0 && write(fd, &n, sizeof n) == sizeof n && read(fd, &n, sizeof n) == sizeof n,
          "eventfd");
    say("eventfd %d %d", fd, (int)n);
}

static void by_accept(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (void *)&at, sizeof at) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, (void *)&at, &size) == 0 &&
              connect(client, (void *)&at, sizeof at) == 0,
          "connect");
    pass(client, accept(listener, NULL, NULL));
}

static void by_open(void)
{
    int fd = open("/dev/zero", O_RDWR);
    char c = 1;
    check(fd >= 0 && write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1, "open");
    say("open %d %d", fd, c);
}

/* Locks on a file, one of which is held to the end. */
static void by_locks(void)
{
    struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = memfd_create("locked", 0);
    check(flock(fd, LOCK_EX) == 0 && flock(fd, LOCK_UN) == 0 && flock(fd, LOCK_EX) == 0, "flock");
    check(fcntl(fd, F_SETLKW, &record) == 0 && lockf(fd, F_ULOCK, 0) == 0, "fcntl");
    int refused = fcntl(fd, F_SETLKW, (void *)1);
    say("locks %d %d %d", fd, refused, errno);
}

static void all_but(const char *how)
{
    int fd = open("/dev/null", O_RDONLY);
    say("%s %d %d", how, fd, (int)fcntl(100, F_GETFD));
}

static void by_closefrom(void)
{
    closefrom(3);
    all_but("closefrom");
}

static void by_close_range(void)
{
    close_range(3, ~0u, 0);
    all_but("close_range");
}

static void by_closes(void)
{
    for (int fd = 3; fd < 20000; fd++)
        close(fd);
    all_but("closes");
}

static const struct row descriptors[] = {
    {"dup", by_dup},
    {"dup2", by_dup2},
    {"dup3", by_dup3},
    {"fcntl", by_fcntl},
    {"pipe", by_pipe},
    {"socketpair", by_socketpair},
    {"eventfd", by_eventfd},
    {"accept", by_accept},
    {"open", by_open},
    {"locks", by_locks},
    {"closefrom", by_closefrom},
    {"close_range", by_close_range},
    {"closes", by_closes},
    {NULL, NULL},
};

/* Ends ---------------------------------------------------------------------------------------- */

enum { RETURNED = 7, EXITED, UNDERSCORE_EXITED, QUICK_EXITED, DAEMON_ENDED };

DO(by_exit, exit(EXITED))
DO(by_underscore_exit, _exit(UNDERSCORE_EXITED))
DO(by_quick_exit, quick_exit(QUICK_EXITED))

static void by_signal(int number)
{
    kill(getpid(), number);
    while (true)
        pause();
}

DO(by_sigint, by_signal(SIGINT))
DO(by_sigterm, by_signal(SIGTERM))
DO(by_sigkill, by_signal(SIGKILL))

static void by_exec(void)
{
    execl("/proc/self/exe", "matrix", "end", (char *)NULL);
    check(false, "exec");
}

static void by_exec_of_another(void)
{
    execlp("sh", "sh", "-c", "echo another one; exit 12", (char *)NULL);
    check(false, "exec");
}

static void by_daemon(void)
{
    check(daemon(1, 1) == 0, "daemon");
    forget_other_threads();
    say("daemon");
    if (may_make_threads)
        in_thread(take_turns, NULL);
    exit(DAEMON_ENDED);
}

/* Of the parent, if it can; else as exit. */
static void by_return(void)
{
    if (strcmp(role, "parent") == 0)
        return;
    exit(RETURNED);
}

static const struct row ends[] = {
    {"return", by_return},
    {"exit", by_exit},
    {"_exit", by_underscore_exit},
    {"quick_exit", by_quick_exit},
    {"abort", abort},
    {"SIGINT", by_sigint},
    {"SIGTERM", by_sigterm},
    {"SIGKILL", by_sigkill},
    {"exec", by_exec},
    {"exec_other", by_exec_of_another},
    {"daemon", by_daemon},
    {NULL, NULL},
};

/* Children ------------------------------------------------------------------------------------ */

static void live_as_child(void)
{
    role = "child";
    forget_other_threads();
    descriptor->run();
    if (may_make_threads)
        in_thread(take_turns, NULL);
    end->run();
}

static const char **argv_of_child(void)
{
    static const char *argv[6];
    const char *fresh[] = {"matrix", "child", when->name, descriptor->name, end->name, NULL};
    memcpy(argv, fresh, sizeof fresh);
    return argv;
}

static void tell_status(int status)
{
    say("child ended by %s %d", WIFSIGNALED(status) ? "signal" : "status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void reap(pid_t pid)
{
    int status;
    check(pid > 0 && waitpid(pid, &status, 0) == pid, "waitpid");
    tell_status(status);
}

static void nobody(void)
{
}

static void by_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        live_as_child();
    reap(pid);
}

static void by_raw_clone(void)
{
    may_make_threads = false; /* libc does not know that it is a child */
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        live_as_child();
    reap(pid);
}

static int cloned(void *arg)
{
    (void)arg;
    live_as_child();
    return 0;
}

static void by_clone(void)
{
    static char stack[1 << 18] __attribute__((aligned(16)));
    may_make_threads = false;
    reap(clone(cloned, stack + sizeof stack, SIGCHLD, NULL));
}

static void become_self(void)
{
    execve("/proc/self/exe", (char *const *)argv_of_child(), environ);
    _exit(97);
}

static void by_vfork(void)
{
    argv_of_child();
    pid_t pid = vfork();
    if (pid == 0) {
        dup2(1, 50);
        close(50);
        become_self();
    }
    reap(pid);
}

static void by_self(void)
{
    pid_t pid = fork();
    if (pid == 0)
        become_self();
    reap(pid);
}

static void by_another(void)
{
    pid_t pid = fork();
    if (pid == 0)
        by_exec_of_another();
    reap(pid);
}

static void by_spawn(void)
{
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, 1, 50);
    check(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char *const *)argv_of_child(),
                      environ) == 0,
          "posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    reap(pid);
}

static void put_command(char *text, size_t size)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    check(n > 0, "readlink");
    self[n] = 0;
    snprintf(text, size, "'%s' child %s %s %s", self, when->name, descriptor->name, end->name);
}

static void by_system(void)
{
    char command[5000];
    put_command(command, sizeof command);
    tell_status(system(command));
}

static void by_popen(void)
{
    char command[5000], line[256];
    put_command(command, sizeof command);
    FILE *from = popen(command, "r");
    check(from, "popen");
    while (fgets(line, sizeof line, from))
        say("read %.*s", (int)strcspn(line, "\n"), line);
    tell_status(pclose(from));
}

static const struct row children[] = {
    {"none", nobody},
    {"fork", by_fork},
    {"vfork", by_vfork},
    {"spawn", by_spawn},
    {"system", by_system},
    {"popen", by_popen},
    {"raw_clone", by_raw_clone},
    {"clone", by_clone},
    {"self", by_self},
    {"another", by_another},
    {NULL, NULL},
};

/* When ---------------------------------------------------------------------------------------- */

static void live(void)
{
    descriptor->run();
    child->run();
}

static void live_and_end(void)
{
    live();
    end->run();
}

static void before_threads(void)
{
    live();
    in_thread(take_turns, NULL);
}

static void after_threads(void)
{
    in_thread(take_turns, NULL);
    live();
}

DO(in_second_thread, in_thread(call, (void *)live_and_end))

static void on_signal(int number)
{
    (void)number;
    live();
}

static void in_handler(void)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
}

static const struct row whens[] = {
    {"never", live},          {"before", before_threads},
    {"after", after_threads}, {"second", in_second_thread},
    {"handler", in_handler},  {NULL, NULL},
};

static const struct row *find(const struct row *rows, const char *name)
{
    for (; rows->name; rows++) {
        if (name && strcmp(rows->name, name) == 0)
            return rows;
    }
    fprintf(stderr, "no row %s\n", name ? name : "");
    exit(2);
}

/* `matrix` alone: the names of each place. */
static int list(void)
{
    const struct row *const tables[] = {children, whens, descriptors, ends};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const struct row *row = tables[i]; row->name; row++)
            printf("%s%s", row == tables[i] ? "" : " ", row->name);
        puts("");
    }
    return 0;
}

int main(int argc, char **argv)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (argc < 2)
        return list();
    if (strcmp(argv[1], "end") == 0) {
        role = "executed";
        say("end");
        return RETURNED;
    }
    if (argc < 5)
        return 2;
    bool is_child = strcmp(argv[1], "child") == 0;
    child = is_child ? NULL : find(children, argv[1]);
    when = find(whens, argv[2]);
    descriptor = find(descriptors, argv[3]);
    end = find(ends, argv[4]);
    may_make_threads = strcmp(when->name, "never") != 0 && strcmp(when->name, "handler") != 0;
    if (is_child)
        live_as_child();
    when->run();
    end->run();
    return RETURNED;
}
