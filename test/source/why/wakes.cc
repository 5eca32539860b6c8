/*
 * wakes ITEMS: in each of 200 rounds notify_all wakes eight threads for so many items, of which
 * each takes one at most. Prints how often threads were woken, and found no item by the predicate.
 */
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

enum { WORKERS = 8, ROUNDS = 200 };

static std::mutex mutex;
static std::condition_variable more;
static int left, round_now, waiting, awaited, looks, found;
static bool over;

static void work()
{
    for (int last = 0;;) {
        std::unique_lock<std::mutex> lock(mutex);
        waiting++;
        more.wait(lock, [&last] {
            bool has = left > 0 && last != round_now;
            looks++;
            found += has;
            awaited--;
            return has || over;
        });
        waiting--;
        if (over)
            return;
        left--;
        last = round_now;
        awaited++; /* the first look of its next wait is after no wake-up */
    }
}

int main(int, char **argv)
{
    std::vector<std::thread> thread;
    awaited = WORKERS;
    for (int i = 0; i < WORKERS; i++)
        thread.emplace_back(work);
    for (int i = 0; i <= ROUNDS;) {
        std::lock_guard<std::mutex> lock(mutex);
        if (awaited > 0 || waiting < WORKERS)
            continue;
        over = i++ == ROUNDS;
        round_now++;
        left = atoi(argv[1]);
        awaited = WORKERS;
        if (over) /* each wait has begun with a look, after the beginning or after an item */
            std::printf("%d %d\n", looks - WORKERS - found, looks - WORKERS - 2 * found);
        more.notify_all();
    }
    for (std::thread &t : thread)
        t.join();
}
