/*
 * Waits off the critical path that decide how often a thread on it tries again:
 * tries [half | rwlock | semaphore].
 *
 * A saver saves a document 40 times, with its lock held, and rests in between. A user edits it 8
 * times: it tries to lock the document. If the saver holds the lock, the user sleeps and tries
 * again. half: saving takes half as long. The others say what the lock is; else it is a mutex.
 *
 * Prints how long the user took, in ns, and how often it slept to try again.
 */
#include "../../prog/program.h"
enum { SAVES = 40, EDITS = 8, SAVE_US = 60000, REST_US = 25000, AGAIN_US = 20000, EDIT_US = 1000 };
static pthread_mutex_t document = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sheet;
static long save_us = SAVE_US, waits;
static char kind;
static int try(void)
{
    return kind == 'r'   ? pthread_rwlock_trywrlock(&book)
           : kind == 's' ? sem_trywait(&sheet)
                         : pthread_mutex_trylock(&document);
}
static void lock(void)
{
    (void)(kind == 'r'   ? pthread_rwlock_wrlock(&book)
           : kind == 's' ? sem_wait(&sheet)
                         : pthread_mutex_lock(&document));
}
static void unlock(void)
{
    (void)(kind == 'r'   ? pthread_rwlock_unlock(&book)
           : kind == 's' ? sem_post(&sheet)
                         : pthread_mutex_unlock(&document));
}
static __attribute__((noinline)) void save(void)
{
    usleep((useconds_t)save_us);
    __asm__ volatile("");
}
static void *saver(void *arg)
{
    for (int i = 0; i < SAVES; i++) {
        lock();
        save();
        unlock();
        usleep(REST_US);
    }
    return arg;
}
static __attribute__((noinline)) void edit(void)
{
    for (; try(); waits++)
        usleep(AGAIN_US);
    usleep(EDIT_US);
    unlock();
}
static void *user(void *arg)
{
    for (int i = 0; i < EDITS; i++) {
        edit();
        usleep(REST_US);
    }
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t thread[2];
    save_us = argc > 1 && strcmp(argv[1], "half") == 0 ? SAVE_US / 2 : SAVE_US;
    kind = argc > 1 ? *argv[1] : 'm';
    sem_init(&sheet, 0, 1);
    uint64_t begin = now_ns();
    pthread_create(&thread[0], NULL, saver, NULL);
    pthread_create(&thread[1], NULL, user, NULL);
    pthread_join(thread[1], NULL);
    printf("%lu %ld\n", now_ns() - begin, waits);
    return 0;
}
