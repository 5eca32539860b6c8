// The waits that C++20 brought; libstdc++ makes futex calls of them. `join` alone is a call of
// libpthread.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace std::chrono_literals;

static const int ROUNDS = 50, THREADS = 4;

// Two threads hand a turn to each other.
static int ping_pong()
{
    std::atomic<int> turn{0};
    int sum = 0;
    auto player = [&](int me) {
        for (int i = 0; i < ROUNDS; i++) {
            turn.wait(1 - me);
            sum += i;
            if (i % 10 == 0)
                std::this_thread::sleep_for(1ms);
            turn.store(1 - me);
            turn.notify_one();
        }
    };
    std::jthread a(player, 0), b(player, 1);
    a.join();
    b.join();
    return sum;
}

// Returns once the thread whose number is put there sleeps.
static void until_asleep(const std::atomic<int> &tid)
{
    std::string line;
    do {
        std::this_thread::sleep_for(1ms);
        std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/stat"), line);
    } while (!tid || line.find(") S ") == line.npos);
}

// One that libstdc++ cannot wait on directly: eight bytes.
static long wide()
{
    std::atomic<long> value{0};
    std::atomic<int> tid{0};
    std::jthread waiter([&] {
        tid = gettid();
        value.wait(0);
    });
    until_asleep(tid);
    value = 7;
    value.notify_all();
    waiter.join();
    return value;
}

static int semaphores()
{
    std::counting_semaphore<2> slots(2);
    std::binary_semaphore done(0);
    std::atomic<int> inside{0}, most{0}, left{THREADS}, late{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < THREADS; i++)
            threads.emplace_back([&] {
                for (int k = 0; k < 5; k++) {
                    slots.acquire();
                    int now = ++inside, seen = most;
                    while (now > seen && !most.compare_exchange_weak(seen, now))
                        ;
                    std::this_thread::sleep_for(1ms);
                    --inside;
                    slots.release();
                }
                if (--left == 0)
                    done.release();
            });
        done.acquire();
    }
    if (!done.try_acquire_for(5ms))
        late++;
    return most * 10 + late;
}

static int rounds()
{
    int completed = 0, sum = 0;
    std::latch start(THREADS + 1), end(THREADS);
    std::mutex mutex;
    std::barrier barrier(THREADS, [&]() noexcept { completed++; });
    std::vector<std::jthread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            for (int k = 0; k < ROUNDS; k++) {
                barrier.arrive_and_wait();
                std::lock_guard lock(mutex);
                sum += i;
            }
            end.count_down();
        });
    std::this_thread::sleep_for(5ms);
    start.count_down();
    start.wait();
    end.wait();
    return completed * 1000 + sum;
}

static int readers_and_writers()
{
    std::shared_mutex mutex;
    int value = 0, bad = 0;
    std::atomic<int> reader{0};
    std::latch held(1);
    std::vector<std::jthread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            if (i > 0)
                held.wait();
            if (i == 1)
                reader = gettid();
            for (int k = 0; k < ROUNDS; k++) {
                if (i == 0) {
                    std::unique_lock lock(mutex);
                    value++;
                    if (k == 0) {
                        held.count_down();
                        until_asleep(reader);
                    }
                    std::this_thread::sleep_for(100us);
                    value++;
                } else {
                    std::shared_lock lock(mutex);
                    bad += value % 2;
                }
            }
        });
    threads.clear();
    return value + bad;
}

static int stops()
{
    std::atomic<bool> asked{false};
    std::jthread thread([&](std::stop_token stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any changed;
        changed.wait(lock, stop, [&] {
            asked = true;
            return false;
        });
    });
    do
        std::this_thread::sleep_for(10ms);
    while (!asked);
    return thread.request_stop();
}

int main()
{
    std::printf("%d %ld %d %d %d %d\n", ping_pong(), wide(), semaphores(), rounds(),
                readers_and_writers(), stops());
}
