/*
 * .eh_frame: two bytes say where .eh_frame_hdr begins, the rest is the object, in memory of just
 * its size. Every layout must be one that unwind.c can use.
 */
#include "preload/stacks/cfi.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct gt_cfi_object *object, uintptr_t pc)
{
    struct gt_layout l = gt_cfi_layout(object, pc);
    if (l.kind == GT_FRAME_EMPTY || l.kind > GT_FRAME_ODD || l.fp_words > GT_LAYOUT_FP_MAX ||
        l.cfa < -GT_LAYOUT_CFA_MAX || l.cfa >= GT_LAYOUT_CFA_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t n = size - 2, hdr = (data[0] | (size_t)data[1] << 8) % n;
    size_t room = (n + 15) & ~(size_t)15; /* the end is what must not be read beyond */
    uint8_t *bytes = aligned_alloc(16, room), *end = bytes + room, *lo = end - n;
    memcpy(lo, data + 2, n);
    struct gt_cfi_object object = {lo, end, lo + hdr};
    /* Code lies before it in most objects, after it in some. */
    for (uintptr_t pc = (uintptr_t)lo - 0x2000; pc < (uintptr_t)lo + 0x10040; pc += 211)
        ask(&object, pc);
    ask(&object, 0);
    free(bytes);
    return 0;
}
