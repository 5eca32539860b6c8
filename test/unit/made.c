/*
 * Who was at an address, against what each address says itself: code comes at random, mostly in the
 * place of other code, in several rounds; so much that what was replaced is dropped in between.
 */
#include "check.h"

#include "symbolize/made/made.h"
#include "symbolize/symbolize.h"

#include <string.h>

enum { SPACE = 3000, LONGEST = 40, ROUNDS = 30, ADDED = 8000, BASE = 4096, ROUND_NS = 1000 };

/* The function there now, and the one at the end of the round before; 0: none. */
static uint32_t now[SPACE], before[SPACE];

static uint64_t state = 1;

static uint32_t rnd(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

static const char *name_of(uint32_t number)
{
    static char name[16];
    snprintf(name, sizeof name, "f%u", number);
    return name;
}

static void add(struct gt_made_functions *made, uint32_t number, uint64_t ns)
{
    uint32_t lo = rnd(SPACE - LONGEST), size = 1 + rnd(LONGEST);
    struct gt_made_code code = {.lo = BASE + lo, .hi = BASE + lo + size, .since = ns, .known = ns};
    bool gone = rnd(10) == 0;
    code.name = gone ? NULL : name_of(number);
    gt_made_add(made, &code, gone ? 0 : strlen(code.name));
    for (uint32_t i = lo; i < lo + size; i++)
        now[i] = gone ? 0 : number;
}

/* In that time nothing came. */
static void check_sure(struct gt_made_functions *made, uint64_t ns, const uint32_t *expected)
{
    struct gt_sym_frame frame;
    for (uint32_t i = 0; i < SPACE; i++) {
        bool found = gt_made_find(made, BASE + i, ns, ns, &frame);
        CHECK(found == (expected[i] != 0), "%u: %s at %u", expected[i], found ? frame.func : "none",
              i);
        CHECK(!found || strcmp(frame.func, name_of(expected[i])) == 0, "%u: %s at %u", expected[i],
              frame.func, i);
    }
}

/* A function that is named was there, or none is named; with several, the one that was there first
 * and last. */
static uint32_t check_unsure(struct gt_made_functions *made, uint64_t begin, uint64_t end)
{
    struct gt_sym_frame frame;
    uint32_t several = 0;
    for (uint32_t i = 0; i < SPACE; i++) {
        if (!gt_made_find(made, BASE + i, begin, end, &frame) || before[i] == now[i])
            continue;
        bool is_both = strstr(frame.func, " or ") || !now[i] || !before[i];
        CHECK(is_both, "%s, not f%u and f%u", frame.func, before[i], now[i]);
        several++;
    }
    return several;
}

static void test_random(void)
{
    static struct gt_made_functions made;
    uint32_t number = 0, several = 0;
    size_t most = 0;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint64_t begin = (uint64_t)round * ROUND_NS;
        /* Few come in some rounds: then it is mostly known who was there before. */
        uint32_t added = round % 3 ? ADDED : 20;
        memcpy(before, now, sizeof now);
        gt_made_begin(&made);
        for (uint32_t i = 0; i < added; i++)
            add(&made, ++number, begin + 1 + i % (ROUND_NS / 2));
        gt_made_end(&made);
        most = made.n > most ? made.n : most;
        check_sure(&made, begin + ROUND_NS - 1, now);
        if (added < ADDED) {
            check_sure(&made, begin, before);
            several += check_unsure(&made, begin, begin + ROUND_NS - 1);
        }
    }
    CHECK(several > 100, "%u", several);
    CHECK(number > 2 * most && most < 100000, "%u were added, %zu kept", number, most);
    gt_made_clear(&made);
}

/* Not known: more turns than anybody keeps, in one stretch of time. */
static void test_too_many(void)
{
    static struct gt_made_functions made;
    struct gt_sym_frame frame;
    struct gt_made_code code = {.lo = BASE, .hi = BASE + 8};
    gt_made_begin(&made);
    for (uint32_t i = 1; i <= 4; i++) {
        code.since = code.known = i;
        code.name = name_of(i);
        gt_made_add(&made, &code, 2);
    }
    gt_made_end(&made);
    CHECK(gt_made_find(&made, BASE, 1, 3, &frame), "three");
    CHECK(strcmp(frame.func, "f1 or f2 or f3") == 0, "%s", frame.func);
    CHECK(!gt_made_find(&made, BASE, 1, 4, &frame), "four: %s", frame.func);
    CHECK(!gt_made_find(&made, BASE, 0, 0, &frame), "before: %s", frame.func);
    gt_made_clear(&made);
}

static void test_all_gone(void)
{
    static struct gt_made_functions made;
    struct gt_sym_frame frame;
    struct gt_made_code code = {.lo = BASE, .hi = BASE + 8, .known = 1, .name = "f1"};
    gt_made_begin(&made);
    gt_made_add(&made, &code, 2);
    gt_made_all_gone(&made, 5);
    gt_made_end(&made);
    CHECK(gt_made_find(&made, BASE, 2, 4, &frame), "before");
    CHECK(!gt_made_find(&made, BASE, 5, 6, &frame), "after: %s", frame.func);
    gt_made_begin(&made);
    gt_made_all_gone(&made, 8);
    gt_made_end(&made);
    CHECK(!gt_made_find(&made, BASE, 2, 4, &frame), "dropped: %s", frame.func);
    gt_made_clear(&made);
}

int main(void)
{
    test_random();
    test_too_many();
    test_all_gone();
    return 0;
}
