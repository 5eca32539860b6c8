/* Equal stacks share an id, different ones do not, marks are per generation; from many threads. */
#include "encoder/thread/stacks.h"

#include "check.h"

#include <pthread.h>

enum { THREADS = 4, STACKS = 5000, DEPTH = 128 };

static struct gt_stack *found[THREADS][STACKS];

static void fill(uint64_t *pcs, int i)
{
    for (int k = 0; k < DEPTH; k++)
        pcs[k] = 0x400000 + (uint64_t)(i % 97) * 16 + (uint64_t)k * 4096 +
                 (k == DEPTH - 1) * (uint64_t)i;
}

static void *worker(void *arg)
{
    struct gt_stack **mine = arg;
    uint64_t pcs[DEPTH];
    for (int i = 0; i < STACKS; i++) {
        fill(pcs, i);
        mine[i] = gt_stacks_get(pcs, DEPTH, 1);
        CHECK(mine[i] != NULL);
    }
    return NULL;
}

static int marked;

static void count(void *arg, struct gt_stack *s)
{
    CHECK_EQ(s->id, *(uint32_t *)arg);
    marked++;
}

int main(void)
{
    pthread_t thread[THREADS];
    uint64_t pcs[DEPTH];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, worker, found[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i < STACKS; i++)
        CHECK(found[0][i]->id != found[0][i - 1]->id);
    for (int i = 0; i < STACKS; i++) {
        fill(pcs, i);
        struct gt_stack *s = gt_stacks_get(pcs, DEPTH, 1);
        CHECK(s == gt_stacks_get(pcs, DEPTH, 1));
        CHECK(gt_stacks_get(pcs, DEPTH - 1, 1) != s);
        CHECK(gt_stacks_get(pcs, DEPTH, 2) != s, "another epoch is another stack");
        for (int k = 0; k < DEPTH; k++)
            CHECK_EQ(s->pcs[k], pcs[k]);
    }
    CHECK_EQ(gt_stack_use(NULL, 7), 0);
    uint32_t id = gt_stack_use(found[0][3], 7);
    gt_stacks_each(7, count, &id);
    CHECK_EQ(marked, 1);
    gt_stack_use(found[0][3], 8); /* generation 8 opens while 7 is being closed */
    gt_stacks_each(7, count, &id);
    CHECK_EQ(marked, 2);
    gt_stacks_each(6, count, &id);
    CHECK_EQ(marked, 2);
    return 0;
}
