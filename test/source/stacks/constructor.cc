/* A library, as PLUGIN, whose constructor waits for a thread that waits for the loader, and the
 * program that loads it. */
#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <thread>
#ifdef PLUGIN
struct Scratch {
    char *p;
    Scratch() : p(new char[64])
    {
    }
    ~Scratch()
    {
        delete[] p;
    }
};
thread_local Scratch scratch;
static std::mutex lock;
static std::condition_variable cond;
static bool up;
static void service()
{
    scratch.p[0] = 1;
    std::lock_guard<std::mutex> g(lock);
    up = true;
    cond.notify_one();
}
struct Starter {
    Starter()
    {
        std::thread(service).detach();
        std::unique_lock<std::mutex> g(lock);
        cond.wait(g, [] { return up; });
    }
} starter;
#else
int main(int, char **argv)
{
    return !dlopen(argv[1], RTLD_NOW);
}
#endif
