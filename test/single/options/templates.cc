/* Two threads take turns with a mutex. It and the function that locks it have long names. */
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

template <class Key, class Value> struct Pool {
    static std::mutex journal_of_everything_that_was_ever_committed_to_this_very_pool;
    template <class Work> static void commit(const std::map<Key, Value> &, Work work)
    {
        for (int i = 0; i < 10; i++) {
            std::lock_guard<std::mutex> guard(
                journal_of_everything_that_was_ever_committed_to_this_very_pool);
            work();
        }
    }
};

template <class Key, class Value>
std::mutex Pool<Key, Value>::journal_of_everything_that_was_ever_committed_to_this_very_pool;

static void work()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

static void run()
{
    Pool<std::string, std::vector<std::string>>::commit({}, work);
}

int main()
{
    std::thread other(run);
    run();
    other.join();
    return 0;
}
