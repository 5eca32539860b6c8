/* See hang.h. */
#include "hang.h"

#include "blocked.h"

#include "encoder/base/clock.h"
#include "encoder/base/file.h"
#include "encoder/base/log.h"
#include "encoder/base/memo.h"
#include "encoder/drain/drain.h"
#include "encoder/file/output.h"
#include "preload/process/process_names.h"
#include "preload/shared/options.h"
#include "symbolize/elf/modules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The waits that were reported already, by goroutine: each is reported once. */
static struct gt_memo told; /* goroutine → start of its wait */

static bool is_told(const struct gt_blocked *b)
{
    return gt_memo_find(&told, b->g) == b->since;
}

static void note_told(const struct gt_blocked *b)
{
    uint64_t *slot = gt_memo_at(&told, b->g);
    if (slot)
        *slot = b->since;
}

static bool is_old(const struct gt_blocked *b)
{
    uint64_t now = gt_clock_now();
    return now > b->since && now - b->since > gt_clock_units(gt_options.hang);
}

/* Telling ------------------------------------------------------------------------------------ */

/* The thread's TID and comm, such as "123 committer". */
static const char *thread_name(uint32_t tid)
{
    static char text[64];
    char path[64], comm[32];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    gt_file_read_text(path, comm, sizeof comm);
    comm[strcspn(comm, "\n")] = 0;
    snprintf(text, sizeof text, "%u%s%s", tid, *comm ? " " : "", comm);
    return text;
}

static void tell_stack(const struct gt_stack *stack)
{
    enum { SHOWN = 16 };
    struct gt_frame frames[SHOWN];
    int left = SHOWN;
    for (uint32_t i = 0; stack && i < stack->n && left; i++) {
        int n = gt_names_resolve_now(stack, i, frames, left);
        left -= n;
        for (const struct gt_frame *f = frames; f < frames + n; f++) {
            if (f->line)
                gt_log("        %s (%s:%u)", f->func, f->file, f->line);
            else
                gt_log("        %s", f->func);
        }
    }
}

static void tell_wait(const struct gt_blocked *b)
{
    uint64_t address = (uintptr_t)b->lock;
    const char *name = gt_names_variable_now(address, (uint32_t)gt_modules_epoch());
    char lock[GT_STRING_MAX], waiter[64];
    if (name)
        snprintf(lock, sizeof lock, "%s, which", name);
    else
        snprintf(lock, sizeof lock, "a lock at 0x%llx, which", (unsigned long long)address);
    snprintf(waiter, sizeof waiter, "%s", thread_name(b->tid));
    const char *holder = thread_name(b->holder);
    if (b->kind == GT_LOCK_JOIN)
        gt_log("    thread %s waits for the end of thread %s, at", waiter, holder);
    else
        gt_log("    thread %s waits for %s thread %s holds%s, at", waiter, lock, holder,
               b->gone ? ", and that has ended" : "");
    tell_stack(b->stack);
}

static void tell_cycle(const struct gt_blocked *all, const struct gt_blocked *first)
{
    const struct gt_blocked *b = first;
    uint64_t ms = gt_options.hang / 1000000;
    bool seconds = ms % 1000 == 0;
    gt_log("DEADLOCK: for %llu %s %s", (unsigned long long)(seconds ? ms / 1000 : ms),
           seconds ? "s" : "ms",
           first->gone ? "a thread has waited for one that has ended:"
                       : "threads have waited for each other:");
    do {
        tell_wait(b);
        note_told(b);
        b = b->next >= 0 ? &all[b->next] : first;
    } while (b != first);
}

/* Looking ------------------------------------------------------------------------------------ */

static bool all_old(const struct gt_blocked *all, const struct gt_blocked *first)
{
    const struct gt_blocked *b = first;
    do {
        if (!is_old(b) || is_told(b))
            return false;
        b = b->next >= 0 ? &all[b->next] : first;
    } while (b != first);
    return true;
}

static void save(void)
{
    int error = gt_options.ring_bytes ? gt_drain_execute(GT_DRAIN_SNAPSHOT, NULL) : -ENOTSUP;
    if (!error)
        gt_log("    what led there: %s", gt_output_path());
}

/* Marks as reported the other waits for the lock of a holder that has ended. Returns their number.
 */
static size_t note_others(const struct gt_blocked *all, size_t n, const struct gt_blocked *first)
{
    size_t others = 0;
    for (size_t i = 0; i < n; i++) {
        bool same = all[i].gone && all[i].lock == first->lock && &all[i] != first;
        if (same)
            note_told(&all[i]);
        others += same;
    }
    return others;
}

void gt_hang_look(void)
{
    size_t n;
    bool found = false;
    const struct gt_blocked *all = gt_options.hang ? gt_blocked_now(&n) : NULL;
    for (size_t i = 0; all && i < n; i++) {
        const struct gt_blocked *b = &all[i];
        bool head = b->cycle == (int32_t)i || (b->gone && !b->timed);
        if (!head || !all_old(all, b))
            continue;
        tell_cycle(all, b);
        size_t others = b->gone ? note_others(all, n, b) : 0;
        if (others)
            gt_log("    and %zu more threads wait for that", others);
        found = true;
    }
    if (found)
        save();
}
