/*
 * C++ for unwindcheck.so: exceptions through many frames, destructors, alloca, callbacks, threads.
 */
#include <alloca.h>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

namespace
{

struct Guard {
    std::string name;
    explicit Guard(int n) : name(std::string(40, 'a') + std::to_string(n))
    {
    }
    ~Guard()
    {
        sched_yield();
    }
};

__attribute__((noinline)) int descend(int n)
{
    Guard guard(n);
    volatile char *room = static_cast<volatile char *>(alloca(static_cast<size_t>(n) * 24 + 8));
    room[0] = 1;
    if (n == 0)
        throw std::runtime_error(guard.name);
    return descend(n - 1) + room[0];
}

__attribute__((noinline)) int rethrow(int n)
{
    try {
        return n ? rethrow(n - 1) : descend(12);
    } catch (const std::exception &) {
        sched_yield();
        if (n == 5)
            return 1;
        throw;
    }
}

void callbacks()
{
    std::vector<std::string> v;
    for (int i = 0; i < 50; i++)
        v.push_back(std::to_string(i * 7919 % 101) + std::string(30, 'x'));
    std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) {
        sched_yield();
        return a < b;
    });
    std::map<std::string, std::function<std::string(int)>> m;
    for (auto &s : v)
        m[s] = [s](int n) { return s + std::string(static_cast<size_t>(n), 'y'); };
    for (auto &entry : m)
        entry.second(33);
}

} // namespace

int main()
{
    for (int i = 0; i < 20; i++)
        std::printf("%d\n", rethrow(9));
    callbacks();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] { rethrow(7), callbacks(); });
    for (auto &t : threads)
        t.join();
}
