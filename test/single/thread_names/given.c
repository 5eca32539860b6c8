/*
 * Threads that get names from others at the moments that matter. Prints of each thread its number
 * and the name that it has at its end, or "-". Starts the recording when half of the names are
 * given.
 */
#include "../../prog/asleep.h"
#include "../../../preload/gotrace.h"

enum { THREADS = 11 };

struct thread {
    pthread_t self;
    sem_t go_on; /* it waits for this twice */
    _Atomic pid_t tid;
    atomic_bool named;
};

static struct thread threads[THREADS];

static void wait_for_it(struct thread *t)
{
    while (sem_wait(&t->go_on) && errno == EINTR)
        ;
}

static void *waits(void *arg)
{
    struct thread *t = arg;
    t->tid = gettid();
    wait_for_it(t);
    wait_for_it(t);
    return NULL;
}

static void *names_itself(void *arg)
{
    pthread_setname_np(pthread_self(), "self");
    return waits(arg);
}

/* It waits for nothing before it is named. */
static void *named_before_it_waits(void *arg)
{
    struct thread *t = arg;
    while (!t->named)
        ;
    return waits(arg);
}

/* It waits for nothing at all after it is named. */
static void *computes(void *arg)
{
    struct thread *t = arg;
    t->tid = gettid();
    while (!t->named)
        ;
    return NULL;
}

static void *renames_itself(void *arg)
{
    struct thread *t = arg;
    t->tid = gettid();
    wait_for_it(t);
    pthread_setname_np(pthread_self(), "mine");
    wait_for_it(t);
    return NULL;
}

/* It has had a name, and has none when it waits for the second time. */
static void *unnames_itself(void *arg)
{
    struct thread *t = arg;
    pthread_setname_np(pthread_self(), "lost");
    t->tid = gettid();
    wait_for_it(t);
    prctl(PR_SET_NAME, "");
    wait_for_it(t);
    return NULL;
}

/* Returns when the thread sleeps in its wait. */
static void await_wait(struct thread *t)
{
    while (!t->tid || !is_asleep(t->tid))
        ;
}

static void begin(int i, void *(*routine)(void *))
{
    sem_init(&threads[i].go_on, 0, 0);
    pthread_create(&threads[i].self, NULL, routine, &threads[i]);
}

static void name(int i, const char *text)
{
    pthread_setname_np(threads[i].self, text);
    threads[i].named = true;
}

int main(void)
{
    static const char *const names[THREADS] = {
        "self", "early", "late", "newer", "mine", "at its end", "born", "-", "", "", ""};
    begin(0, names_itself);
    begin(1, named_before_it_waits);
    begin(2, waits);
    begin(3, names_itself);
    begin(4, renames_itself);
    begin(5, computes);
    begin(7, waits);
    begin(8, waits);
    begin(9, names_itself);
    begin(10, unnames_itself);
    name(1, "early");
    await_wait(&threads[2]);
    name(2, "late");
    await_wait(&threads[3]);
    name(3, "new");
    await_wait(&threads[4]);
    name(4, "given");
    begin(6, waits);
    name(6, "born"); /* it may not have begun */
    name(8, "");
    await_wait(&threads[9]);
    name(9, "");
    await_wait(&threads[10]);
    gotrace_start(); /* where it has not begun */
    name(3, "newer");
    name(5, "at its end");
    for (int i = 0; i < THREADS; i++) {
        while (!threads[i].tid)
            ;
        if (i != 5) { /* it must go on from the first wait, and have a second one */
            sem_post(&threads[i].go_on);
            sem_post(&threads[i].go_on);
        }
        pthread_join(threads[i].self, NULL);
        printf("%d %s\n", threads[i].tid, names[i]);
    }
    return 0;
}
