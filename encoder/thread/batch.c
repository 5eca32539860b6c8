/* See batch.h. */
#include "batch.h"

#include "encoder/format/format.h"

#include <string.h>

uint8_t *gt_batch_header(uint8_t *p, uint32_t gen, uint32_t m, uint64_t ts, uint32_t size)
{
    *p++ = GT_EV_EVENT_BATCH;
    p = gt_varint_put(p, gen);
    p = gt_varint_put(p, m);
    p = gt_varint_put(p, ts);
    return gt_varint_put(p, size);
}

bool gt_batch_pack(struct gt_packed *packed, uint32_t gen, uint32_t m, uint64_t ts,
                   const void *data, uint32_t size)
{
    struct gt_buf *last = packed->last;
    if (!last || GT_BUF_ROOM - last->used < GT_BATCH_HEADER_MAX + size) {
        struct gt_buf *fresh = gt_buffers_get(true);
        if (!fresh)
            return false;
        if (last)
            last->next = fresh;
        else
            packed->first = fresh;
        packed->last = last = fresh;
        gt_buffers_claim(fresh, packed->again ? 0 : gen, GT_BUF_PACKED, ts);
    }
    uint8_t *p = gt_batch_header(last->data + last->used, gen, m, ts, size);
    memcpy(p, data, size);
    /* release: as gt_put_end */
    __atomic_store_n(&last->used, (uint32_t)(p + size - last->data), __ATOMIC_RELEASE);
    return true;
}
