/*
 * What libc++ does, for systems without it: with -DLIBRARY its libc++.so.1, else a program with its
 * templates. The names, layouts and calls are those of LLVM 14 to 22.
 */
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace std
{
inline namespace __1
{

struct __thread_struct {
    __thread_struct();
    void **vectors;
};

void __libcpp_atomic_wait(const void *address, int value);

#ifdef LIBRARY

__thread_struct::__thread_struct() : vectors(static_cast<void **>(calloc(6, sizeof(void *))))
{
}

void __libcpp_atomic_wait(const void *address, int value)
{
    static const timespec two = {2, 0};
    syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, value, &two, 0, 0);
}
}
} // namespace std::__1

#else

template <class T> struct unique_ptr {
    T *it;
};

template <class... T> struct tuple;

template <class F> struct tuple<unique_ptr<__thread_struct>, F> {
    unique_ptr<__thread_struct> local;
    F f;
};

template <class T> __attribute__((noinline)) void *__thread_proxy(void *arg)
{
    static_cast<T *>(arg)->f();
    return nullptr;
}

template <class Poll, class Backoff>
static inline void __libcpp_thread_poll_with_backoff(Poll poll, Backoff backoff)
{
    while (!poll())
        backoff();
    asm volatile("");
}

struct __libcpp_timed_backoff_policy {
    __attribute__((noinline)) void operator()() const
    {
        static const timespec some = {0, 2000000};
        nanosleep(&some, nullptr);
        asm volatile("");
    }
};

static void __atomic_wait(const atomic<int> &flag)
{
    while (!flag.load())
        __libcpp_atomic_wait(&flag, 0);
}

struct barrier {
    __attribute__((noinline)) void arrive_and_wait()
    {
        __libcpp_thread_poll_with_backoff([this] { return ++rounds == 5; },
                                          __libcpp_timed_backoff_policy());
        asm volatile("");
    }
    int rounds = 0;
};
}
} // namespace std::__1

template <class F> static pthread_t start(F f)
{
    using all = std::__1::tuple<std::__1::unique_ptr<std::__1::__thread_struct>, F>;
    pthread_t thread;
    pthread_create(&thread, nullptr, std::__1::__thread_proxy<all>,
                   new all{{new std::__1::__thread_struct}, f});
    return thread;
}

static std::atomic<int> woken, changed;

__attribute__((noinline)) static void until_woken()
{
    std::__1::__atomic_wait(woken);
    asm volatile("");
}

/* Nobody wakes this thread. */
__attribute__((noinline)) static void until_changed()
{
    std::__1::__atomic_wait(changed);
    usleep(20000);
}

struct Functor {
    void operator()() const
    {
        std::__1::barrier().arrive_and_wait();
        asm volatile("");
    }
};

int main()
{
    pthread_t threads[] = {start(until_woken), start(&until_changed), start(Functor()),
                           start([] { usleep(1000); })};
    usleep(500000);
    changed = 1;
    usleep(1700000); /* beyond the end of the first 2 s */
    woken = 1;
    syscall(SYS_futex, &woken, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
}

#endif
