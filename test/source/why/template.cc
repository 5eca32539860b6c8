/* Two threads in a function with a long name, of a template. */
#include <map>
#include <pthread.h>
#include <unistd.h>
template <class T> struct worker {
    __attribute__((noinline)) static void *run(void *arg)
    {
        usleep(50000);
        return arg;
    }
};
int main()
{
    pthread_t t[2];
    for (pthread_t &it : t)
        pthread_create(&it, nullptr, worker<std::map<int, std::pair<int, long>>>::run, nullptr);
    for (pthread_t &it : t)
        pthread_join(it, nullptr);
}
