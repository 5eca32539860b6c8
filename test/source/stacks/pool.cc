/* Two threads wait for a result of each other. */
#include <future>
#include <thread>
int main()
{
    std::promise<int> task, other;
    std::future<int> first = task.get_future(), second = other.get_future();
    std::thread worker([&] { task.set_value(second.get()); });
    first.get();
}
