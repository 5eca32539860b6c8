/*
 * A small server with a fault: incidents deadlock|convoy|fsync|lost [REQUESTS]. Workers take
 * requests from a queue, move money between accounts, keep a journal and count. What goes wrong is
 * what gotrace-tutorial(7) shows how to find.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 4, ACCOUNTS = 2 };

static struct account {
    pthread_mutex_t lock;
    long balance;
} accounts[ACCOUNTS] = {{PTHREAD_MUTEX_INITIALIZER, 1000}, {PTHREAD_MUTEX_INITIALIZER, 1000}};

static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int queued, done, requests, journal;
static volatile bool finished;
static char line[1 << 16];
static const char *fault;

static bool has(const char *what)
{
    return strcmp(fault, what) == 0;
}

/* Two that go in opposite directions may each have the other's account. */
static void transfer(int from, int to)
{
    pthread_mutex_lock(&accounts[from].lock);
    usleep(has("deadlock") ? 1000 : 0);
    if (!has("deadlock"))
        pthread_mutex_unlock(&accounts[from].lock);
    pthread_mutex_lock(&accounts[to].lock);
    accounts[to].balance++;
    pthread_mutex_unlock(&accounts[to].lock);
    if (has("deadlock"))
        pthread_mutex_unlock(&accounts[from].lock);
}

/* The disk is waited for with the lock held. */
static void append(int request)
{
    pthread_mutex_lock(&journal_lock);
    if (pwrite(journal, line, 64, (off_t)request * 64) != 64)
        abort();
    if (has("fsync") && request % 8 == 0 && fsync(journal) != 0)
        abort();
    pthread_mutex_unlock(&journal_lock);
}

/* A line is made with the lock held, which all want all the time. */
static void count(int request)
{
    pthread_mutex_lock(&stats_lock);
    for (size_t i = 0; has("convoy") && i < sizeof line; i++)
        line[i] = (char)('a' + (i * (size_t)request) % 26);
    pthread_mutex_unlock(&stats_lock);
}

static int next_request(void)
{
    pthread_mutex_lock(&queue_lock);
    while (!queued)
        pthread_cond_wait(&queue_ready, &queue_lock);
    int request = --queued;
    pthread_mutex_unlock(&queue_lock);
    return request;
}

static void finish(void)
{
    pthread_mutex_lock(&queue_lock);
    if (++done == requests) {
        finished = true;
        pthread_cond_signal(&all_done);
    }
    pthread_mutex_unlock(&queue_lock);
}

static void *worker(void *arg)
{
    pthread_setname_np(pthread_self(), "worker");
    for (;;) {
        int request = next_request();
        transfer(request % 2, (request + 1) % 2);
        append(request);
        count(request);
        finish();
    }
    return arg;
}

static void put_all(void)
{
    done = 0;
    finished = false;
    for (int i = 0; i < requests; i++) {
        queued++;
        pthread_cond_signal(&queue_ready);
    }
}

static void serve(void)
{
    pthread_mutex_lock(&queue_lock);
    put_all();
    while (!finished)
        pthread_cond_wait(&all_done, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
}

/* The last one is done meanwhile, its signal finds nobody, and nobody looks again. */
static void serve_carelessly(void)
{
    pthread_mutex_lock(&queue_lock);
    put_all();
    pthread_mutex_unlock(&queue_lock);
    if (finished)
        return;
    usleep(500000);
    pthread_mutex_lock(&queue_lock);
    pthread_cond_wait(&all_done, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/incidents-XXXXXX";
    pthread_t thread;
    fault = argc > 1 ? argv[1] : "";
    requests = argc > 2 ? atoi(argv[2]) : 400;
    journal = mkstemp(name);
    unlink(name);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&thread, NULL, worker, NULL);
    serve();
    if (has("lost"))
        serve_carelessly();
    puts("done");
    return 0;
}
