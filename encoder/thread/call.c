/* See call.h. */
#include "call.h"

#include "events.h"

void gt_call_write(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack)
{
    if (reason)
        gt_ev_go_block(w, since, reason, stack);
    else
        gt_ev_go_syscall(w, since, stack);
}

struct gt_stack *(*gt_call_stack)(struct gt_writer *w);

/* Returns NULL if the call has its stack already. */
static struct gt_stack *find_stack(struct gt_writer *w)
{
    bool has = atomic_load_explicit(&w->call.stack, memory_order_relaxed);
    return has || !gt_call_stack ? NULL : gt_call_stack(w);
}

void gt_call_show(struct gt_writer *w)
{
    /* acquire: the rest of the announcement. */
    uint64_t since = atomic_load_explicit(&w->call.since, memory_order_acquire);
    if (!since)
        return;
    struct gt_stack *found = find_stack(w);
    /* acquire: pairs with gt_call_keep's release. A kept stack is right; `found` may not be. */
    struct gt_stack *kept = atomic_load_explicit(&w->call.stack, memory_order_acquire);
    atomic_store_explicit(&w->call.since, 0, memory_order_relaxed);
    bool ends = atomic_load_explicit(&w->call.due_of, memory_order_acquire) == since;
    atomic_store_explicit(&w->due_mutex, NULL, memory_order_relaxed);
    atomic_store_explicit(&w->due,
                          ends ? atomic_load_explicit(&w->call.due, memory_order_relaxed) : 0,
                          memory_order_relaxed);
    gt_call_write(w, since, w->call.reason, kept ? kept : found);
}

void gt_call_keep(struct gt_writer *w)
{
    if (!gt_call_is_announced(w) || gt_writer_gone(w)) /* then its stacks may be gone, too */
        return;
    struct gt_stack *stack = find_stack(w);
    if (stack)
        atomic_store_explicit(&w->call.stack, stack, memory_order_release);
}
