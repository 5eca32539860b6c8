/* What is known of locks that share an entry. */
#include "preload/registry/py_taker.h"

#include "check.h"

_Atomic uint64_t gt_py_takers[GT_PY_TAKERS];

enum { ME = 1, OTHER };

static char memory[1 << 20];
static const void *const lock = memory, *const same = memory + 16 * GT_PY_TAKERS;

/* Another thread than its taker releases the lock. */
static void pass(const void *sem)
{
    gt_py_taker_takes(sem, ME);
    gt_py_taker_posts(sem, OTHER);
}

static void clear(void)
{
    for (int i = 0; i < GT_PY_TAKERS; i++)
        gt_py_takers[i] = 0;
}

static void test_holder(void)
{
    gt_py_taker_takes(lock, ME);
    CHECK_EQ(gt_py_taker_of(lock), ME);
    gt_py_taker_posts(lock, ME);
    CHECK_EQ(gt_py_taker_of(lock), 0);
    gt_py_taker_takes(same, OTHER);
    CHECK_EQ(gt_py_taker_of(same), OTHER);
    CHECK_EQ(gt_py_taker_of(lock), 0);
    gt_py_taker_takes(lock, ME);
    CHECK_EQ(gt_py_taker_of(lock), ME);
}

static void test_passed(void)
{
    pass(lock);
    gt_py_taker_takes(lock, ME);
    CHECK_EQ(gt_py_taker_of(lock), 0);
    gt_py_taker_begins(lock);
    gt_py_taker_takes(lock, ME);
    CHECK_EQ(gt_py_taker_of(lock), ME);
}

static void test_passed_and_replaced(void)
{
    pass(lock);
    gt_py_taker_begins(same);
    gt_py_taker_takes(same, OTHER);
    CHECK_EQ(gt_py_taker_of(same), OTHER);
    gt_py_taker_posts(same, OTHER);
    gt_py_taker_takes(lock, ME);
    CHECK_EQ(gt_py_taker_of(lock), 0);
    gt_py_taker_takes(same, OTHER); /* it may be the one that was PASSED */
    CHECK_EQ(gt_py_taker_of(same), 0);
}

int main(void)
{
    void (*const tests[])(void) = {test_holder, test_passed, test_passed_and_replaced};
    CHECK_EQ(gt_py_taker_slot(lock) - gt_py_taker_slot(same), 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        clear();
        tests[i]();
    }
    return 0;
}
