/*
 * Pools whose tasks wait for tasks of pools that have no thread left, in the ways that main names.
 * Prints the TIDs of the tasks that wait.
 */
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>
static void ready()
{
    dprintf(1, "%d\n", gettid());
}
class Pool
{
    std::mutex lock;
    std::condition_variable more;
    std::deque<std::function<void()>> queue;
    std::vector<std::thread> threads;

  public:
    explicit Pool(int n)
    {
        while (n--)
            threads.emplace_back([this] { work(); });
    }
    void work()
    {
        for (;;) {
            std::unique_lock<std::mutex> held(lock);
            more.wait(held, [this] { return !queue.empty(); });
            auto task = std::move(queue.front());
            queue.pop_front();
            held.unlock();
            task();
        }
    }
    std::future<int> submit(std::function<int()> f)
    {
        auto task = std::make_shared<std::packaged_task<int()>>(std::move(f));
        std::lock_guard<std::mutex> held(lock);
        queue.emplace_back([task] { (*task)(); });
        more.notify_one();
        return task->get_future();
    }
};
static int nap()
{
    for (;;)
        sleep(1000);
}
static int keep_busy(Pool &second)
{
    Pool pool(4);
    std::deque<std::future<int>> outer;
    dprintf(1, "0\n0\n");
    for (;; outer.pop_front()) {
        while (outer.size() < 3) // so one of four is left for what these wait for
            outer.push_back(pool.submit([&] {
                return pool.submit([] { return usleep(50); }).get() +
                       second.submit([] { return 1; }).get();
            }));
        outer.front().get();
    }
}
int main(int argc, char **argv)
{
    std::string what = argv[1];
    Pool pool(what == "free" ? 3 : 2), second(1);
    std::thread([] {
        char c;
        read(0, &c, 1);
    }).detach();
    pthread_barrier_t both;
    pthread_barrier_init(&both, nullptr, what == "helps" ? 3 : 2);
    if (what == "busy")
        return keep_busy(second);
    if (what == "free")
        pool.submit(nap);
    if (what == "elsewhere")
        second.submit(nap);
    Pool &other = what == "elsewhere" ? second : pool;
    std::promise<int> promise;
    auto last = promise.get_future();
    auto outer = [&](bool kept) {
        return [&, kept] {
            pthread_barrier_wait(&both);
            ready();
            return kept ? last.get() : other.submit([] { return 1; }).get();
        };
    };
    std::future<int> first = pool.submit(outer(false)),
                     next = pool.submit(outer(what == "promise"));
    if (what == "root")
        first.get();
    if (what == "helps")
        pool.submit(nap), pthread_barrier_wait(&both), pool.work(); // nap is first in the queue
    nap();
}
