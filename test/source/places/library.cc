/*
 * Waits 20 ms by std::future, std::call_once, std::condition_variable, each in a function of its
 * own.
 */
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
static std::once_flag once;
static std::mutex mutex;
static std::condition_variable changed;
static bool done;
static void slowly()
{
    std::this_thread::sleep_for(20ms);
}
__attribute__((noinline)) int asynchronous()
{
    auto f = std::async(std::launch::async, [] {
        slowly();
        return 1;
    });
    return f.get();
}
__attribute__((noinline)) int promised()
{
    std::promise<int> p;
    auto f = p.get_future();
    std::thread t([&] {
        slowly();
        p.set_value(1);
    });
    int r = f.get();
    t.join();
    return r;
}
__attribute__((noinline)) void packaged()
{
    std::packaged_task<int()> p([] {
        slowly();
        return 1;
    });
    auto f = p.get_future();
    std::thread t(std::move(p));
    f.wait();
    t.join();
}
__attribute__((noinline)) void only_once()
{
    std::call_once(once, slowly);
}
__attribute__((noinline)) void await()
{
    std::unique_lock<std::mutex> l(mutex);
    changed.wait(l, [] { return done; });
}
int main()
{
    asynchronous();
    promised();
    packaged();
    std::thread first(only_once), second(only_once), waiter(await);
    slowly();
    slowly();
    {
        std::lock_guard<std::mutex> l(mutex);
        done = true;
    }
    changed.notify_all();
    first.join();
    second.join();
    waiter.join();
}
