/* See fork.h. */
#include "fork.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/log.h"
#include "preload/bind/real.h"
#include "preload/process/process_state.h"
#include "preload/upward.h"
#include "preload/waits/slice.h"
#include "symbolize/elf/loading.h"
#include "symbolize/elf/modules.h"

#include <pthread.h>
#include <sys/mman.h>

static uint32_t *same_memory; /* zero in a forked child: MADV_WIPEONFORK */

static __thread uint64_t began; /* the clock counter before the fork under way; 0: none */

static void become_child(void)
{
    gt_debug_abandon();
    if (same_memory)
        *same_memory = 1;
    if (gt_process_is_followed())
        gt_upward.inherit();
    began = 0;
}

enum { HELD_SYMBOLS = 1, HELD_MODULES = 2, NESTED = 4 };

uint64_t gt_fork_began(void)
{
    return began;
}

unsigned gt_fork_begin(void)
{
    if (gt_process_is_left_alone())
        return 0;
    gt_fork_check(); /* a child that does not know yet has its parent's `began` */
    if (began)
        return NESTED;
    began = gt_clock_counter();
    gt_log_let_go();
    unsigned held = gt_symbolize_fork_begin() ? HELD_SYMBOLS : 0;
    return held | (gt_modules_fork_begin() ? HELD_MODULES : 0);
}

void gt_fork_give_back(unsigned held)
{
    if (held & HELD_MODULES)
        gt_modules_fork_end();
    if (held & HELD_SYMBOLS)
        gt_symbolize_fork_end();
}

void gt_fork_end(unsigned held)
{
    gt_fork_give_back(held);
    gt_fork_check();
    if (!(held & NESTED))
        began = 0;
}

static __thread unsigned held_over_fork;
static __thread uint64_t since;  /* trace time */
static __thread unsigned nested; /* forks within that fork, as in a handler of a library's */

/* libc calls this one last, and after_libc_forked first: what lies between them is its fork. */
static void before_libc_forks(void)
{
    GT_KEEP_ERRNO;
    unsigned held = gt_fork_begin();
    if (held & NESTED) {
        nested++;
        return;
    }
    held_over_fork = held;
    since = gt_clock_now();
}

static void after_libc_forked(void)
{
    GT_KEEP_ERRNO;
    if (nested) {
        nested--;
        return;
    }
    gt_fork_end(held_over_fork);
    held_over_fork = 0;
    gt_slice_of_fork(since);
    since = 0; /* this handler may be called without the other one: attached in the middle */
}

/* Does not ask same_memory, as gt_fork_check does: old kernels do not wipe the page. */
static void in_libcs_child(void)
{
    GT_KEEP_ERRNO;
    gt_fork_give_back(held_over_fork);
    held_over_fork = nested = 0;
    become_child();
}

void gt_fork_watch(void)
{
    pthread_atfork(before_libc_forks, after_libc_forked, in_libcs_child);
    uint32_t *word = gt_pages_alloc(sizeof *word);
    if (word && madvise(word, sizeof *word, MADV_WIPEONFORK) == 0) {
        *word = 1;
        same_memory = word;
    }
}

void gt_fork_check(void)
{
    if (same_memory && !*same_memory)
        become_child();
}
