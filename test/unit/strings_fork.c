/*
 * A fork at each instruction of an insertion into the table of strings: what the child finds there
 * stands in its list, which is what is written to its file.
 */
#include "encoder/base/debug.h"

#include "check.h"

#include "encoder/format/format.h"
#include "encoder/thread/strings.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { TRAP = 0x100 };
#define STEP() __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP) : "memory", "cc")
#define WALK() __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP) : "memory", "cc")

static volatile int steps, due;
static char text[32];

static void look(void *arg, struct gt_string *s)
{
    struct gt_string **wanted = arg;
    if (*wanted == s)
        *wanted = NULL;
}

static bool is_listed(struct gt_string *s)
{
    struct gt_string *wanted = s;
    s->used[1] = 1;
    gt_strings_each(1, look, &wanted);
    return !wanted;
}

/* The other thread, in the middle of the insertion, is not there any more. */
static void be_child(void)
{
    gt_debug_abandon();
    gt_strings_after_fork();
    struct gt_string *half = gt_strings_intern(text), *next = gt_strings_intern("next");
    _exit(half && next && is_listed(half) && is_listed(next) ? 0 : 1);
}

static void on_step(int number)
{
    int status = 0;
    (void)number;
    if (++steps != due)
        return;
    pid_t pid = fork();
    if (pid == 0)
        be_child();
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "in the middle of an insertion");
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_step};
    sigaction(SIGTRAP, &action, NULL);
    gt_strings_intern("first");
    for (due = 1; steps >= due - 1; due++) {
        snprintf(text, sizeof text, "%d", due);
        steps = 0;
        STEP();
        gt_strings_intern(text);
        WALK();
    }
    CHECK(due > 100, "instructions");
    return 0;
}
#else
int main(void)
{
    return 77;
}
#endif
