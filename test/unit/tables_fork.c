/*
 * A child that is forked while there is a black box copies the tables out of that when it gets to
 * it; by then the parent has added to them, and has written some of them into its file. What the
 * child adds has ids of its own nevertheless, and it takes nothing for written.
 */
#include "encoder/base/box.h"
#include "encoder/base/debug.h"
#include "encoder/base/era.h"
#include "encoder/drain/live.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"

#include "check.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LATE = 500, MARK = 7 };

static struct gt_string *intern(const char *who, int i)
{
    char text[32];
    snprintf(text, sizeof text, "%s %d", who, i);
    struct gt_string *s = gt_strings_intern(text);
    CHECK(s, "a string");
    return s;
}

static struct gt_stack *stack(uint64_t who, uint64_t i)
{
    const uint64_t pcs[] = {0x1000 * who, 0x100000 + i};
    struct gt_stack *s = gt_stacks_get(pcs, 2, 1);
    CHECK(s, "a stack");
    return s;
}

static void add(const char *who, int number, int n)
{
    for (int i = 0; i < n; i++) {
        intern(who, i)->written = MARK;
        stack((uint64_t)number, (uint64_t)i)->written = MARK;
    }
}

static void be_child(int forked)
{
    char byte;
    CHECK(read(forked, &byte, 1) == 1, "the parent has added to the tables");
    gt_debug_abandon();
    gt_live_after_fork();
    gt_strings_after_fork();
    gt_stacks_after_fork();
    for (int i = 0; i < LATE; i++) {
        struct gt_string *own = intern("child's", i), *late = intern("late", i);
        struct gt_stack *its = stack(3, (uint64_t)i), *others = stack(2, (uint64_t)i);
        CHECK(own->id > late->id && its->id > others->id, "ids of its own");
        CHECK(own->written != MARK && late->written != MARK, "no string is written");
        CHECK(its->written != MARK && others->written != MARK, "no stack is written");
    }
    _exit(0);
}

int main(void)
{
    enum { TABLES = 8 << 20, BUFFERS = 1 << 20, KEPT = 1 << 20 };
    int status, to_child[2], fd = memfd_create("box", 0);
    CHECK(pipe(to_child) == 0 && fd >= 0, "a pipe and a file");
    CHECK(gt_box_open(fd, 1, TABLES, BUFFERS, KEPT) == 0, "a box");
    CHECK(gt_era_begin(), "an era in it");
    add("early", 1, 10);
    pid_t child = fork();
    if (child == 0)
        be_child(to_child[0]);
    add("late", 2, LATE);
    CHECK(write(to_child[1], "", 1) == 1, "a byte");
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's tables");
    return 0;
}
