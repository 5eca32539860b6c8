/*
 * A pool that takes pieces of different length from a queue, which was filled before its threads
 * began: filled NAME [half|more].
 *
 * pool: two threads; the main thread joins them. more: three threads. half: a piece takes half as
 * long.
 *
 * clients: no pool, but three threads that do twelve pieces each, all of one length.
 *
 * Prints how long that took, in ns.
 */
#include "../../prog/program.h"
enum { PIECES = 36, SHORTEST_US = 8000, STEP_US = 1500, STEPS = 9, STORE_US = 1000 };
enum { THREADS_MOST = 3, PIECES_OF_EACH = 12, CLIENT_US = 12000 };
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static int next_piece;
static bool half;
static __attribute__((noinline)) int take_piece(void)
{
    pthread_mutex_lock(&queue_lock);
    int piece = next_piece++;
    pthread_mutex_unlock(&queue_lock);
    return piece;
}
static __attribute__((noinline)) void fetch_piece(int piece)
{
    useconds_t us = SHORTEST_US + piece * 5 % STEPS * STEP_US;
    usleep(half ? us / 2 : us);
    __asm__ volatile("");
}
static __attribute__((noinline)) void store_piece(void)
{
    usleep(STORE_US);
    __asm__ volatile("");
}
static void *worker(void *arg)
{
    for (int piece; (piece = take_piece()) < PIECES;) {
        fetch_piece(piece);
        store_piece();
    }
    return arg;
}
static __attribute__((noinline)) void ask(void)
{
    usleep(CLIENT_US);
    __asm__ volatile("");
}
static void *client(void *arg)
{
    for (int i = 0; i < PIECES_OF_EACH; i++)
        ask();
    return arg;
}
int main(int argc, char **argv)
{
    bool clients = argc > 1 && strcmp(argv[1], "clients") == 0;
    bool more = argc > 2 && strcmp(argv[2], "more") == 0;
    int threads = clients || more ? 3 : 2;
    half = argc > 2 && strcmp(argv[2], "half") == 0;
    uint64_t begin = now_ns();
    RUN_THREADS(threads, clients ? client : worker, NULL);
    printf("%lu\n", now_ns() - begin);
    return 0;
}
