// Deadlocks of C++ locks: deadlocks_cxx mutex|recursive|shared|readers. Writes the ids of the
// threads that can never go on.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace
{
pthread_barrier_t held;

namespace bank
{
template <class Lock> struct accounts {
    static inline Lock one, other;
};
} // namespace bank

void say()
{
    dprintf(1, "%d\n", gettid());
}

template <class Lock> void transfer(Lock &from, Lock &to)
{
    std::lock_guard<Lock> first(from);
    say();
    pthread_barrier_wait(&held);
    std::lock_guard<Lock> second(to);
}

template <class Lock> void run()
{
    using accounts = bank::accounts<Lock>;
    std::thread one(transfer<Lock>, std::ref(accounts::one), std::ref(accounts::other));
    std::thread other(transfer<Lock>, std::ref(accounts::other), std::ref(accounts::one));
    one.join();
    other.join();
}

// Each has one for itself and wants to read in the other.
void read_other(std::shared_mutex &mine, std::shared_mutex &other)
{
    std::unique_lock<std::shared_mutex> first(mine);
    say();
    pthread_barrier_wait(&held);
    std::shared_lock<std::shared_mutex> second(other);
}

void run_readers()
{
    auto *one = new std::shared_mutex, *other = new std::shared_mutex;
    std::thread first(read_other, std::ref(*one), std::ref(*other));
    std::thread second(read_other, std::ref(*other), std::ref(*one));
    first.join();
    second.join();
}
} // namespace

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    pthread_barrier_init(&held, nullptr, 2);
    if (!strcmp(what, "mutex"))
        run<std::mutex>();
    else if (!strcmp(what, "recursive"))
        run<std::recursive_mutex>();
    else if (!strcmp(what, "shared"))
        run<std::shared_mutex>();
    else if (!strcmp(what, "readers"))
        run_readers();
    return 1;
}
