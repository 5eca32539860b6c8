/*
 * Threads that look again and again, with waits in between, each way in a mode of its own. Prints
 * how often the threads waited.
 *
 * several: three threads look every 3 ms for the next part, which one thread makes in turn for
 * them.
 *
 * expires: the same, by waits with a time limit for a condition that nobody signals.
 *
 * retries: four threads only try to lock a table, and sleep longer each time they did not get it.
 *
 * files: the same, by flock() of a file that each thread has opened.
 *
 * refused: four threads ask a desk for places, by pipes. A thread that is refused sleeps twice as
 * long as before, and asks again. The desk grants each place at the sixth request of a thread.
 *
 * works: no polling. Three threads do work of five equal pieces, and then one step of another kind.
 *
 * rises: no polling. Three threads do the same six pieces of work again and again, each longer than
 * the one before.
 *
 * meets: no polling. Such threads meet a fourth one after five pieces, which is done during the
 * fifth.
 *
 * serves: no polling. Another thread asks for each five pieces, and waits until they are done.
 */
#include "../../prog/program.h"
#include <sys/file.h>
enum { ASKERS = 3, PARTS = 15, PART_US = 24000, LOOK_US = 3000, USE_US = 2000 };
enum {
    CHANGERS = 4,
    CHANGES = 20,
    CHANGE_US = 5000,
    PLAN_US = 6000,
    FIRST_US = 1000,
    LAST_US = 8000
};
enum { BATCHES = 20, PIECES = 5, PIECE_US = 3000, STEP_US = 1000 };
static atomic_int made[ASKERS];
static atomic_long waits;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static bool by_file;
static pthread_mutex_t quiet_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t quiet = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting;
static volatile int pieces = PIECES; /* each is done at one place: the compiler unrolls no loop */
static __attribute__((noinline)) void make_part(void)
{
    usleep(PART_US);
    __asm__ volatile("");
}
static void *maker(void *arg)
{
    for (int i = 0; i < ASKERS * PARTS; i++) {
        make_part();
        made[i % ASKERS]++;
    }
    return arg;
}
static __attribute__((noinline)) void use_part(void)
{
    usleep(USE_US);
    __asm__ volatile("");
}
static __attribute__((noinline)) void await_part(int who, int part)
{
    for (; made[who] <= part; waits++)
        usleep(LOOK_US);
}
static void *asker(void *arg)
{
    for (int i = 0; i < PARTS; i++) {
        await_part((int)(intptr_t)arg, i);
        use_part();
    }
    return NULL;
}
static __attribute__((noinline)) void expect_part(int who, int part)
{
    for (; made[who] <= part; waits++) {
        struct timespec until = after(CLOCK_REALTIME, LOOK_US * 1000);
        pthread_mutex_lock(&quiet_lock);
        pthread_cond_timedwait(&quiet, &quiet_lock, &until);
        pthread_mutex_unlock(&quiet_lock);
    }
}
static void *expecter(void *arg)
{
    for (int i = 0; i < PARTS; i++) {
        expect_part((int)(intptr_t)arg, i);
        use_part();
    }
    return NULL;
}
static __attribute__((noinline)) void change_table(void)
{
    usleep(CHANGE_US);
    __asm__ volatile("");
}
static __attribute__((noinline)) bool try_table(int file)
{
    return by_file ? flock(file, LOCK_EX | LOCK_NB) == 0 : pthread_mutex_trylock(&table_lock) == 0;
}
static __attribute__((noinline)) void get_table(int file)
{
    useconds_t pause = FIRST_US;
    for (; !try_table(file); waits++) {
        usleep(pause);
        pause = pause < LAST_US ? pause * 2 : pause;
    }
}
static __attribute__((noinline)) void plan_change(void)
{
    usleep(PLAN_US);
    __asm__ volatile("");
}
static void *changer(void *arg)
{
    int file = by_file ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : -1;
    for (int i = 0; i < CHANGES; i++) {
        get_table(file);
        change_table();
        if (by_file)
            flock(file, LOCK_UN);
        else
            pthread_mutex_unlock(&table_lock);
        plan_change();
    }
    return arg;
}
static int desk[2], answer[CHANGERS][2];
static void *clerk(void *arg)
{
    enum { REQUESTS = 6 };
    int requests[CHANGERS] = {0};
    for (char who; read(desk[0], &who, 1) == 1 && who < CHANGERS;) {
        char granted = ++requests[(int)who] % REQUESTS == 0;
        if (write(answer[(int)who][1], &granted, 1) != 1)
            break;
    }
    return arg;
}
static void tell_clerk(int number)
{
    char who = (char)number;
    if (write(desk[1], &who, 1) != 1)
        perror("write");
}
static __attribute__((noinline)) void back_off(int tries)
{
    usleep(FIRST_US << tries);
    waits++;
}
static __attribute__((noinline)) void get_place(int who)
{
    for (int tries = 0;; tries++) {
        char granted = 0;
        tell_clerk(who);
        if (read(answer[who][0], &granted, 1) != 1 || granted)
            return;
        back_off(tries);
    }
}
static void *visitor(void *arg)
{
    int who = (int)(intptr_t)arg;
    for (int i = 0; i < CHANGES; i++) {
        get_place(who);
        change_table();
        plan_change();
    }
    return NULL;
}
static __attribute__((noinline)) void do_piece(void)
{
    usleep(PIECE_US);
    __asm__ volatile("");
}
static __attribute__((noinline)) void finish(void)
{
    usleep(STEP_US);
    __asm__ volatile("");
}
static void *worker(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        for (int k = 0; k < pieces; k++)
            do_piece();
        finish();
    }
    return arg;
}
static void *climber(void *arg)
{
    static const useconds_t piece_us[] = {2000, 3000, 4000, 6000, 8000, 10000};
    for (int i = 0; i < BATCHES * 6; i++)
        usleep(piece_us[i % 6]);
    return arg;
}
static void *member(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        for (int k = 0; k < pieces; k++)
            do_piece();
        pthread_barrier_wait(&meeting);
    }
    return arg;
}
static __attribute__((noinline)) void do_all(void)
{
    usleep(PIECES * PIECE_US - PIECE_US / 2);
    __asm__ volatile("");
}
static void *other(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        do_all();
        pthread_barrier_wait(&meeting);
    }
    return arg;
}
static sem_t asked, served;
static void *server(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        sem_wait(&asked);
        for (int k = 0; k < pieces; k++)
            do_piece();
        sem_post(&served);
    }
    return arg;
}
static void *client(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        sem_post(&asked);
        sem_wait(&served);
    }
    return arg;
}
static void run(int n, void *(*routine)(void *), void *(*beside)(void *))
{
    pthread_t thread[CHANGERS + 1];
    pthread_barrier_init(&meeting, NULL, (unsigned)n + 1);
    for (intptr_t i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, routine, (void *)i);
    if (beside)
        pthread_create(&thread[n++], NULL, beside, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}
static void visit(void)
{
    pthread_t thread;
    if (pipe(desk) != 0)
        return;
    for (int i = 0; i < CHANGERS; i++) {
        if (pipe(answer[i]) != 0)
            return;
    }
    pthread_create(&thread, NULL, clerk, NULL);
    run(CHANGERS, visitor, NULL);
    tell_clerk(CHANGERS);
    pthread_join(thread, NULL);
}
int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    by_file = strcmp(mode, "files") == 0;
    if (strcmp(mode, "several") == 0)
        run(ASKERS, asker, maker);
    else if (strcmp(mode, "expires") == 0)
        run(ASKERS, expecter, maker);
    else if (strcmp(mode, "retries") == 0 || by_file)
        run(CHANGERS, changer, NULL);
    else if (strcmp(mode, "refused") == 0)
        visit();
    else if (strcmp(mode, "works") == 0)
        run(ASKERS, worker, NULL);
    else if (strcmp(mode, "rises") == 0)
        run(ASKERS, climber, NULL);
    else if (strcmp(mode, "meets") == 0)
        run(ASKERS, member, other);
    else if (strcmp(mode, "serves") == 0)
        run(1, server, client);
    else
        return 2;
    printf("%ld\n", (long)waits);
    return 0;
}
