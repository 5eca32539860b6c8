/*
 * Folded stacks: a line for each, "main;work;pthread_mutex_lock 1200", its frames with the
 * outermost first, and its nanoseconds or samples.
 */
#include "stacks.h"

#include <inttypes.h>

struct line {
    FILE *file;
    bool begun;
};

/* What the format itself is made of becomes a colon. */
static void put_frame(void *arg, const char *name)
{
    struct line *line = arg;
    if (line->begun)
        putc(';', line->file);
    line->begun = true;
    for (; *name; name++)
        putc(*name == ';' ? ':' : *name, line->file);
}

void gt_export_folded(const struct gt_export *x)
{
    struct gt_stack_sums sums = {0};
    gt_stack_sums_read(&sums, x, x->trace);
    for (size_t i = 0; i < sums.n; i++) {
        gt_stack_sum_frames(&sums.sum[i], x->wakers, put_frame, &(struct line){x->file, false});
        fprintf(x->file, " %" PRIu64 "\n", sums.sum[i].value);
    }
}
