/* Four threads take 100 jobs. Taking one takes 1 ms with the queue's lock held, doing it 0.5 ms. */
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
using namespace std::chrono_literals;
class JobQueue
{
    std::mutex lock_;
    std::deque<int> jobs_ = std::deque<int>(100);

  public:
    bool take()
    {
        std::lock_guard<std::mutex> guard(lock_);
        std::this_thread::sleep_for(1ms);
        if (jobs_.empty())
            return false;
        jobs_.pop_front();
        return true;
    }
};
static JobQueue queue;
int main()
{
    std::vector<std::thread> pool;
    for (int i = 0; i < 4; i++)
        pool.emplace_back([] {
            while (queue.take())
                std::this_thread::sleep_for(500us);
        });
    for (auto &thread : pool)
        thread.join();
}
