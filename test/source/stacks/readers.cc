/*
 * Readers wait behind a writer, which waits for a reader: the one that waits below itself (b), or
 * one that sleeps. Prints the TIDs of those that may be the reader.
 */
#include <mutex>
#include <shared_mutex>
#include <stdio.h>
#include <thread>
#include <unistd.h>
struct Store {
    long version = 0;
    std::shared_mutex lock;
};
static Store store;
static long read_again()
{
    std::shared_lock<std::shared_mutex> held(store.lock);
    return store.version;
}
static void await_writer() // which goes first, and so readers wait, too
{
    dprintf(1, "%d\n", gettid());
    while (store.lock.try_lock_shared())
        store.lock.unlock_shared();
}
static long read_below()
{
    std::shared_lock<std::shared_mutex> held(store.lock);
    await_writer();
    return read_again();
}
static long read_and_sleep()
{
    std::shared_lock<std::shared_mutex> held(store.lock);
    await_writer();
    for (;;)
        pause();
}
int main(int, char **argv)
{
    pthread_rwlockattr_t first;
    pthread_rwlockattr_init(&first);
    pthread_rwlockattr_setkind_np(&first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init((pthread_rwlock_t *)store.lock.native_handle(), &first);
    std::thread([] {
        for (;;)
            pause();
    }).detach();
    std::thread reader(*argv[1] == 'b' ? read_below : read_and_sleep);
    char c;
    if (read(0, &c, 1) != 1)
        return 1;
    std::thread([] { std::unique_lock<std::shared_mutex> held(store.lock); }).detach();
    if (*argv[1] != 'b') {
        await_writer();
        std::thread([] { read_again(); }).detach();
    }
    reader.join();
}
