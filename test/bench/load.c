/*
 * Load for memcached, and how it answered. load <port> <connections> <seconds>: each connection is
 * a thread that sends a set in ten, else a get, and waits for the answer. Prints requests a second
 * and the 99th percentile of their latency in µs.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VALUE = 100, KEYS = 10000, SLOTS = 20000 };

static int port;
static uint64_t deadline;
static uint32_t latencies[SLOTS]; /* by µs; the last one and beyond */

static uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (s < 0 || connect(s, (void *)&to, sizeof to) != 0 ||
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
        perror("memcached");
        exit(1);
    }
    return s;
}

static size_t request(char *buf, size_t size, uint32_t random)
{
    uint32_t key = random / 16 % KEYS;
    if (random % 10)
        return (size_t)snprintf(buf, size, "get key-%u\r\n", key);
    return (size_t)snprintf(buf, size, "set key-%u 0 0 %d\r\n%0*d\r\n", key, VALUE, VALUE, 1);
}

static int is_whole(const char *answer, size_t n)
{
    return (n >= 5 && memcmp(answer + n - 5, "END\r\n", 5) == 0) ||
           (n >= 8 && memcmp(answer + n - 8, "STORED\r\n", 8) == 0);
}

static void ask(int s, uint32_t random)
{
    char buf[512];
    size_t n = request(buf, sizeof buf, random), got = 0;
    if (write(s, buf, n) != (ssize_t)n)
        exit(1);
    while (!is_whole(buf, got)) {
        ssize_t r = read(s, buf + got, sizeof buf - got);
        if (r <= 0)
            exit(1);
        got += (size_t)r;
    }
}

static void *client(void *arg)
{
    uint32_t random = (uint32_t)(uintptr_t)arg;
    int s = dial();
    for (uint64_t start = now(), end; start < deadline; start = end) {
        ask(s, random = random * 1664525 + 1013904223);
        end = now();
        uint64_t us = (end - start) / 1000;
        __atomic_fetch_add(&latencies[us < SLOTS ? us : SLOTS - 1], 1, __ATOMIC_RELAXED);
    }
    close(s);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    port = atoi(argv[1]);
    int n = atoi(argv[2]), seconds = atoi(argv[3]), p99 = 0;
    pthread_t thread[n];
    deadline = now() + (uint64_t)seconds * 1000000000u;
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, client, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    uint64_t sum = 0, below = 0;
    for (int i = 0; i < SLOTS; i++)
        sum += latencies[i];
    while (p99 < SLOTS - 1 && (below += latencies[p99]) * 100 < sum * 99)
        p99++;
    printf("%.0f %d\n", (double)sum / seconds, p99);
    return 0;
}
