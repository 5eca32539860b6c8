/*
 * Heaps whose live bytes are known, by the sum of malloc_usable_size over the blocks it holds.
 *
 * heap curve           up and down in steps of half a megabyte, with a pause at each: a line
 *                      "step LIVE" each
 * heap storm N ROUNDS  N threads allocate, hand blocks to each other, reallocate and free
 * heap kinds           every allocating function, every alignment; failures too
 * heap copies          strings, by what allocates for them
 * heap sized          blocks given back by free_sized and free_aligned_sized, half of them; a line
 *                      "skip WHY" where there are none
 * heap weakly         the same by weak references, or by free where those lead nowhere
 * heap spikes N        a large block comes and goes N times without a pause
 * heap fork            a child with a second thread of its own, which allocates some more
 * heap numbers         one thread allocates while another one opens files: a line "number FD WRONG"
 * heap late            allocations in destructors of thread-specific data, and after main
 *
 * The last line is "end LIVE": the live bytes when the process ends.
 */
#include "program.h"
#include "libc.h"

#include <malloc.h>

static _Atomic long live;
static char output[4096]; /* stdio's: it allocates none then */

static void *took(void *p)
{
    if (p)
        live += (long)malloc_usable_size(p);
    return p;
}

static void give(void *p)
{
    if (p)
        live -= (long)malloc_usable_size(p);
    errno = 4711;
    free(p);
    if (errno != 4711)
        puts("free changed errno");
}

static void *again(void *p, size_t size)
{
    long had = p ? (long)malloc_usable_size(p) : 0;
    void *fresh = realloc(p, size);
    if (fresh || size == 0)
        live += (fresh ? (long)malloc_usable_size(fresh) : 0) - had;
    return fresh;
}

static void line(const char *what)
{
    printf("%s %ld\n", what, live);
    fflush(stdout);
}

/* curve -------------------------------------------------------------------------------------- */

enum { STEPS = 24, BLOCKS = 128, BLOCK = 4096 };
static void *held[STEPS][BLOCKS];

static void curve(void)
{
    for (int i = 0; i < STEPS; i++) {
        for (int b = 0; b < BLOCKS; b++)
            held[i][b] = memset(took(malloc(BLOCK)), 1, BLOCK);
        line("step");
        usleep(3000);
    }
    for (int i = STEPS - 1; i >= 5; i--) {
        for (int b = 0; b < BLOCKS; b++)
            give(held[i][b]);
        line("step");
        usleep(3000);
    }
    give(took(malloc(1000))); /* far below any granularity */
    took(malloc(3));
}

/* storm -------------------------------------------------------------------------------------- */

enum { SLOTS = 512 };
static pthread_barrier_t together;
static long rounds;
static _Atomic(void *) shared[SLOTS];

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static void *storm_thread(void *arg)
{
    uint32_t state = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
    long balance = 0; /* counted here, so that the storm is not one of `live` */
    pthread_barrier_wait(&together);
    for (long i = 0; i < rounds; i++) {
        uint32_t r = next_random(&state);
        void *p = r & 0x800000 ? malloc(r % 3000) : NULL;
        balance += p ? (long)malloc_usable_size(p) : 0;
        p = atomic_exchange(&shared[(r >> 10) % SLOTS], p);
        if (p && (r & 0x700000) == 0) {
            balance -= (long)malloc_usable_size(p);
            p = realloc(p, r % 20000 + 1);
            balance += (long)malloc_usable_size(p);
        }
        if (p) {
            balance -= (long)malloc_usable_size(p);
            free(p);
        }
    }
    live += balance;
    return NULL;
}

static void storm(size_t n)
{
    pthread_t thread[64];
    pthread_barrier_init(&together, NULL, (unsigned)n);
    for (size_t i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, storm_thread, (void *)(i + 1));
    /* A thread that ends while another one waits for it has its stack taken: 16 bytes of
     * libunwind's. */
    for (size_t i = 0; i < n; i++) {
        while (pthread_tryjoin_np(thread[i], NULL) != 0)
            usleep(1000);
    }
}

/* kinds -------------------------------------------------------------------------------------- */

static void *volatile kept[64];
static int kept_n;

static void keep(const char *what, void *p)
{
    printf("%s %s\n", what, p ? "yes" : strerrorname_np(errno));
    kept[kept_n++] = took(p);
}

static void kinds(void)
{
    void *volatile p = NULL;
    volatile size_t huge = SIZE_MAX / 2;
    keep("malloc", malloc(100));
    keep("malloc huge", malloc(huge));
    keep("calloc", calloc(10, 10));
    keep("calloc huge", calloc(huge, 3));
    keep("memalign", memalign(4096, 100));
    keep("aligned_alloc", aligned_alloc(256, 512));
    keep("valloc", valloc(100));
    printf("posix_memalign %d\n", posix_memalign((void **)&p, 1024, 100));
    keep("posix_memalign", p);
    p = NULL;
    printf("posix_memalign %d\n", posix_memalign((void **)&p, 3, 100));
    printf("posix_memalign %d\n", posix_memalign((void **)&p, 64, huge));
    kept[kept_n++] = again(NULL, 300000);
    p = took(malloc(10));
    errno = 0;
    printf("realloc huge %d", again(p, huge) == NULL);
    printf(" %s\n", strerrorname_np(errno));
    kept[kept_n++] = again(p, 1 << 20);
    p = took(malloc(10));
    kept[kept_n++] = again(p, 0);
    long had = 0;
    p = reallocarray(NULL, 100, 10);
    live += (long)malloc_usable_size(p);
    had = (long)malloc_usable_size(p);
    p = reallocarray(p, 1000, 10);
    live += (long)malloc_usable_size(p) - had;
    kept[kept_n++] = p;
    printf("reallocarray huge %d", reallocarray(p, huge, 3) == NULL);
    printf(" %s\n", strerrorname_np(errno));
    kept[kept_n++] = took(strdup("from inside libc"));
    kept[kept_n++] = took(strndup("a part of that", 6));
    kept[kept_n++] = took(strndup("and one that stays", huge));
    for (int i = 0; i < kept_n; i += 2) {
        give(kept[i]);
        kept[i] = NULL;
    }
    free(NULL);
    line("step");
}

static void copies(void)
{
    enum { COPIES = 100 };
    for (int i = 0; i < COPIES; i++) {
        give(took(strdup("given back")));
        give(took(strndup("given back, too", 5)));
        took(strdup("this one stays"));
    }
}

void free_sized(void *p, size_t size) __attribute__((weak));
void free_aligned_sized(void *p, size_t alignment, size_t size) __attribute__((weak));

static void sized(void (*give_sized)(void *, size_t), void (*give_aligned)(void *, size_t, size_t))
{
    enum { PAIRS = 100, ALIGNMENT = 64 };
    if (!give_sized || !give_aligned) {
        puts("skip: no free_sized in this libc (glibc 2.43), nor in its allocator");
        return;
    }
    for (size_t size = ALIGNMENT; size <= PAIRS * ALIGNMENT; size += ALIGNMENT) {
        took(malloc(size));
        took(aligned_alloc(ALIGNMENT, size));
        void *p = took(malloc(size)), *q = took(aligned_alloc(ALIGNMENT, size));
        live -= (long)malloc_usable_size(p) + (long)malloc_usable_size(q);
        errno = 4711;
        give_sized(p, size);
        give_aligned(q, ALIGNMENT, size);
        if (errno != 4711)
            puts("one changed errno");
    } /* not NULL, too: jemalloc 5.3.1 would give that out */
}

static void free_any_sized(void *p, size_t size)
{
    (void)size;
    free(p);
}

static void free_any_aligned(void *p, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    free(p);
}

/* pvalloc, which some allocators leave to libc's, where it makes blocks that they cannot free. */
static void pages(void)
{
    keep("pvalloc", pvalloc(5000));
}

/* the rest ----------------------------------------------------------------------------------- */

static void spikes(long n)
{
    for (long i = 0; i < n; i++) {
        void *volatile p = took(malloc(10 << 20));
        give(p);
    }
    took(malloc(1 << 20));
}

static _Atomic int opened;

static void *spike(void *arg)
{
    while (!opened)
        give(took(malloc(1 << 20)));
    return arg;
}

/* The lowest free number never changes: no other thread opens anything. */
static void numbers(void)
{
    enum { TIMES = 300000 };
    pthread_t thread;
    int lowest = dup(0), wrong = 0;
    close(lowest);
    pthread_create(&thread, NULL, spike, NULL);
    for (int i = 0; i < TIMES; i++) {
        int fd = dup(0);
        wrong += fd != lowest;
        close(fd);
    }
    opened = 1;
    pthread_join(thread, NULL);
    printf("number %d %d\n", lowest, wrong);
}

static void *more(void *arg)
{
    took(malloc(300000));
    return arg;
}

static void forked(void)
{
    took(malloc(200000));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, more, NULL);
        pthread_join(thread, NULL);
        return;
    }
    waitpid(pid, NULL, 0);
}

static pthread_key_t key;

static void destructor(void *p)
{
    static __thread int calls;
    give(p);
    if (++calls < 6)
        pthread_setspecific(key, took(malloc(1000)));
}

static void *with_destructor(void *arg)
{
    pthread_setspecific(key, took(malloc(5000)));
    return arg;
}

static void after_main(void)
{
    took(malloc(12345));
    line("end");
}

static void late(void)
{
    pthread_t thread;
    pthread_key_create(&key, destructor);
    for (int i = 0; i < 50; i++) {
        pthread_create(&thread, NULL, with_destructor, NULL);
        pthread_join(thread, NULL);
    }
    atexit(after_main);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, output, _IOFBF, sizeof output);
    if (strcmp(what, "curve") == 0)
        curve();
    else if (strcmp(what, "storm") == 0)
        rounds = atol(argv[3]), storm((size_t)atol(argv[2]));
    else if (strcmp(what, "kinds") == 0)
        kinds();
    else if (strcmp(what, "copies") == 0)
        copies();
    else if (strcmp(what, "pages") == 0)
        pages();
    else if (strcmp(what, "sized") == 0)
        sized((void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized"),
              (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized"));
    else if (strcmp(what, "weakly") == 0)
        sized(free_sized ? free_sized : free_any_sized,
              free_aligned_sized ? free_aligned_sized : free_any_aligned);
    else if (strcmp(what, "spikes") == 0)
        spikes(atol(argv[2]));
    else if (strcmp(what, "numbers") == 0)
        numbers();
    else if (strcmp(what, "fork") == 0)
        forked();
    else if (strcmp(what, "late") == 0)
        late();
    if (strcmp(what, "late") != 0)
        line("end");
    return 0;
}
