/* A reader waits behind a writer, which waits for that reader. */
#include <pthread.h>
#include <unistd.h>
static pthread_rwlock_t lock;
static pthread_barrier_t both;
static void *writes(void *arg)
{
    pthread_barrier_wait(&both);
    pthread_rwlock_wrlock(&lock);
    return arg;
}
int main()
{
    pthread_t thread;
    pthread_rwlockattr_t a;
    pthread_rwlockattr_init(&a);
    pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock, &a);
    pthread_barrier_init(&both, nullptr, 2);
    pthread_rwlock_rdlock(&lock);
    pthread_create(&thread, nullptr, writes, nullptr);
    pthread_barrier_wait(&both);
    while (pthread_rwlock_tryrdlock(&lock) == 0) /* until the writer waits */
        pthread_rwlock_unlock(&lock);
    return pthread_rwlock_rdlock(&lock);
}
