/* See debug.h. */
#include "debug.h"

#include "libc.h"

#ifdef GT_DEBUG

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LOCKS_MAX = 8 };

/* Only its own thread changes it. A signal handler that interrupts a change leaves it as it was. */
static __thread struct {
    const void *lock[LOCKS_MAX];
    enum gt_rank rank[LOCKS_MAX];
    int locks;
    const void *pinned;
} self __attribute__((tls_model("initial-exec")));

void gt_debug_broken(const char *rule, const char *what, const char *file, int line)
{
    char text[512];
    int n = snprintf(text, sizeof text, "gotrace: rule broken: %s: %s (%s:%d)\n", rule, what, file,
                     line);
    gt_syscall(SYS_write, 2, text, n < (int)sizeof text ? n : (int)sizeof text - 1);
    gt_syscall(SYS_kill, gt_syscall(SYS_getpid), SIGTRAP);
    gt_syscall(SYS_exit_group, 128 + SIGTRAP);
    __builtin_unreachable();
}

void gt_debug_lock(const void *lock, enum gt_rank rank)
{
    for (int i = 0; i < self.locks; i++) {
        GT_ASSERT("lock order", self.lock[i] != lock);
        GT_ASSERT("lock order",
                  self.rank[i] < rank || (self.rank[i] == rank && self.lock[i] < lock));
    }
}

void gt_debug_locked(const void *lock, enum gt_rank rank)
{
    GT_ASSERT("lock order", self.locks < LOCKS_MAX);
    self.lock[self.locks] = lock;
    self.rank[self.locks++] = rank;
}

/* Ignores a lock that is not listed: the thread took it before gt_debug_abandon. */
void gt_debug_unlock(const void *lock)
{
    int i = self.locks - 1;
    while (i >= 0 && self.lock[i] != lock)
        i--;
    if (i < 0)
        return;
    self.locks--;
    memmove(&self.lock[i], &self.lock[i + 1], (size_t)(self.locks - i) * sizeof self.lock[0]);
    memmove(&self.rank[i], &self.rank[i + 1], (size_t)(self.locks - i) * sizeof self.rank[0]);
}

bool gt_debug_has_lock(const void *lock)
{
    for (int i = 0; i < self.locks; i++) {
        if (self.lock[i] == lock)
            return true;
    }
    return false;
}

bool gt_debug_has_rank(enum gt_rank rank)
{
    for (int i = 0; i < self.locks; i++) {
        if (self.rank[i] == rank)
            return true;
    }
    return false;
}

void gt_debug_pin(const void *writer)
{
    self.pinned = writer;
}

const void *gt_debug_pinned(void)
{
    return self.pinned;
}

void gt_debug_abandon(void)
{
    self.locks = 0;
    self.pinned = NULL;
}

#endif
