/* See places.h. */
#include "places.h"

#include "symbolize/functions.h"

#include <stdio.h>
#include <string.h>

const struct gt_where *gt_site_of(const struct gt_callers *stack)
{
    for (uint32_t i = 1; stack && i < stack->n; i++) {
        if (!gt_is_wrapper(stack->frame[i].func))
            return &stack->frame[i];
    }
    return stack && stack->n > 1 ? &stack->frame[1] : NULL;
}

const char *gt_leaf_of(const struct gt_callers *stack)
{
    return stack && stack->n ? stack->frame[0].func : "(no stack)";
}

int gt_compare_pointers(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y ? -1 : x > y;
}

/* Names are interned: pointers will do. */
int gt_compare_sites(const struct gt_where *a, const struct gt_where *b)
{
    static const struct gt_where none;
    a = a ? a : &none;
    b = b ? b : &none;
    int order = gt_compare_pointers(a->func, b->func);
    order = order ? order : gt_compare_pointers(a->file, b->file);
    return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

void gt_print_place(const char *what, const struct gt_where *site)
{
    printf("%s", what);
    if (site) {
        const char *file = basename(site->file);
        printf(" <- %s", site->func);
        if (*file && site->line)
            printf(" (%s:%llu)", file, (unsigned long long)site->line);
        else if (*file)
            printf(" (%s)", file);
    }
}
