/*
 * One thread initialises two statics of functions, one after the other, while the other threads
 * wait for them. Prints how long its constructors took, and how long all of it took, in ms.
 */
#include <cstdio>
#include <pthread.h>
#include <time.h>

enum { THREADS = 4, BLOCKS = 5, USES = 10 };

static pthread_barrier_t begun;
static double constructed;

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

__attribute__((noinline)) static void nap(long ms)
{
    timespec t = {0, ms * 1000000};
    nanosleep(&t, nullptr);
}

__attribute__((noinline)) static void read_block()
{
    nap(30);
}

struct Words {
    Words()
    {
        double from = now();
        pthread_barrier_wait(&begun); /* the others come now */
        for (int i = 0; i < BLOCKS; i++)
            read_block();
        constructed += now() - from;
    }
};

__attribute__((noinline)) static void english()
{
    static Words words;
}

__attribute__((noinline)) static void german()
{
    static Words words;
}

__attribute__((noinline)) static void look_up()
{
    nap(2);
}

static void *reader(void *first)
{
    void (*const language[])() = {english, german};
    for (auto its : language) {
        if (!first)
            pthread_barrier_wait(&begun);
        its();
        for (int i = 0; i < USES; i++)
            look_up();
    }
    return nullptr;
}

int main()
{
    pthread_t t[THREADS];
    double from = now();
    pthread_barrier_init(&begun, nullptr, THREADS);
    for (pthread_t &it : t)
        pthread_create(&it, nullptr, reader, &it == t ? &begun : nullptr);
    for (pthread_t &it : t)
        pthread_join(it, nullptr);
    printf("%.1f %.1f\n", constructed, now() - from);
}
