/* See urgent.h. */
#include "urgent.h"

#include "libc.h"

#include <linux/sched.h>
#include <stdatomic.h>

enum { HIGHEST = 99 };

/* sched(7)'s struct sched_param. <sched.h> would define some macros of <linux/sched.h> again. */
struct priority {
    int value;
};

static struct {
    _Atomic uint32_t tid; /* the drain thread; 0: there is none */
    int policy;           /* the drain thread's own */
    _Atomic bool working;
    _Atomic int lent; /* the priority that the drain thread has instead; 0: none */
    _Atomic bool refused;
} helper;

static _Atomic bool forbidden;

static long policy_of_caller(void)
{
    if (atomic_load_explicit(&forbidden, memory_order_relaxed))
        return SCHED_NORMAL;
    long policy = gt_syscall(SYS_sched_getscheduler, 0);
    return policy < 0 ? SCHED_NORMAL : policy & ~(long)SCHED_RESET_ON_FORK;
}

static bool is_urgent(long policy)
{
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* The drain thread is never urgent, though it may have been lent a priority. */
bool gt_urgent(void)
{
    return is_urgent(policy_of_caller()) &&
           (uint32_t)gt_syscall(SYS_gettid) != atomic_load(&helper.tid);
}

void gt_urgent_forbid(void)
{
    atomic_store(&forbidden, true);
}

static int above_caller(void)
{
    struct priority mine = {HIGHEST};
    if (policy_of_caller() != SCHED_DEADLINE)
        gt_syscall(SYS_sched_getparam, 0, &mine);
    return mine.value < HIGHEST ? mine.value + 1 : HIGHEST;
}

static void lend(void)
{
    uint32_t tid = atomic_load(&helper.tid);
    if (!tid || atomic_load(&helper.refused))
        return;
    struct priority above = {above_caller()};
    if (atomic_load(&helper.lent) >= above.value)
        return;
    if (gt_syscall(SYS_sched_setscheduler, tid, SCHED_FIFO, &above) == 0)
        atomic_store(&helper.lent, above.value); /* only now: the helper gives back after that */
    else
        atomic_store(&helper.refused, true);
}

void gt_urgent_lend(void)
{
    if (atomic_load(&helper.working))
        lend();
}

void gt_urgent_hasten(void)
{
    if (gt_urgent())
        lend();
}

void gt_urgent_helper(uint32_t tid)
{
    long policy = policy_of_caller();
    helper.policy = is_urgent(policy) ? SCHED_NORMAL : (int)policy; /* as drain_thread.c does */
    atomic_store(&helper.lent, 0);
    atomic_store(&helper.working, false);
    atomic_store(&helper.refused, false);
    atomic_store(&helper.tid, tid);
}

void gt_urgent_working(bool working)
{
    atomic_store(&helper.working, working);
}

void gt_urgent_give_back(void)
{
    struct priority none = {0};
    if (atomic_load_explicit(&helper.lent, memory_order_relaxed) &&
        atomic_exchange(&helper.lent, 0))
        gt_syscall(SYS_sched_setscheduler, 0, helper.policy, &none);
}
