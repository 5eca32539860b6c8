/* See spool.h. */
#include "spool.h"

#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <string.h>

enum { BLOCK = 256 }; /* records */

static _Noreturn void fail(void)
{
    gt_fail(GT_EXIT_FAILED, "a temporary file: %s", strerror(errno));
}

static void seek(struct gt_spool *s, uint64_t block)
{
    if (fseeko(s->file, (off_t)(block * BLOCK * s->record), SEEK_SET) != 0)
        fail();
}

static void write_block(struct gt_spool *s, struct gt_spool_list *list)
{
    if (!s->file && !(s->file = tmpfile()))
        fail();
    seek(s, s->blocks);
    if (fwrite(list->last, s->record, BLOCK, s->file) != BLOCK)
        fail();
    *GT_ADD(list->block, list->blocks) = s->blocks++;
    list->last_n = 0;
}

void gt_spool_add(struct gt_spool *s, struct gt_spool_list *list, const void *record)
{
    if (list->last_n == BLOCK)
        write_block(s, list);
    list->last = gt_need_more(list->last, list->last_n, s->record);
    memcpy(list->last + list->last_n++ * s->record, record, s->record);
    list->n++;
}

void gt_spool_each(struct gt_spool *s, const struct gt_spool_list *list, gt_spool_fn *fn, void *arg)
{
    uint8_t *block = gt_need(malloc(BLOCK * s->record));
    for (size_t i = 0; i < list->blocks; i++) {
        seek(s, list->block[i]);
        if (fread(block, s->record, BLOCK, s->file) != BLOCK)
            fail();
        for (size_t k = 0; k < BLOCK; k++)
            fn(arg, block + k * s->record);
    }
    for (size_t k = 0; k < list->last_n; k++)
        fn(arg, list->last + k * s->record);
    free(block);
}
