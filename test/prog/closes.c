/*
 * Closes all descriptors from 3 up, as daemons do, opens files that get their numbers, and waits
 * below a function without unwind information, as JIT compilers make them. Prints what is in the
 * files.
 */
#include "program.h"
#include "libc.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void no_unwind_info(void (*function)(void));
#if defined(__x86_64__)
__asm__(".text\n"
        "no_unwind_info:\n"
        " push %rbp\n mov %rsp,%rbp\n sub $64,%rsp\n call *%rdi\n leave\n ret\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        "no_unwind_info:\n"
        " stp x29,x30,[sp,-16]!\n mov x29,sp\n sub sp,sp,64\n blr x0\n"
        " mov sp,x29\n ldp x29,x30,[sp],16\n ret\n");
#endif

static void lock(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *waiter(void *arg)
{
    no_unwind_info(lock);
    return arg;
}

static void wait_once(void)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, waiter, NULL);
    usleep(20000);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

int main(void)
{
    char in[9] = "", out[9] = "";
    FILE *a = tmpfile(), *b = tmpfile();
    wait_once();
    fputs("abcdefgh", a);
    rewind(a);
    dup2(fileno(a), 1000);
    dup2(fileno(b), 1001);
    close_range(3, 999, 0);
    int reader = dup(1000), writer = dup(1001);
    for (int i = 0; i < 3; i++)
        wait_once();
    ssize_t n = read(reader, in, 8);
    dprintf(writer, "hello");
    ssize_t m = pread(writer, out, 8, 0);
    printf("%zd %s %zd %s\n", n, in, m, out);
}
