/*
 * Servers whose answers are late for a known reason: served MODE. A child process is the client of
 * an event loop, and prints what it saw: the number of requests, the median time until their answer
 * in ns, and how many answers took at least LATE_MS. Three requests are made to be late:
 *
 *   sleeps    the loop sleeps in render_page
 *   computes  the loop computes in sort_rows
 *   locks     the loop waits for cache_lock while refresher holds it in load_cache
 *   pooled    the loop hands requests to workers, one of which sleeps in render_page
 *   even      none is late
 *
 * When the client is done the loop ends, as a program with a result does.
 */
#include "program.h"
#include <arpa/inet.h>

enum { CONNECTIONS = 4, REQUESTS = 100, WORKERS = 3, LATE_MS = 50, LATE_TIMES = 3 };

static void take_ms(int ms)
{
    struct timespec length = {0, ms * 1000000L};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
}

/* The reasons ---------------------------------------------------------------------------------- */

static __attribute__((noinline)) void render_page(void)
{
    take_ms(LATE_MS);
}

static volatile uint64_t sorted;

static __attribute__((noinline)) void sort_rows(void)
{
    uint64_t end = now_ns() + LATE_MS * 1000000u;
    while (now_ns() < end) {
        for (int i = 0; i < 20000; i++)
            sorted += (uint64_t)i * sorted;
    }
}

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t stale, taken;

static __attribute__((noinline)) void load_cache(void)
{
    take_ms(LATE_MS);
}

static void *refresher(void *arg)
{
    for (int i = 0; i < LATE_TIMES; i++) {
        sem_wait(&stale);
        pthread_mutex_lock(&cache_lock);
        sem_post(&taken);
        load_cache();
        pthread_mutex_unlock(&cache_lock);
    }
    return arg;
}

static __attribute__((noinline)) void look_up_page(void)
{
    sem_post(&stale);
    sem_wait(&taken);
    pthread_mutex_lock(&cache_lock);
    pthread_mutex_unlock(&cache_lock);
}

static void nothing(void)
{
}

static void sleep_in_worker(void)
{
    render_page();
}

static const struct mode {
    const char *name;
    void (*late)(void);
} modes[] = {{"sleeps", render_page},
             {"computes", sort_rows},
             {"locks", look_up_page},
             {"pooled", sleep_in_worker},
             {"even", nothing}};

/* The loop ------------------------------------------------------------------------------------- */

static void handle(int fd, void (*late)(void))
{
    static int requests;
    if (++requests % (CONNECTIONS * REQUESTS / (LATE_TIMES + 1)) == 0 &&
        requests < CONNECTIONS * REQUESTS)
        late();
    if (write(fd, "", 1) != 1)
        _exit(1);
}

/* Requests that workers are to handle, by their connection; -1: no more come. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static int queue[CONNECTIONS * REQUESTS + WORKERS], queue_first, queue_end;

static void put(int fd)
{
    pthread_mutex_lock(&queue_lock);
    queue[queue_end++] = fd;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static int take(void)
{
    pthread_mutex_lock(&queue_lock);
    while (queue_first == queue_end)
        pthread_cond_wait(&queue_filled, &queue_lock);
    int fd = queue[queue_first++];
    pthread_mutex_unlock(&queue_lock);
    return fd;
}

static void *worker(void *arg)
{
    for (int fd; (fd = take()) >= 0;)
        handle(fd, sleep_in_worker);
    return arg;
}

/* False: the client has closed the connection. */
static bool answer(int fd, void (*late)(void))
{
    char request;
    if (read(fd, &request, 1) != 1)
        return false;
    if (late == sleep_in_worker)
        put(fd);
    else
        handle(fd, late);
    return true;
}

static void serve(int listener, void (*late)(void))
{
    int poll = epoll_create1(0), closed = 0;
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; i < CONNECTIONS; i++) {
        event.data.fd = accept(listener, NULL, NULL);
        epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
    }
    while (closed < CONNECTIONS) {
        int fd = epoll_wait(poll, &event, 1, -1) == 1 ? event.data.fd : -1;
        if (fd >= 0 && !answer(fd, late)) {
            epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL);
            close(fd);
            closed++;
        }
    }
    close(poll);
}

/* The client ----------------------------------------------------------------------------------- */

static int by_length(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void ask(const struct sockaddr_in *server)
{
    enum { N = CONNECTIONS * REQUESTS };
    static uint64_t took[N];
    int fd[CONNECTIONS], late = 0;
    char byte = 'x';
    take_ms(20); /* the server waits to accept */
    for (int i = 0; i < CONNECTIONS; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd[i], (const void *)server, sizeof *server) != 0)
            _exit(1);
    }
    for (int i = 0; i < N; i++) {
        take_ms(1);
        uint64_t since = now_ns();
        if (write(fd[i % CONNECTIONS], &byte, 1) != 1 || read(fd[i % CONNECTIONS], &byte, 1) != 1)
            _exit(1);
        took[i] = now_ns() - since;
        late += took[i] >= LATE_MS * 1000000u;
    }
    qsort(took, N, sizeof *took, by_length);
    printf("%d %llu %d\n", N, (unsigned long long)took[N / 2], late);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    const struct mode *mode = NULL;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread, workers[WORKERS];
    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++)
        mode = strcmp(argv[1], modes[i].name) == 0 ? &modes[i] : mode;
    if (!mode)
        return 2;
    sem_init(&stale, 0, 0);
    sem_init(&taken, 0, 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, sizeof address) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (void *)&address, &length) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0)
        ask(&address);
    if (mode->late == look_up_page)
        pthread_create(&thread, NULL, refresher, NULL);
    for (int i = 0; mode->late == sleep_in_worker && i < WORKERS; i++)
        pthread_create(&workers[i], NULL, worker, NULL);
    serve(listener, mode->late);
    for (int i = 0; mode->late == sleep_in_worker && i < WORKERS; i++)
        put(-1);
    for (int i = 0; mode->late == sleep_in_worker && i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    if (mode->late == look_up_page)
        pthread_join(thread, NULL);
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
