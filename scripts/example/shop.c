/*
 * shop [--fixed]: a small server with a fault that `gotrace why` finds; scripts/demo shows it.
 *
 * Four workers take orders from a queue. Each order needs a price, which a pricing service on the
 * other end of a socket answers in 2 ms. Prices are kept in a cache.
 *
 * The fault: a worker asks the service while it holds the cache's lock, so that the others wait,
 * though the service can answer four at a time. --fixed: it asks before it takes the lock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, ORDERS = 400, ITEMS = 200, ANSWER_US = 2000, COPIES = 200 };

static bool fixed;

/* The pricing service: a process for each worker's connection. ------------------------------- */

static void serve_prices(int connection)
{
    int item;
    while (read(connection, &item, sizeof item) == sizeof item) {
        int cents = 100 + item * 7 % 900;
        usleep(ANSWER_US);
        if (write(connection, &cents, sizeof cents) != sizeof cents)
            break;
    }
}

static int connect_to_prices(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        abort();
    if (fork() == 0) {
        close(pair[0]);
        serve_prices(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    return pair[0];
}

static int ask_for_price(int service, int item)
{
    int cents = 0;
    if (write(service, &item, sizeof item) != sizeof item ||
        read(service, &cents, sizeof cents) != sizeof cents)
        abort();
    return cents;
}

/* The cache. --------------------------------------------------------------------------------- */

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static int cached[ITEMS]; /* cents; 0: not known */

static int price_of(int service, int item)
{
    pthread_mutex_lock(&cache_lock);
    int cents = cached[item];
    if (cents == 0 && fixed) {
        pthread_mutex_unlock(&cache_lock);
        cents = ask_for_price(service, item);
        pthread_mutex_lock(&cache_lock);
    }
    if (cents == 0)
        cents = ask_for_price(service, item);
    cached[item] = cents;
    pthread_mutex_unlock(&cache_lock);
    return cents;
}

/* The orders. -------------------------------------------------------------------------------- */

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static int next_order;
static _Atomic long total_cents, printed;

static int take_order(void)
{
    pthread_mutex_lock(&queue_lock);
    int order = next_order++;
    pthread_mutex_unlock(&queue_lock);
    return order;
}

/* Half of the orders are for an item that nobody has asked for yet. */
static int item_of(int order)
{
    return order % 2 ? order / 2 : order / 4;
}

/* Returns the length of the order's receipt. */
static int print_receipt(int order, int cents)
{
    char line[80];
    int length = 0;
    for (int copy = 0; copy < COPIES; copy++)
        length += snprintf(line, sizeof line, "order %d, copy %d: %d.%02d\n", order, copy,
                           cents / 100, cents % 100);
    return length;
}

static void *work(void *arg)
{
    int service = (int)(intptr_t)arg;
    for (int order; (order = take_order()) < ORDERS;) {
        int cents = price_of(service, item_of(order));
        total_cents += cents;
        printed += print_receipt(order, cents);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t worker[WORKERS];
    int service[WORKERS];
    struct timespec begin, end;
    fixed = argc > 1 && strcmp(argv[1], "--fixed") == 0;
    for (int i = 0; i < WORKERS; i++)
        service[i] = connect_to_prices();
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&worker[i], NULL, work, (void *)(intptr_t)service[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ms =
        (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
    printf("%d orders, %.2f, in %.0f ms\n", ORDERS, (double)total_cents / 100, ms);
    return 0;
}
