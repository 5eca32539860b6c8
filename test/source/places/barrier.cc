/* Two threads wait at a barrier in each round until a third one comes, once they are asleep. */
#include <atomic>
#include <barrier>
#include <chrono>
#include <fstream>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

static std::barrier<> all(3);
static std::atomic<int> tid[2];

__attribute__((noinline)) static void meet_others()
{
    all.arrive_and_wait();
    asm volatile("");
}

/* Whether the thread sleeps by a call that is made for that: in a lock it is not at the barrier. */
static bool is_asleep(int thread)
{
    long call = -1;
    std::ifstream("/proc/self/task/" + std::to_string(thread) + "/syscall") >> call;
    return call == SYS_nanosleep || call == SYS_clock_nanosleep;
}

/* The thread says so when it comes to the barrier, and from there on only sleeps. */
static void wait_for(int i)
{
    for (int round = 0; round < 8; round++) {
        tid[i] = gettid();
        meet_others();
    }
}

int main()
{
    std::thread first(wait_for, 0), second(wait_for, 1);
    for (int round = 0; round < 8; round++) {
        for (std::atomic<int> &one : tid) {
            while (!one || !is_asleep(one))
                ;
            one = 0;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        meet_others();
    }
    first.join();
    second.join();
}
