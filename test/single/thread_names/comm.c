/*
 * Threads that get names by files of the kernel's, in every way that programs write them. Prints of
 * each thread its number and the name that the kernel says at its end, or "-".
 */
#include "../../prog/program.h"

#include <stdatomic.h>
#include <sys/prctl.h>

enum { NAME = 16 };

static char program[NAME];
static sem_t go_on;

/* The kernel's own word. The name that the process began with is none of the thread's own. */
static void tell(pid_t tid)
{
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    name[n > 0 ? strcspn(name, "\n") : 0] = 0;
    printf("%d %s\n", (int)tid, strcmp(name, program) == 0 ? "-" : name);
}

static void write_to(const char *path, const char *name)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, name, strlen(name)) != (ssize_t)strlen(name))
        exit(1);
    close(fd);
}

static void print_to(const char *path, const char *name)
{
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%s", name) < 0 || fclose(file) != 0)
        exit(1);
}

static void *names_itself(void *name)
{
    write_to("/proc/thread-self/comm", name);
    tell(gettid());
    return NULL;
}

static void *prints_its_name(void *name)
{
    print_to("/proc/thread-self/comm", name);
    tell(gettid());
    return NULL;
}

/* Twice by the same descriptor, which stays open, in a directory that is open. */
static void *names_itself_again(void *name)
{
    int directory = open("/proc/thread-self", O_RDONLY | O_DIRECTORY);
    int fd = openat(directory, "comm", O_RDWR | O_CLOEXEC);
    if (write(fd, "before", 6) != 6 || write(fd, name, strlen(name)) < 0)
        exit(1);
    tell(gettid());
    return NULL;
}

/* Leaves it without a name. */
static void *names_itself_nothing(void *name)
{
    write_to("/proc/thread-self/comm", "before");
    return names_itself(name);
}

/* Files that name no thread, and a write that fails. */
static void *is_not_named(void *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/comm", (const char *)directory);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (write(fd, "file", 4) != 4)
        exit(1);
    close(fd);
    fd = open("/proc/1/comm", O_WRONLY); /* of another process: EINVAL, or no permission */
    if (fd >= 0 && write(fd, "other", 5) >= 0)
        exit(1);
    close(fd);
    tell(gettid());
    return NULL;
}

static _Atomic pid_t tid;

static void *is_named(void *unused)
{
    tid = gettid();
    while (sem_wait(&go_on) && errno == EINTR)
        ;
    tell(tid);
    return unused;
}

static void run(void *(*routine)(void *), void *arg)
{
    pthread_t thread;
    pthread_create(&thread, NULL, routine, arg);
    pthread_join(thread, NULL);
}

/* By another thread. */
static void run_named(void (*name)(const char *path, const char *name), const char *text)
{
    pthread_t thread;
    char path[64];
    tid = 0;
    pthread_create(&thread, NULL, is_named, NULL);
    while (!tid)
        sched_yield();
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
    name(path, text);
    sem_post(&go_on);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    char path[64];
    if (argc != 2)
        return 2;
    prctl(PR_GET_NAME, program);
    sem_init(&go_on, 0, 0);
    run(names_itself, "itself");
    run(names_itself, "with its line\n");
    run(names_itself, "longer than sixteen");
    run(prints_its_name, "printed");
    run(names_itself_again, "again");
    run(names_itself, "");
    run(names_itself_nothing, "\n");
    run(is_not_named, argv[1]);
    run_named(write_to, "by another");
    run_named(print_to, "printed by it");
    snprintf(path, sizeof path, "/proc/%d/comm", (int)getpid());
    write_to(path, "first");
    tell(getpid());
    return 0;
}
