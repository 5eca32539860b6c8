/*
 * Each rule that `make debug` checks (encoder/base/debug.h), broken on purpose: the process that
 * does so ends by SIGTRAP, and says which. In an ordinary build nothing of this is looked at.
 */
#include "encoder/base/debug.h"
#include "encoder/thread/states.h"

#include "check.h"

#include "encoder/base/futex.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/generation.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/switch.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static struct gt_lock outer, inner;
static struct gt_writer w, other;
static _Atomic uint32_t word;

static void wrong_order(void)
{
    gt_lock(&inner, GT_RANK_STRINGS);
    gt_lock(&outer, GT_RANK_SHARD);
}

static void twice(void)
{
    gt_lock(&inner, GT_RANK_G);
    gt_lock_within(&inner, GT_RANK_G, 0);
}

static void sleeps_while_busy(void)
{
    CHECK(gt_writer_pin(&w));
    gt_futex_wait(&word, 0, 1);
}

static void not_the_drain_side(void)
{
    gt_generation_forget();
    gt_generation_write_queued();
}

static void writes_unpinned(void)
{
    gt_ev_procs_change(&w, 1, NULL);
}

static void writes_as_another(void)
{
    CHECK(gt_writer_pin(&other));
    gt_ev_procs_change(&w, 1, NULL);
}

/* The drain side in the middle of an event of its own. It would wait for itself. */
static void moves_pinned(void)
{
    CHECK(gt_writer_pin(&w));
    gt_lock(&outer, GT_RANK_SIDE);
    gt_switch_set_deadline(1); /* not for long */
    gt_switch_all(gt_writer_gen(&w) + 1, 0, NULL);
}

static void state_without_lock(void)
{
    CHECK(gt_writer_pin(&w));
    gt_ev_statuses_locked(&w, gt_writer_gen(&w));
}

static void older_than_the_status(void)
{
    CHECK(gt_writer_pin(&w));
    gt_lock(&w.g.lock, GT_RANK_G);
    w.g.status_gen = gt_writer_gen(&w) + 1;
    gt_ev_statuses_locked(&w, gt_writer_gen(&w));
}

static void withdraws_pinned(void)
{
    CHECK(gt_writer_pin(&w));
    gt_call_withdraw(&w, 1);
}

static void effect_before_cause(void)
{
    other.g.state = GT_G_WAITING;
    other.g.stated = UINT64_MAX; /* nothing is after that */
    CHECK(gt_writer_pin(&w));
    gt_ev_go_unblock(&w, &other.g, NULL);
}

static const struct {
    void (*breaks)(void);
    const char *rule;
} rules[] = {
    {wrong_order, "lock order"},
    {twice, "lock order"},
    {sleeps_while_busy, "busy threads do not sleep"},
    {not_the_drain_side, "what is for the drain side alone"},
    {writes_unpinned, "writer.h, rule 1"},
    {writes_as_another, "writer.h, rule 1"},
    {moves_pinned, "writer.h, rule 2"},
    {state_without_lock, "writer.h, rule 3"},
    {older_than_the_status, "writer.h, rule 4"},
    {withdraws_pinned, "writer.h, rule 5"},
    {effect_before_cause, "writer.h, rule 6"},
};

static void start(void)
{
    gt_clock_init();
    gt_drain_open(&(struct gt_drain_config){
        .file = {.path = "/dev/null", .format = gt_format_find("go1.23")}});
    gt_writer_register(&w);
    gt_writer_register(&other);
    for (int i = 0; i < 2; i++) {
        struct gt_writer *each = i ? &other : &w;
        each->m = 100 + (uint32_t)i;
        each->g.id = 1 + (uint64_t)i;
        CHECK(gt_writer_pin(each));
        gt_ev_thread_running(each);
        gt_writer_unpin(each);
    }
}

/* The status of a child that breaks it, and what it says. */
static int break_one(void (*breaks)(void), char *said, size_t size)
{
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        breaks();
        _exit(0);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], said, size - 1);
    said[n > 0 ? n : 0] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

int main(void)
{
    start();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char said[512];
        int status = break_one(rules[i].breaks, said, sizeof said);
#ifdef GT_DEBUG
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP, "%s: %x", rules[i].rule, status);
        CHECK(strstr(said, rules[i].rule), "%s: %s", rules[i].rule, said);
#else
        CHECK(status == 0 && !*said, "%s: %x, %s", rules[i].rule, status, said);
#endif
    }
    return 0;
}
