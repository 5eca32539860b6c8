/* Three processes take one token in turn. The program prints, in order, which process held the
 * token. */
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 3, ROUNDS = 40 };
static struct {
    sem_t token, begin;
    int taker[PROCESSES * ROUNDS], n;
} * all;

int main(void)
{
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(&all->token, 1, 1);
    sem_init(&all->begin, 1, 0);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork())
            continue;
        sem_wait(&all->begin);
        for (int k = 0; k < ROUNDS; k++) {
            sem_wait(&all->token);
            all->taker[all->n++] = getpid();
            usleep(2000);
            sem_post(&all->token);
        }
        return 0;
    }
    for (int i = 0; i < PROCESSES; i++)
        sem_post(&all->begin);
    while (wait(NULL) > 0)
        ;
    for (int i = 0; i < all->n; i++)
        printf("%d\n", all->taker[i]);
    return all->n != PROCESSES * ROUNDS;
}
