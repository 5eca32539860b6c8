/*
 * No Python 3.9: has its symbols, and one frame, of a function without a name. Its interpreter
 * calls code made at run time, which sleeps.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WORDS = 512 };
uint64_t _PyRuntime[4096], PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8];
unsigned long Py_Version = 0x030900f0;
static uint64_t thread[WORDS], frame[WORDS];

int Py_IsInitialized(void)
{
    return 1;
}

void *PyGILState_GetThisThreadState(void)
{
    return thread;
}

static void sleep_a_bit(void)
{
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
}

__attribute__((noinline)) int _PyEval_EvalFrameDefault(void (*made)(void (*)(void)))
{
    made(sleep_a_bit);
    return 0;
}

int main(void)
{
    /* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    void *made =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_key_t key;
    pthread_key_create(&key, NULL); /* as it does before anything else */
    memcpy(made, code, sizeof code);
    for (int i = 0; i < WORDS; i++)
        thread[i] = (uintptr_t)frame;
    return _PyEval_EvalFrameDefault((void (*)(void (*)(void)))made);
}
