/*
 * Signals to condition variables that somebody has waited on before: how many from where, and how
 * many of them in vain, as nobody waited then. They leave no events: a count each, told at the end
 * of a trace. So a wake-up that went lost is told from one that was never sent.
 */
#ifndef GT_SIGNALLED_H
#define GT_SIGNALLED_H

#include "registry.h"

#include "encoder/held.h"

/* Somebody begins to wait for the condition variable. Any thread. */
void gt_signalled_expect(const void *cond);

/* A signal in `hook`, called at pc, has reached so many. Any thread. */
void gt_signalled_count_slow(uint32_t hook, const void *cond, const void *pc, uint32_t reached);

static inline bool gt_signalled_is_expected(const void *cond)
{
    return atomic_load_explicit(&gt_registry_count[gt_registry_slot(cond)], memory_order_relaxed) &
           GT_REGISTRY_COND;
}

/* A recording begins, by the drain side; or a forked child. */
void gt_signalled_reset(void);

/* Drain side: what was told last is not told again. */
void gt_signalled_forget_told(void);

/* Drain side: a text for each variable and place, see GT_SIGNALS. */
void gt_signalled_tell(gt_tell_fn *tell);

#endif
