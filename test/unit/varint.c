/* LEB128: the byte sequences of its definition, and padding. */
#include "encoder/base/varint.h"

#include "check.h"

#include <string.h>

static void check(uint64_t v, const char *bytes, size_t n)
{
    uint8_t buf[GT_VARINT_MAX];
    uint8_t *end = gt_varint_put(buf, v);
    CHECK_EQ(end - buf, n);
    CHECK(memcmp(buf, bytes, n) == 0, "value %" PRIu64, v);
    const uint8_t *p = buf;
    CHECK_EQ(gt_varint_get(&p, end), v);
    CHECK(p == end, "all of it: %" PRIu64, v);
}

int main(void)
{
    check(0, "\x00", 1);
    check(127, "\x7f", 1);
    check(128, "\x80\x01", 2);
    check(300, "\xac\x02", 2);
    check(16383, "\xff\x7f", 2);
    check(16384, "\x80\x80\x01", 3);
    check(UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    return 0;
}
