/*
 * The generation that is recorded never seems mute, whenever recording is stopped while its thread
 * asks: after each instruction of that. x86-64 only, which can be stepped.
 */
#include "encoder/thread/writer.h"

#include "check.h"

#include <signal.h>

#if defined(__x86_64__)

enum { TRAP = 0x100, FORMER = 1, RECORDED, NEXT };

#define STEP() __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP) : "memory", "cc")
#define WALK() __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP) : "memory", "cc")

static volatile int steps, stops_after;

static void set_mute(uint32_t gen)
{
    atomic_store(&gt_gen.mute_since, gen); /* in the order of encoder/drain/generation.c */
    atomic_store(&gt_gen.mute, gen);
}

static void step(int number)
{
    (void)number;
    if (++steps == stops_after)
        set_mute(NEXT);
}

/* false: all was over before recording stopped. */
static bool stop_after(int n)
{
    set_mute(FORMER);
    stops_after = n;
    steps = 0;
    STEP();
    bool mute = gt_gen_is_mute(RECORDED);
    WALK();
    CHECK(!mute, "stopped after %d instructions", n);
    return steps >= n;
}

int main(void)
{
    int n = 1;
    CHECK(signal(SIGTRAP, step) != SIG_ERR);
    while (stop_after(n))
        n++;
    CHECK(n > 2, "nothing was stepped");
    CHECK(gt_gen_is_mute(FORMER) && !gt_gen_is_mute(RECORDED) && !gt_gen_is_mute(NEXT));
    return 0;
}

#else

int main(void)
{
    return 77;
}

#endif
