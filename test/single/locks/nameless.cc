/* A mutex in an anonymous namespace, locked by an instance of a template. */
#include <mutex>
#include <thread>
#include <unistd.h>
namespace
{
std::mutex mine;
struct bank {
    template <class T> static void pay(T ms)
    {
        std::lock_guard<std::mutex> l(mine);
        usleep(ms * 1000);
    }
};
} // namespace
int main()
{
    for (int i = 0; i < 10; i++) {
        std::thread one([] { bank::pay(30); }), other([] {
            usleep(5000);
            bank::pay(20);
        }),
            third([] {
                usleep(8000);
                bank::pay(1);
            });
        one.join(), other.join(), third.join();
    }
}
