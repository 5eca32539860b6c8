/*
 * Two pools of one template. A thread of the first one asks the second one, and waits for jobs and
 * for answers by the same function of one channel. std::thread starts all threads.
 */
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

enum { JOBS = 40 };
using Task = std::function<void()>;

struct Channel {
    std::mutex mutex;
    std::condition_variable more;
    std::deque<Task> tasks;
    int resting = 0;

    /* Only a push to a thread that rests tells who woke whom. */
    __attribute__((noinline)) void push(Task task)
    {
        std::unique_lock<std::mutex> lock(mutex);
        while (!resting) {
            lock.unlock();
            std::this_thread::yield();
            lock.lock();
        }
        resting--;
        tasks.push_back(std::move(task));
        more.notify_one();
    }

    __attribute__((noinline)) Task pop()
    {
        std::unique_lock<std::mutex> lock(mutex);
        resting++;
        while (tasks.empty())
            more.wait(lock);
        Task task = std::move(tasks.front());
        tasks.pop_front();
        return task;
    }
};

struct Asks {
};
struct Answers {
};

template <class Kind> struct Pool {
    Channel channel;
    std::vector<std::thread> threads;

    Pool(int n)
    {
        for (int i = 0; i < n; i++)
            threads.emplace_back([this] { run(); });
    }

    __attribute__((noinline)) void run()
    {
        for (int i = 0; i < JOBS; i++)
            channel.pop()();
    }
};

int main()
{
    static Channel answer[JOBS];
    Pool<Answers> answers(2);
    Pool<Asks> asks(3);
    std::atomic<int> done(0);
    for (int i = 0; i < JOBS; i++) {
        while (done < i)
            std::this_thread::yield();
        asks.channel.push([&, i] {
            answers.channel.push([&, i] {
                usleep(1000);
                answer[i].push([] {});
            });
            answer[i].pop();
            usleep(300);
            done++;
        });
    }
    while (done < JOBS)
        std::this_thread::yield();
    exit(0);
}
