/*
 * Its second thread waits for ever, and the process ends after so many µs as Go's do: without
 * libc. Names take a while to be looked up, of a stack with inlined functions of C++.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cstdlib>
#include <regex>

static void *nothing(void *arg)
{
    pause();
    return arg;
}

int main(int, char **argv)
{
    std::regex digits("[0-9]+");
    pthread_t t;
    struct timespec short_time = {0, atoi(argv[1]) * 1000L};
    usleep(20); // with a stack
    pthread_create(&t, NULL, nothing, NULL);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL);
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "0"(SYS_exit_group), "D"(std::regex_match(argv[1], digits) ? 0 : 1)
                 : "rcx", "r11", "memory");
}
