/*
 * Damaged files: whatever a file says, symbolization answers something and the process lives. Each
 * round loads nothing new: it replaces the library's file by a damaged copy of it and asks again.
 * Repeat one with SEED=n ROUNDS=1.
 */
#include "symbolize_sample.h"

#include <fcntl.h>

static const char full[] = "inner sample.c:9 | middle sample.c:13 | outer() sample.c:17";

static char original[1 << 20];
static size_t size;
static uint64_t state;

static uint32_t rnd(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static void put(const char *path, const char *data, size_t n)
{
    unlink(path);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0700);
    CHECK(fd >= 0 && write(fd, data, n) == (ssize_t)n && close(fd) == 0, "%s", path);
}

/* The code and the build ID at the front stay as they are. */
static size_t damage(char *copy)
{
    static const uint32_t words[] = {0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0xffffffff};
    size_t n = size;
    bool headers = rnd() % 8 == 0; /* else deeper: such files are mostly refused as a whole */
    memcpy(copy, original, size);
    if (rnd() % 8 == 0)
        n = 64 + rnd() % (size - 64);
    for (uint32_t i = 0, count = 1 + rnd() % (rnd() % 2 ? 4 : 40); i < count; i++) {
        size_t at = headers ? rnd() % (0x270 - 8) : 0x3000 + rnd() % (size - 0x3008);
        uint32_t word = words[rnd() % 8];
        if (rnd() % 2)
            copy[at] = (char)rnd();
        else
            memcpy(copy + at, &word, sizeof word);
    }
    return n;
}

static int changed; /* rounds whose damage showed */

static void ask(uint64_t epoch, const uint64_t *pcs, size_t n)
{
    struct gt_symbolizer *s = gt_symbolizer_new();
    for (size_t i = 0; i < n; i++)
        changed += strcmp(describe(s, epoch, pcs[i], true), full) != 0 && i == 0;
    const struct gt_module *m = gt_modules_find(epoch, pcs[0]);
    for (uint64_t pc = m->lo; pc < m->hi; pc += 61)
        describe(s, epoch, pc, false);
    gt_symbolizer_free(s);
}

static void rounds(const char *flags, const char *name, uint64_t seed, int count)
{
    static char copy[sizeof original];
    char path[256];
    CHECK(run("g++ -O2 -shared -fPIC -x c++ sample.c %s -o %s", flags, name), "%s/log", dir);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    void *lib = open_lib(name);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, original, sizeof original);
    CHECK(n > 0x4000, "read");
    close(fd);
    size = (size_t)n;
    uint64_t pcs[] = {pc_from(lib, "_Z5outerv"), pc_from(lib, "_Z10call_localv")};
    for (int i = 0; i < count; i++) {
        state = seed + (uint64_t)i;
        rnd();
        fprintf(stderr, "\rSEED=%" PRIu64 " ", seed + (uint64_t)i);
        put(path, copy, damage(copy));
        ask(gt_modules_epoch(), pcs, 2);
    }
    put(path, original, size);
    struct gt_symbolizer *s = gt_symbolizer_new();
    check_text("undamaged, after all", describe(s, gt_modules_epoch(), pcs[0], true), full);
    gt_symbolizer_free(s);
    dlclose(lib);
}

/*
 * Each entry says that the next one is its child, and its sibling too: 2^60 ways lead to the last.
 */
static void check_siblings_among_children(void)
{
    write_file("nest.c", "#include \"sample.c\"\n"
                         "__asm__(\".section .debug_abbrev\\n\"\n"
                         "        \".uleb128 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0\\n\"\n"
                         "        \".uleb128 2, 0x0b, 1, 1, 0x13, 0, 0, 0\\n\"\n"
                         "        \".section .debug_info\\n\"\n"
                         "        \".Lunit: .long .Lend - .Lunit - 4\\n .short 4\\n .long 0\\n\"\n"
                         "        \".byte 8, 1\\n .quad outer, 64\\n\"\n"
                         "        \".rept 60\\n .byte 2\\n .long . + 4 - .Lunit\\n .endr\\n\"\n"
                         "        \".zero 61\\n .Lend: .text\");\n");
    CHECK(run("gcc -O1 -shared -fPIC nest.c -o libnest.so"), "%s/log", dir);
    uint64_t pc = pc_from(open_lib("libnest.so"), "outer");
    struct gt_symbolizer *s = gt_symbolizer_new();
    check_text("nest", describe(s, gt_modules_epoch(), pc, true), "outer libnest.so:0");
    gt_symbolizer_free(s);
}

int main(void)
{
    const char *seed = getenv("SEED"), *count = getenv("ROUNDS");
    uint64_t from = seed ? strtoull(seed, NULL, 10) : 1;
    int n = count ? atoi(count) : 400;
    need("g++");
    make_dir();
    write_file("sample.c", sample_source);
    check_siblings_among_children();
    rounds("-gdwarf-5", "lib5.so", from, n);
    rounds("-gdwarf-4", "lib4.so", from, n);
    rounds("-g -gz=zlib", "libz.so", from, n);
    fprintf(stderr, "damage showed in %d of %d rounds\n", changed, 3 * n);
    CHECK(n < 100 || (changed > n / 10 && changed < 3 * n), "%d", changed);
    return 0;
}
