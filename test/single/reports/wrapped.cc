/* A lock of std::mutex, waited for in take and held by main for 30 ms. */
#include <mutex>
#include <thread>
#include <unistd.h>
std::mutex mutex;
void take()
{
    std::lock_guard<std::mutex> lock(mutex);
}
int main()
{
    std::unique_lock<std::mutex> lock(mutex);
    std::thread thread(take);
    usleep(30000);
    lock.unlock();
    thread.join();
}
