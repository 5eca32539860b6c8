/*
 * A thread that goes on until a flag stops it, which it looks at once a round: until NAME [half].
 *
 * beats: sleeps in a function of its own, beside an importer. half: a row takes half as long.
 *
 * alike: beats, with one routine for both threads.
 *
 * reloads: loads a table with the lock held, for readers, and sleeps. half: a load takes half as
 * long.
 *
 * parts: no such thread, but two with as many rounds each, of about one length: both have work.
 *
 * Prints how long that took, in ns.
 */
#include "../../prog/program.h"
enum { ROWS = 50, ROW_US = 8000, STORE_US = 1000, BEAT_US = 20000 };
enum { READERS = 4, LOOK_UPS = 60, LOOK_UP_US = 1000, ANSWER_US = 2000 };
enum { LOAD_US = 20000, PAUSE_US = 15000, PARTS = 30, PART_US = 10000 };
static bool half;
static atomic_bool stop;
static pthread_rwlock_t table_lock;
static int table;
static long halved(long us)
{
    return half ? us / 2 : us;
}
static __attribute__((noinline)) void device(long us)
{
    usleep((useconds_t)us);
    __asm__ volatile("");
}
static __attribute__((noinline)) void import_row(void)
{
    device(halved(ROW_US));
    __asm__ volatile("");
}
static __attribute__((noinline)) void store_row(void)
{
    device(STORE_US);
    __asm__ volatile("");
}
static void *importer(void *arg)
{
    for (int i = 0; i < ROWS; i++) {
        import_row();
        store_row();
    }
    return arg;
}
static __attribute__((noinline)) void beat(void)
{
    device(BEAT_US);
    __asm__ volatile("");
}
static void *heartbeat(void *arg)
{
    while (!stop)
        beat();
    return arg;
}
static void *either(void *works)
{
    return works ? importer(works) : heartbeat(works);
}
static __attribute__((noinline)) void load_table(void)
{
    device(halved(LOAD_US));
    __asm__ volatile("");
}
static void *reloader(void *arg)
{
    while (!stop) {
        device(PAUSE_US);
        pthread_rwlock_wrlock(&table_lock);
        load_table();
        table++;
        pthread_rwlock_unlock(&table_lock);
    }
    return arg;
}
static void *reader(void *arg)
{
    for (int i = 0; i < LOOK_UPS; i++) {
        pthread_rwlock_rdlock(&table_lock);
        device(LOOK_UP_US);
        pthread_rwlock_unlock(&table_lock);
        device(ANSWER_US);
    }
    return arg;
}
static __attribute__((noinline)) void left_part(void)
{
    device(PART_US);
    __asm__ volatile("");
}
static __attribute__((noinline)) void right_part(void)
{
    device(PART_US + PART_US / 50);
    __asm__ volatile("");
}
static void *left(void *arg)
{
    for (int i = 0; i < PARTS; i++)
        left_part();
    return arg;
}
static void *right(void *arg)
{
    for (int i = 0; i < PARTS; i++)
        right_part();
    return arg;
}
/* Starts `goes_on` once and `works` n times. Says stop when the latter are done. */
static void run(void *(*goes_on)(void *), void *(*works)(void *), int n)
{
    pthread_t other;
    pthread_create(&other, NULL, goes_on, NULL);
    RUN_THREADS(n, works, &stop);
    stop = true;
    pthread_join(other, NULL);
}
int main(int argc, char **argv)
{
    pthread_rwlockattr_t writer_first;
    pthread_rwlockattr_init(&writer_first);
    pthread_rwlockattr_setkind_np(&writer_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&table_lock, &writer_first);
    half = argc > 2 && strcmp(argv[2], "half") == 0;
    uint64_t begin = now_ns();
    if (argc > 1 && strcmp(argv[1], "beats") == 0)
        run(heartbeat, importer, 1);
    else if (argc > 1 && strcmp(argv[1], "alike") == 0)
        run(either, either, 1);
    else if (argc > 1 && strcmp(argv[1], "reloads") == 0)
        run(reloader, reader, READERS);
    else
        run(right, left, 1);
    printf("%lu\n", now_ns() - begin);
    return 0;
}
