/*
 * Writes folded stacks: a line for each stack, its frames with the outermost first, and its
 * nanoseconds or samples, such as "main;work;pthread_mutex_lock 1200".
 */
#include "export_stacks.h"

#include "encoder/base/utf8.h"

#include <inttypes.h>
#include <string.h>

struct line {
    FILE *file;
    bool begun;
};

/* Writes a frame in UTF-8; a semicolon, which separates frames, becomes a colon. */
static void put_frame(void *arg, const char *name)
{
    struct line *line = arg;
    if (line->begun)
        putc(';', line->file);
    line->begun = true;
    for (size_t left = strlen(name), n; left; name += n, left -= n) {
        n = gt_utf8_character(name, left);
        if (!n || (unsigned char)*name < ' ')
            fputs(GT_UTF8_UNKNOWN, line->file);
        else if (*name == ';')
            putc(':', line->file);
        else
            fwrite(name, 1, n, line->file);
        n = n ? n : 1;
    }
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
