/* C++ programs that are slow for a known reason: tasks NAME [half|fixed]. Prints the ns that it
 * took. */
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
using namespace std::chrono_literals;
static bool half, fixed;
static void wait_for_device(std::chrono::microseconds us)
{
    std::this_thread::sleep_for(half ? us / 2 : us);
}

/* A log is written with its mutex held. Fixed: it is written after the mutex is released. */
static std::mutex log_mutex;
static void write_line()
{
    wait_for_device(4ms);
}
static void log_line()
{
    std::unique_lock<std::mutex> hold(log_mutex);
    if (fixed)
        hold.unlock();
    write_line();
}
static void logged()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int n = 0; n < 30; n++) {
                std::this_thread::sleep_for(1ms);
                log_line();
            }
        });
    for (auto &t : threads)
        t.join();
}

/* Futures are waited for one after another. Fixed: all begin before the first is waited for. */
static int load_tile()
{
    wait_for_device(12ms);
    return 1;
}
static void one_by_one()
{
    int n = 0;
    std::vector<std::future<int>> all;
    for (int i = 0; i < 24; i++) {
        all.push_back(std::async(std::launch::async, load_tile));
        if (!fixed || i % 4 == 3)
            for (; n < (int)all.size(); n++)
                all[n].get();
    }
}

/* Readers wait while a writer reloads a table. Half: reloading takes half as long. */
static std::shared_timed_mutex table_mutex;
static void reload_table()
{
    std::unique_lock<std::shared_timed_mutex> hold(table_mutex);
    wait_for_device(20ms);
}
static void reloaded()
{
    std::thread writer([] {
        for (int i = 0; i < 15; i++) {
            reload_table();
            std::this_thread::sleep_for(2ms);
        }
    });
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; i++)
        readers.emplace_back([] {
            for (int n = 0; n < 30; n++) {
                std::shared_lock<std::shared_timed_mutex> hold(table_mutex);
                std::this_thread::sleep_for(1ms);
            }
        });
    writer.join();
    for (auto &t : readers)
        t.join();
}

/* One worker takes jobs from a queue that is always full. Fixed: there are two workers. */
static std::mutex jobs_mutex;
static std::condition_variable more_jobs;
static std::deque<int> jobs;
static void resize_picture()
{
    wait_for_device(6ms);
}
static void worker()
{
    for (;;) {
        std::unique_lock<std::mutex> hold(jobs_mutex);
        more_jobs.wait(hold, [] { return !jobs.empty(); });
        int job = jobs.front();
        if (job < 0)
            return;
        jobs.pop_front();
        hold.unlock();
        resize_picture();
    }
}
static void one_worker()
{
    std::vector<std::thread> workers;
    for (int i = 0; i < (fixed ? 2 : 1); i++)
        workers.emplace_back(worker);
    for (int i = 0; i < 60; i++) {
        std::this_thread::sleep_for(500us);
        std::lock_guard<std::mutex> hold(jobs_mutex);
        jobs.push_back(i);
        more_jobs.notify_one();
    }
    std::unique_lock<std::mutex> hold(jobs_mutex);
    jobs.push_back(-1);
    more_jobs.notify_all();
    hold.unlock();
    for (auto &t : workers)
        t.join();
}

static const struct {
    const char *name;
    void (*run)();
} tasks[] = {{"logged", logged},
             {"one_by_one", one_by_one},
             {"reloaded", reloaded},
             {"one_worker", one_worker}};
int main(int argc, char **argv)
{
    half = argc > 2 && strcmp(argv[2], "half") == 0;
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (const auto &task : tasks) {
        if (argc < 2 || strcmp(task.name, argv[1]) != 0)
            continue;
        auto begin = std::chrono::steady_clock::now();
        task.run();
        auto took = std::chrono::steady_clock::now() - begin;
        printf("%lld\n", (long long)std::chrono::nanoseconds(took).count());
        return 0;
    }
    return 2;
}
