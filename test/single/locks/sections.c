/*
 * Threads that need a lock for less than a microsecond at a time, as those of a cache do: `sections
 * THREADS SHARDS OPERATIONS`. Each thread does so many operations. Each of these looks an entry up
 * and releases it, in a critical section each of one of SHARDS locks. Prints how many ns all that
 * took, for how many ns the locks were held in `look_up` and in `release`, and how many ns of CPU
 * time the process has used.
 */
#include "../../prog/program.h"

enum { SHARDS_MOST = 64, THREADS_MOST = 64, OUTSIDE = 600, LOOK_UP = 400, RELEASE = 100 };

static struct shard {
    _Alignas(128) pthread_mutex_t lock;
    uint32_t sum;
} cache[SHARDS_MOST];

struct worker {
    _Alignas(128) pthread_t thread;
    uint64_t looked_up_ns, released_ns;
};

static unsigned shards;
static long operations;

static uint32_t crunch(uint32_t s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        s = s * 1664525u + 1013904223u;
    return s;
}

__attribute__((noinline)) static void look_up(struct worker *w, struct shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    uint64_t since = now_ns();
    shard->sum = crunch(shard->sum, LOOK_UP);
    w->looked_up_ns += now_ns() - since;
    pthread_mutex_unlock(&shard->lock);
}

__attribute__((noinline)) static void release(struct worker *w, struct shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    uint64_t since = now_ns();
    shard->sum = crunch(shard->sum, RELEASE);
    w->released_ns += now_ns() - since;
    pthread_mutex_unlock(&shard->lock);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    uint32_t key = (uint32_t)(uintptr_t)w;
    for (long i = 0; i < operations; i++) {
        key = crunch(key, OUTSIDE);
        struct shard *shard = &cache[(key >> 16) % shards];
        look_up(w, shard);
        release(w, shard);
    }
    return arg;
}

int main(int argc, char **argv)
{
    static struct worker worker[THREADS_MOST];
    uint64_t looked_up_ns = 0, released_ns = 0;
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    shards = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    operations = argc > 3 ? atol(argv[3]) : 50000;
    for (int i = 0; i < SHARDS_MOST; i++)
        pthread_mutex_init(&cache[i].lock, NULL);
    uint64_t since = now_ns();
    for (int i = 0; i < threads; i++)
        pthread_create(&worker[i].thread, NULL, work, &worker[i]);
    for (int i = 0; i < threads; i++) {
        pthread_join(worker[i].thread, NULL);
        looked_up_ns += worker[i].looked_up_ns;
        released_ns += worker[i].released_ns;
    }
    printf("%llu %llu %llu %llu\n", (unsigned long long)(now_ns() - since),
           (unsigned long long)looked_up_ns, (unsigned long long)released_ns,
           (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
