/*
 * No Python: has the names of its symbols, and at random what they lead to. VERSION is what it
 * says it is, OFFSETS what that version publishes. Prints how often it was asked for its thread.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
enum { WORDS = 512 };
uint64_t _PyRuntime[4096] = {OFFSETS}, PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8];
unsigned long Py_Version = VERSION;
static uint64_t *pool, *gone;
static unsigned seed = 1;
static int asked;
int Py_IsInitialized(void)
{
    return 1;
}
void *PyGILState_GetThisThreadState(void)
{
    asked++;
    return pool;
}
__attribute__((noinline)) int _PyEval_EvalFrameDefault(int n)
{
    volatile uint64_t mark[8];
    struct timespec nothing = {0, 1};
    for (int i = 0; i < WORDS; i++) {
        uint64_t words[] = {0,
                            1,
                            rand_r(&seed),
                            (uintptr_t)(pool + rand_r(&seed) % WORDS),
                            (uintptr_t)(pool + rand_r(&seed) % WORDS),
                            (uintptr_t)pool + 3,
                            (uintptr_t)(gone + rand_r(&seed) % WORDS),
                            UINTPTR_MAX - 7,
                            (uintptr_t)PyCode_Type,
                            (uintptr_t)PyUnicode_Type,
                            (uintptr_t)PyBytes_Type,
                            0x6400000004,
                            (uintptr_t)&mark[rand_r(&seed) % 8],
                            1ull << 63};
        pool[i] = words[rand_r(&seed) % (sizeof words / sizeof *words)];
    }
    for (int i = 0; i < 8; i++)
        mark[i] = (uintptr_t)(pool + rand_r(&seed) % WORDS);
    if (n)
        return _PyEval_EvalFrameDefault(n - 1) + (int)mark[0];
    nanosleep(&nothing, NULL);
    return (int)mark[1];
}
int main(void)
{
    pthread_key_t key;
    pthread_key_create(&key, NULL); /* as it does before anything else */
    pool = mmap(NULL, 2 * sizeof *pool * WORDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    gone = pool + WORDS;
    munmap(gone, sizeof *gone * WORDS);
    for (int i = 0; i < 3000; i++)
        seed += (unsigned)_PyEval_EvalFrameDefault(3) & 1;
    printf("%d\n", asked);
    return 0;
}
