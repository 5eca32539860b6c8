// std::thread with each kind of callable; exceptions thrown through frames that wait and lock. The
// unwinder must stay the program's own: prints which library it comes from.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unwind.h>

static std::mutex mutex;
static std::condition_variable cond;
static bool go;

struct Guard {
    const char *name;
    ~Guard()
    {
        std::printf("~%s\n", name);
    }
};

static void plain_function(int)
{
    std::unique_lock<std::mutex> lock(mutex);
    cond.wait(lock, [] { return go; });
}

struct Worker {
    void member_function()
    {
        try {
            deep(20);
        } catch (const std::runtime_error &e) {
            std::printf("caught %s\n", e.what());
        }
    }
    int deep(int n)
    {
        std::unique_lock<std::mutex> lock(mutex);
        Guard guard{n % 10 ? "inner" : "tenth"};
        cond.wait_for(lock, std::chrono::microseconds(100));
        lock.unlock();
        if (n == 0)
            throw std::runtime_error("from the depth");
        return deep(n - 1) + 1;
    }
};

struct Functor {
    void operator()(int) const
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
};

int main()
{
    Dl_info where;
    dladdr(reinterpret_cast<void *>(&_Unwind_RaiseException), &where);
    std::printf("unwinder %s\n",
                std::strstr(where.dli_fname, "libgcc_s") ? "libgcc_s" : where.dli_fname);
    Worker worker;
    std::thread b(&Worker::member_function, &worker);
    b.join();
    std::thread a(plain_function, 3);
    std::thread c([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    std::thread d(Functor(), 2);
    {
        std::lock_guard<std::mutex> lock(mutex);
        go = true;
    }
    cond.notify_all();
    a.join();
    c.join();
    d.join();
}
