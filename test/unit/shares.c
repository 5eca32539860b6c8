/*
 * What part of a thread's time was what (encoder/read/shares.h): the kernel's counts of two or
 * three stretches of a life, with what events say about them. In ms.
 */
#include "encoder/read/shares.h"

#include "check.h"

/* What a stretch is made of. */
struct stretch {
    uint64_t until;         /* so long the thread has lived by then */
    uint64_t slept, sleeps; /* so long in so many waits that events tell */
    uint64_t cpu, queue, voluntary, involuntary;
    unsigned known;
};

static const unsigned COUNTED = GT_KNOWN_ALL | GT_KNOWN_RUNS; /* of a thread that lives */
static const unsigned AT_END = GT_KNOWN_CPU | GT_KNOWN_SWITCHES | GT_KNOWN_RUNS;

static struct gt_shares shares;
static uint64_t ns[GT_KINDS], sleeps;

static void begin(void)
{
    shares = (struct gt_shares){.runs = true};
    for (int k = 0; k < GT_KINDS; k++)
        ns[k] = 0;
    sleeps = 0;
}

static void add(struct stretch s)
{
    const struct gt_usage used = {
        .known = s.known,
        .of = {[GT_USED_CPU] = s.cpu,
               [GT_USED_QUEUE] = s.queue,
               [GT_USED_VOLUNTARY] = s.voluntary,
               [GT_USED_INVOLUNTARY] = s.involuntary},
    };
    ns[GT_SLEEP] += s.slept;
    sleeps += s.sleeps;
    gt_shares_add(&shares, s.until, ns, sleeps, &used);
}

static void are(uint64_t cpu, uint64_t queue, uint64_t slept, uint64_t unseen)
{
    CHECK_EQ(shares.cpu, cpu);
    CHECK_EQ(shares.queue, queue);
    CHECK_EQ(shares.wait[GT_SLEEP], slept);
    CHECK_EQ(gt_shares_unseen(&shares), unseen);
    CHECK_EQ(shares.time, cpu + queue + slept + unseen);
}

/* The thread lost its CPU to others; a thread that ends cannot read for how long. */
static void test_end_of_one_that_slept_where_events_say(void)
{
    begin();
    add((struct stretch){100, 30, 3, .cpu = 20, .voluntary = 3, .involuntary = 9, .known = AT_END});
    are(20, 50, 30, 0);
}

/* One of its ten switches was for a wait that no event tells. */
static void test_end_of_one_that_waited_unseen(void)
{
    begin();
    add((struct stretch){100, 30, 3, .cpu = 20, .voluntary = 4, .involuntary = 9, .known = AT_END});
    are(20, 45, 30, 5);
    begin();
    add((struct stretch){100, 30, 3, .cpu = 20, .voluntary = 8, .involuntary = 0, .known = AT_END});
    are(20, 0, 30, 50);
}

/* The kernel counts a stay in the queue when it is over: each is reported once. */
static void test_in_the_queue_when_it_is_looked_at(void)
{
    begin();
    add((struct stretch){100, 30, 3, 20, 10, .voluntary = 3, .involuntary = 9, .known = COUNTED});
    are(20, 50, 30, 0);
    add((struct stretch){200, 40, 4, 20, 80, .voluntary = 4, .involuntary = 1, .known = COUNTED});
    are(40, 90, 70, 0);
}

static void test_unseen_wait_that_the_kernel_counts(void)
{
    begin();
    add((struct stretch){100, 30, 3, 20, 10, .voluntary = 4, .involuntary = 9, .known = COUNTED});
    are(20, 10, 30, 40);
}

static void test_without_any_switch(void)
{
    begin();
    add((struct stretch){100, .cpu = 20, .queue = 10, .involuntary = 2, .known = COUNTED});
    are(20, 80, 0, 0);
    add((struct stretch){200, .cpu = 50, .involuntary = 2, .known = AT_END});
    are(70, 130, 0, 0);
}

/* An account without switches: those of the next one are of both stretches. */
static void test_end_behind_an_account_without_switches(void)
{
    begin();
    add((struct stretch){100, 30, 3, 20, 50, .known = GT_KNOWN_CPU | GT_KNOWN_QUEUE});
    are(20, 50, 30, 0);
    add((struct stretch){200, 30, 3, .cpu = 20, .voluntary = 6, .involuntary = 9, .known = AT_END});
    are(40, 100, 60, 0);
    begin();
    add((struct stretch){100, 0, 0, 20, 60, .known = GT_KNOWN_CPU | GT_KNOWN_QUEUE});
    are(20, 60, 0, 20);
    add((struct stretch){200, 30, 3, .cpu = 20, .involuntary = 9, .known = AT_END});
    are(40, 160, 0, 0); /* it never waited */
    begin();
    add((struct stretch){100, 0, 0, 20, 60, .known = GT_KNOWN_CPU | GT_KNOWN_QUEUE});
    add((struct stretch){200, .cpu = 20, .voluntary = 1, .involuntary = 9, .known = AT_END});
    are(40, 132, 0, 28); /* it waited once */
    begin();
    add((struct stretch){100, 0, 0, 20, 60, .known = GT_KNOWN_CPU | GT_KNOWN_QUEUE});
    add((struct stretch){200, 0, 0, 20, 100, .involuntary = 9, .known = COUNTED});
    are(40, 160, 0, 0); /* 20 of these 100 were before the first account */
}

int main(void)
{
    test_end_of_one_that_slept_where_events_say();
    test_end_of_one_that_waited_unseen();
    test_in_the_queue_when_it_is_looked_at();
    test_unseen_wait_that_the_kernel_counts();
    test_without_any_switch();
    test_end_behind_an_account_without_switches();
    return 0;
}
