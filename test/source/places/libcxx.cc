/*
 * Threads that wait by libc++: at a barrier, for an atomic variable and so on. Prints nothing.
 * Each wait is long because the thread that ends it comes late.
 */
#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

enum { THREADS = 3, ROUNDS = 3 };

static std::barrier<> meeting(THREADS);
static std::atomic<int> flag;
static std::mutex mutex;

static void late(int ms)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

__attribute__((noinline)) static void meet()
{
    meeting.arrive_and_wait();
}

static void worker(int number)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % THREADS == number)
            late(60);
        meet();
    }
}

__attribute__((noinline)) static void until_set()
{
    flag.wait(0);
}

static void setter()
{
    late(4500); /* longer than libc++ lets a thread sleep at once */
    flag.store(1);
    flag.notify_all();
}

__attribute__((noinline)) static void locked()
{
    std::lock_guard<std::mutex> lock(mutex);
}

struct Locker {
    void operator()() const
    {
        locked();
    }
};

static void meetings()
{
    std::thread all[THREADS];
    for (int i = 0; i < THREADS; i++)
        all[i] = std::thread(worker, i);
    for (auto &t : all)
        t.join();
}

int main()
{
    meetings();
    std::thread one(setter);
    until_set();
    one.join();
    mutex.lock();
    std::thread locker{Locker()};
    late(50);
    mutex.unlock();
    locker.join();
    std::thread lambda([] { late(10); });
    lambda.join();
    return std::async(std::launch::async, [] { return late(10), 0; }).get();
}
