/* The module map: libraries that go, come back elsewhere, are replaced, or lose their file. */
#include "symbolize_sample.h"

#include "symbolize/elf/image.h"

#include <pthread.h>
#include <sys/mman.h>

static const char full[] = "inner sample.c:9 | middle sample.c:13 | outer sample.c:17";

static void build(const char *name, const char *outer)
{
    CHECK(run("sed 's/outer/%s/' sample.c >%s.c && gcc -O2 -g -shared -fPIC %s.c -o lib%s.so",
              outer, name, name, name),
          "%s/log", dir);
}

/* The place of a library that is away is nobody else's until it comes back. */
static void keep_place(const struct gt_module *m)
{
    void *place = (void *)(uintptr_t)m->lo;
    CHECK(mmap(place, m->hi - m->lo, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
               -1, 0) == place,
          "%s: its place", m->path);
}

/* The loader takes the highest place that is free: that is this one now. */
static void free_place(const struct gt_module *m)
{
    size_t size = 4096;
    void *page;
    while ((page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED &&
           (uintptr_t)page > m->lo)
        ;
    CHECK(munmap(page, size) == 0, "what is below");
    CHECK(munmap((void *)(uintptr_t)m->lo, m->hi - m->lo) == 0, "%s: its place", m->path);
}

/* A library's addresses keep their names when it is gone and another one is in its place. */
static void check_epochs(void)
{
    char expected[256];
    build("one", "outer1");
    build("two", "outer2");
    void *lib = open_lib("libone.so");
    uint64_t first = gt_modules_epoch(), pc = pc_from(lib, "outer1");
    CHECK_EQ(gt_modules_refresh(), first);
    const struct gt_module *one = gt_modules_find(first, pc);
    CHECK(one && one->build_id_len == 20, "one");
    dlclose(lib);
    /* No snapshot in between: two takes the very same place. */
    lib = open_lib("libtwo.so");
    uint64_t second = gt_modules_epoch(), pc2 = pc_from(lib, "outer2");
    CHECK(second > first, "epoch %" PRIu64, second);
    const struct gt_module *two = gt_modules_find(second, pc2);
    CHECK(two && two != one && strstr(two->path, "/libtwo.so"), "two");
    CHECK(gt_modules_find(first, pc) == one, "one in its epoch");
    CHECK(gt_modules_find(second, pc) != one, "one is gone");
    struct gt_symbolizer *s = gt_symbolizer_new();
    snprintf(expected, sizeof expected, "inner two.c:9 | middle two.c:13 | outer2 two.c:17");
    check_text("two", describe(s, second, pc2, true), expected);
    snprintf(expected, sizeof expected, "inner one.c:9 | middle one.c:13 | outer1 one.c:17");
    check_text("one", describe(s, first, pc, true), expected);
    check_text("two again", describe(s, second, pc2, true),
               "inner two.c:9 | middle two.c:13 | outer2 two.c:17");
    dlclose(lib);
    keep_place(two);
    CHECK(gt_modules_refresh() > second, "an epoch ended");
    CHECK(!gt_modules_find(gt_modules_epoch(), pc2), "nothing there");
    snprintf(expected, sizeof expected, "0x%" PRIx64 " :0", pc2);
    check_text("nothing", describe(s, gt_modules_epoch(), pc2, true), expected);
    /* Back again before anybody else was there: it was there all the time. */
    uint64_t between = gt_modules_epoch();
    free_place(two);
    lib = open_lib("libtwo.so");
    CHECK_EQ(pc_from(lib, "outer2"), pc2);
    CHECK(gt_modules_find(gt_modules_epoch(), pc2) == two, "the old entry");
    CHECK(gt_modules_find(between, pc2) == two && gt_modules_find(first, pc2) != two, "since two");
    dlclose(lib);
    gt_modules_refresh();
    gt_symbolizer_free(s);
}

/* What an address means in two epochs: the same, unless a module has left it. */
static void check_same(void)
{
    enum { MORE = 70 };
    void *lib = open_lib("libone.so");
    uint64_t epoch = gt_modules_epoch(), pcs[] = {(uintptr_t)check_epochs, pc_from(lib, "outer1")};
    CHECK(gt_modules_same(pcs, 2, (uint32_t)epoch, (uint32_t)epoch), "one epoch");
    dlclose(lib);
    uint64_t after = gt_modules_refresh();
    CHECK(after > epoch, "left");
    CHECK(gt_modules_same(pcs, 1, (uint32_t)epoch, (uint32_t)after), "our own has not");
    CHECK(gt_modules_same(pcs, 1, (uint32_t)after, (uint32_t)epoch), "nor backwards");
    CHECK(!gt_modules_same(pcs + 1, 1, (uint32_t)epoch, (uint32_t)after), "outer1 has");
    CHECK(!gt_modules_same(pcs, 2, (uint32_t)epoch, (uint32_t)after), "one of them has");
    gt_modules_age();
    CHECK_EQ(gt_modules_epoch(), after + 1);
    CHECK(gt_modules_same(pcs, 2, (uint32_t)after, (uint32_t)after + 1), "nothing has");
    for (int i = 0; i < MORE; i++) {
        dlclose(open_lib("libone.so"));
        gt_modules_refresh();
    }
    CHECK(!gt_modules_same(pcs, 1, (uint32_t)epoch, (uint32_t)gt_modules_epoch()), "too long ago");
    CHECK(gt_modules_same(pcs, 1, (uint32_t)gt_modules_epoch() - 60, (uint32_t)gt_modules_epoch()),
          "not so long ago");
}

/* One again and again is one entry; of others those stay that a stack may need. */
static void check_forget(void)
{
    enum { LIBRARIES = 100, NEEDED = 37 };
    struct gt_memo epochs = {.slots = NULL};
    uint64_t needed = 0, pc = 0, other = 0, other_pc = 0;
    size_t before = gt_modules_gone();
    struct gt_module last = {0};
    for (int i = 0; i < LIBRARIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "libcopy%d.so", i);
        CHECK(run("cp libone.so %s", name), "cp");
        void *lib = open_lib(name);
        *(i == NEEDED ? &needed : &other) = gt_modules_refresh();
        *(i == NEEDED ? &pc : &other_pc) = pc_from(lib, "outer1");
        if (i == LIBRARIES - 1)
            last = *gt_modules_find(other, other_pc);
        dlclose(lib);
        if (i == LIBRARIES - 1)
            keep_place(&last);
        gt_modules_refresh();
    }
    CHECK_EQ(gt_modules_gone(), before + LIBRARIES);
    CHECK(strstr(gt_modules_find(other, other_pc)->path, "/libcopy99.so"), "the last one");
    last.path = "the last one"; /* that is forgotten, too */
    *gt_memo_at(&epochs, needed) = 1;
    CHECK(gt_modules_forget(&epochs), "memory");
    CHECK(gt_modules_gone() <= 2, "%zu are left", gt_modules_gone()); /* it follows another */
    CHECK(strstr(gt_modules_find(needed, pc)->path, "/libcopy37.so"), "the needed one");
    CHECK(!gt_modules_find(other, other_pc), "the last one is forgotten");
    const struct gt_module *self = gt_modules_find(gt_modules_epoch(), (uintptr_t)check_epochs);
    CHECK(self && self->unloaded == UINT64_MAX && self->path[0] == '/', "what is there");
    free_place(&last);
    void *lib = open_lib("libcopy99.so");
    CHECK_EQ(pc_from(lib, "outer1"), other_pc);
    const struct gt_module *m = gt_modules_find(gt_modules_refresh(), other_pc);
    CHECK(m && m->shown != m->lo, "shown elsewhere: addresses there meant something else");
    dlclose(lib);
    gt_modules_refresh();
    gt_memo_free(&epochs);
}

static _Atomic bool enough;

static void *look(void *unused)
{
    while (!enough) {
        const struct gt_module *m = gt_modules_now((uintptr_t)check_forget);
        CHECK(m && m->path[0] == '/', "what is there");
        CHECK(!gt_modules_now(1), "nothing is there");
    }
    return unused;
}

/* Threads look for modules while others are forgotten. */
static void check_now(void)
{
    pthread_t threads[2];
    const struct gt_module *before = gt_modules_now((uintptr_t)check_now);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, look, NULL) == 0, "thread");
    check_forget();
    enough = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    const struct gt_module *after = gt_modules_now((uintptr_t)check_now);
    CHECK(before != after && strcmp(before->path, after->path) == 0, "it has moved");
}

/* In a child all is found in the list of all modules. */
static void check_fork(void)
{
    void *lib = open_lib("libone.so");
    uint64_t epoch = gt_modules_epoch(), pc = pc_from(lib, "outer1");
    const struct gt_module *m = gt_modules_find(epoch, pc);
    size_t gone = gt_modules_gone();
    gt_modules_after_fork();
    CHECK_EQ(gt_modules_gone(), gone);
    CHECK_EQ(gt_modules_refresh(), epoch);
    CHECK(m && gt_modules_find(epoch, pc) == m, "there");
    dlclose(lib);
    CHECK(gt_modules_refresh() > epoch && !gt_modules_now(pc), "gone");
    CHECK_EQ(gt_modules_gone(), gone + 1);
    CHECK(gt_modules_find(epoch, pc) == m, "then it was there");
}

/* Opened before anything else, what the file says now would be about another build. */
static void check_file(const char *what, const char *change, bool offset_only)
{
    char name[64], expected[256];
    CHECK(run("gcc -O2 -g -shared -fPIC sample.c -o lib%s.so", what), "%s/log", dir);
    snprintf(name, sizeof name, "lib%s.so", what);
    void *lib = open_lib(name);
    uint64_t epoch = gt_modules_epoch(), pc = pc_from(lib, "outer");
    CHECK(run("%s", change), "%s: %s/log", change, dir);
    struct gt_symbolizer *s = gt_symbolizer_new();
    const struct gt_module *m = gt_modules_find(epoch, pc);
    snprintf(expected, sizeof expected, "%s+0x%" PRIx64 " %s:0", name, pc - 1 - m->bias, name);
    check_text(what, describe(s, epoch, pc, true), offset_only ? expected : full);
    gt_symbolizer_free(s);
}

/* A relative name still means the same file after chdir. */
static void check_relative(void)
{
    build("rel", "outer3");
    CHECK(chdir(dir) == 0, "chdir");
    void *lib = dlopen("./librel.so", RTLD_NOW);
    CHECK(lib, "%s", dlerror());
    gt_modules_refresh();
    uint64_t pc = pc_from(lib, "outer3");
    CHECK(chdir("/") == 0, "chdir");
    struct gt_symbolizer *s = gt_symbolizer_new();
    check_text("relative", describe(s, gt_modules_epoch(), pc, true),
               "inner rel.c:9 | middle rel.c:13 | outer3 rel.c:17");
    CHECK(gt_modules_find(gt_modules_epoch(), pc)->path[0] == '/', "absolute");
    gt_symbolizer_free(s);
}

/*
 * Notes aligned to 8 bytes: their contents begin at such an offset, whatever their name's length.
 */
static void check_notes(void)
{
    static const _Alignas(8) struct {
        uint32_t property[4], value[4], build_id[4];
        uint8_t id[8];
    } notes = {{4, 16, NT_GNU_PROPERTY_TYPE_0, 0x554e47},
               {0xc0000002, 4, 3, 0},
               {4, 8, NT_GNU_BUILD_ID, 0x554e47},
               {1, 2, 3, 4, 5, 6, 7, 8}};
    uint8_t id[32];
    for (size_t align = 4; align <= 8; align += 4)
        CHECK(gt_build_id_in(&notes, sizeof notes, align, id) == 8 && memcmp(id, notes.id, 8) == 0,
              "alignment %zu", align);
    CHECK(gt_build_id_in(&notes, sizeof notes - 1, 8, id) == 0, "cut");
}

int main(void)
{
    need("gcc");
    make_dir();
    write_file("sample.c", sample_source);
    CHECK(gt_modules_epoch() == 0 && gt_modules_refresh() == 1, "first");
    const struct gt_module *self = gt_modules_find(1, (uint64_t)(uintptr_t)main);
    char exe[4096] = "";
    CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0, "exe");
    check_text("executable", self->path, exe);
    check_notes();
    check_epochs();
    check_same();
    check_now();
    check_fork();
    check_file("same", "true", false);
    check_file("gone", "rm libgone.so", true);
    check_file("other", "rm libother.so && gcc -O1 -g -shared -fPIC sample.c -o libother.so", true);
    check_file("empty", "rm libempty.so && : >libempty.so", true);
    check_file("text", "rm libtext.so && cp sample.c libtext.so", true);
    check_file("dir", "rm libdir.so && mkdir libdir.so", true);
    check_file("fifo", "rm libfifo.so && mkfifo libfifo.so", true);
    check_file("moved", "cp libmoved.so x && mv x libmoved.so", false);
    check_relative();
    return 0;
}
