/* See placing.h. */
#include "placing.h"

#include "encoder/read/need.h"
#include "symbolize/elf/modules.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* The modules of all traces, each once. */
static struct {
    struct its {
        uint64_t lo, hi;     /* where it is shown */
        char *source, *text; /* description in the source; as written */
    } * at;
    size_t n;
    uint64_t next; /* the first free address for modules that are moved */
} all = {.next = GT_MODULES_ELSEWHERE << 1};

static const struct its *find_same(const char *description)
{
    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.at[i].source, description) == 0)
            return &all.at[i];
    }
    return NULL;
}

static bool is_taken(const struct gt_module *m)
{
    for (size_t i = 0; i < all.n; i++) {
        if (m->lo < all.at[i].hi && all.at[i].lo < m->hi)
            return true;
    }
    return false;
}

/* Whether an unmoved module of the trace is there: a trace may show several of its own at once. */
static bool is_own(const struct gt_placing *placing, const struct gt_module *m)
{
    for (size_t i = 0; i < placing->n; i++) {
        if (m->lo < placing->at[i].hi && placing->at[i].lo < m->hi)
            return !placing->at[i].away;
    }
    return false;
}

/* The description with `lo` as its address. */
static char *describe_at(const char *description, uint64_t lo)
{
    const char *number = strchr(description, ' ') + 1, *rest = strchr(number, ' ');
    size_t room = strlen(description) + 24;
    char *text = gt_need(malloc(room));
    snprintf(text, room, "%.*s%llx%s", (int)(number - description), description,
             (unsigned long long)lo, rest);
    return text;
}

static const struct its *show(const char *description, char *text, uint64_t lo, uint64_t hi)
{
    struct its *its = GT_ADD(all.at, all.n);
    *its = (struct its){lo, hi, gt_need(strdup(description)), text};
    return its;
}

static const struct its *show_elsewhere(const char *description, const struct gt_module *m)
{
    uint64_t lo = all.next, size = m->hi - m->lo;
    all.next += (size + 2 * PAGE - 1) / PAGE * PAGE;
    return show(description, describe_at(description, lo), lo, lo + size);
}

/*
 * Forked processes have the same modules at the same addresses, so their descriptions are equal. A
 * module at another address has another description.
 */
void gt_placing_add(struct gt_placing *placing, const char *description)
{
    struct gt_module m = {0};
    if (!gt_modules_parse(description, &m))
        return;
    const struct its *its = find_same(description);
    if (!its && is_taken(&m) && !is_own(placing, &m))
        its = show_elsewhere(description, &m);
    else if (!its)
        its = show(description, gt_need(strdup(description)), m.lo, m.hi);
    for (size_t i = 0; i < placing->n; i++) {
        if (placing->at[i].lo == m.lo && placing->at[i].description == its->text)
            return;
    }
    *GT_ADD(placing->at, placing->n) = (struct gt_placed){m.lo, m.hi, its->lo - m.lo, its->text};
}

const struct gt_placed *gt_placing_find(const struct gt_placing *placing, uint64_t pc)
{
    for (size_t i = placing->n; i-- > 0;) {
        if (pc >= placing->at[i].lo && pc < placing->at[i].hi)
            return &placing->at[i];
    }
    return NULL;
}

void gt_placing_free(struct gt_placing *placing)
{
    free(placing->at);
    *placing = (struct gt_placing){0};
}
