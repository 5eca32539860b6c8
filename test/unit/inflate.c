/*
 * Whatever zlib packs comes out again, in whatever pieces it is asked for and read; damaged data
 * ends, and nothing is written or read beyond the buffers: both end at pages that cannot be
 * touched. SEED=n ROUNDS=1 repeats one.
 */
#include "symbolize/inflate.h"

#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

enum { ROOM = 1 << 19, WINDOW = 4096, PAGE = 4096 };

static uint64_t state;
static __typeof__(&deflateInit2_) init;
static __typeof__(&deflate) pack;
static __typeof__(&deflateEnd) end;

static uint32_t rnd(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

/* size bytes that end where no more can be touched. */
static uint8_t *guarded(size_t size)
{
    size_t pages = (size + PAGE - 1) / PAGE * PAGE;
    uint8_t *p =
        mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && mprotect(p + pages, PAGE, PROT_NONE) == 0, "no memory");
    return p + pages - size;
}

/* From noise to a single byte, with repetitions near and far. */
static size_t make(uint8_t *text)
{
    size_t size = rnd(8) ? rnd(ROOM - 1) + 1 : rnd(20);
    uint32_t letters = 1u << rnd(9), repeats = rnd(4);
    for (size_t i = 0; i < size;) {
        size_t length = rnd(300), distance = 1 + rnd(rnd(2) ? 10 : 40000);
        if (repeats && distance <= i && rnd(4) < repeats) {
            for (; length-- && i < size; i++)
                text[i] = text[i - distance];
        } else {
            text[i++] = (uint8_t)(rnd(letters) * rnd(2));
        }
    }
    return size;
}

static size_t compress_by_zlib(const uint8_t *text, size_t size, uint8_t *packed)
{
    z_stream z = {.next_in = (Bytef *)text,
                  .avail_in = (uInt)size,
                  .next_out = packed,
                  .avail_out = 2 * ROOM};
    CHECK(init(&z, (int)rnd(10), Z_DEFLATED, -15, 1 + (int)rnd(9), (int)rnd(5), ZLIB_VERSION,
               sizeof z) == Z_OK,
          "init");
    CHECK(pack(&z, Z_FINISH) == Z_STREAM_END, "deflate");
    end(&z);
    return z.total_out;
}

/* All of it, through a window. */
static enum gt_inflated unpack(const uint8_t *packed, size_t size, uint8_t *out, size_t room)
{
    static struct gt_inflate s;
    static uint8_t *window;
    if (!window)
        window = guarded(WINDOW + GT_INFLATE_SLACK);
    s = (struct gt_inflate){.input = {.in = window, .end = window, .more = size > 0},
                            .out = out,
                            .start = out,
                            .end = out + room};
    for (size_t at = 0;;) {
        size_t done = (size_t)(s.out - out), step = rnd(3) ? rnd(10000) : room;
        enum gt_inflated r = gt_inflate(&s, out + (step < room - done ? done + step : room));
        if (r == GT_INFLATE_DAMAGED || s.out == s.end ||
            (r == GT_INFLATED && s.state == GT_INFLATE_DONE))
            return r;
        if (r != GT_INFLATE_HUNGRY)
            continue;
        size_t left = (size_t)(s.input.end - s.input.in), n = 1 + rnd(WINDOW - (uint32_t)left);
        n = n < size - at ? n : size - at;
        memmove(window, s.input.in, left);
        memcpy(window + left, packed + at, n);
        at += n;
        s.input.in = window;
        s.input.end = window + left + n;
        s.input.more = at < size;
    }
}

static void round_trip(uint64_t seed)
{
    static uint8_t text[ROOM], packed[2 * ROOM];
    state = seed;
    rnd(2);
    size_t size = make(text), n = compress_by_zlib(text, size, packed);
    static uint8_t *room;
    if (!room)
        room = guarded(ROOM);
    uint8_t *out = room + ROOM - size;
    CHECK(unpack(packed, n, out, size) == GT_INFLATED && memcmp(out, text, size) == 0,
          "SEED=%llu: %zu bytes", (unsigned long long)seed, size);
    for (uint32_t i = 0, count = 1 + rnd(20); i < count; i++)
        packed[rnd((uint32_t)n)] ^= (uint8_t)(1u << rnd(8));
    unpack(packed, rnd(2) ? n : rnd((uint32_t)n), out, size);
}

int main(void)
{
    const char *seed = getenv("SEED"), *count = getenv("ROUNDS");
    uint64_t from = seed ? strtoull(seed, NULL, 10) : 1;
    void *zlib = dlopen("libz.so.1", RTLD_NOW);
    if (!zlib) {
        fprintf(stderr, "skipped: no zlib\n");
        return 77;
    }
    init = (__typeof__(init))dlsym(zlib, "deflateInit2_");
    pack = (__typeof__(pack))dlsym(zlib, "deflate");
    end = (__typeof__(end))dlsym(zlib, "deflateEnd");
    for (int i = 0, n = count ? atoi(count) : 100; i < n; i++)
        round_trip(from + (uint64_t)i);
    return 0;
}
