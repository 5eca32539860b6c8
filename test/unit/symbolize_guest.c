/*
 * Living in somebody else's process: no malloc of the program's, no descriptor left, no variable or
 * symbol changed, no network; from any thread, and in a child born in the middle of a call.
 */
#include "symbolize/elf/elfutils.h"

#include "symbolize_sample.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The first version that this architecture's libc had. */
#if defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#else
#define OLDEST "GLIBC_2.2.5"
#endif

/* The program's malloc, as a preloaded jemalloc would be: counts while it is watched. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
static _Thread_local bool watched;
static _Atomic int calls;

void *malloc(size_t n)
{
    calls += watched;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    calls += watched;
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    calls += watched;
    return __libc_realloc(p, n);
}

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

int main(void);

/* Asked for the loader's sake: what dlmopen itself allocates is the loader's record of it. */
static void warm_up(struct gt_symbolizer *s)
{
    struct gt_sym_frame f;
    gt_symbolize(s, gt_modules_epoch(), (uint64_t)(uintptr_t)main, false, &f, 1);
}

static uint64_t pc;
static struct gt_symbolizer *shared;

static void *ask(void *unused)
{
    struct gt_sym_frame f[8];
    (void)unused;
    watched = true;
    int n = gt_symbolize(shared, gt_modules_epoch(), pc, true, f, 8);
    watched = false;
    CHECK_EQ(n, 3);
    check_text("from a thread", f[2].func, "outer");
    return NULL;
}

static void in_thread(void)
{
    pthread_t t;
    CHECK(pthread_create(&t, NULL, ask, NULL) == 0, "thread");
    pthread_join(t, NULL);
}

/* A server that must never be asked. */
static int listen_as_debuginfod(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 4) == 0,
          "listen");
    getsockname(fd, (struct sockaddr *)&a, &len);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(a.sin_port));
    setenv("DEBUGINFOD_URLS", url, 1);
    return fd;
}

static jmp_buf bail;

/* What elfutils calls, as its libraries are bound: neither ends the process, nor brings others. */
static void check_calls(void)
{
    gt_elfutils_enter(&bail);
    const struct gt_elfutils *api = gt_elfutils_get();
    CHECK(api, "no elfutils");
    if (!api->private_libc && !dlvsym(RTLD_DEFAULT, "pthread_create", "GLIBC_2.34")) {
        fprintf(stderr, "skipped: elfutils has no namespace of its own before glibc 2.34\n");
        exit(77);
    }
    CHECK(api->private_libc, "no namespace");
    struct link_map *libdw;
    Dl_info info;
    CHECK(dladdr1((void *)api->dwarf_end, &info, (void **)&libdw, RTLD_DL_LINKMAP), "libdw");
    static const char *const ends[] = {"abort", "__assert_fail"};
    for (volatile int i = 0; i < 2; i++) {
        void (*end)(void) = (void (*)(void))dlsym(libdw, ends[i]);
        CHECK(end, "%s", ends[i]);
        if (setjmp(bail) == 0) {
            end();
            CHECK(false, "%s returned", ends[i]);
        }
    }
    static const char *const versions[] = {"GLIBC_2.34", OLDEST};
    for (int i = 0; i < 2; i++) {
        void *(*open)(const char *, int) =
            (void *(*)(const char *, int))dlvsym(libdw, "dlopen", versions[i]);
        CHECK(open && open != dlopen && !open("libc.so.6", RTLD_NOW), "%s", versions[i]);
    }
    gt_elfutils_leave();
}

static _Atomic bool stop;

static void *keep_asking(void *unused)
{
    while (!stop) {
        struct gt_symbolizer *s = gt_symbolizer_new();
        struct gt_sym_frame f[8];
        gt_symbolize(s, gt_modules_epoch(), pc, true, f, 8);
        gt_symbolizer_free(s);
    }
    return unused;
}

/* Forks while another thread is inside elfutils, holding its malloc's lock as likely as not. */
static void check_fork(void)
{
    pthread_t t;
    int in_the_middle = 0;
    CHECK(pthread_create(&t, NULL, keep_asking, NULL) == 0, "thread");
    for (int i = 0; i < 60; i++) {
        usleep(500 + 137 * (useconds_t)i % 900);
        pid_t child = fork();
        if (child == 0) {
            struct gt_sym_frame f[8];
            alarm(20);
            struct gt_symbolizer *s = shared; /* the parent's, idle at the fork */
            int n = gt_symbolize(s, gt_modules_epoch(), pc, true, f, 8);
            s = gt_symbolizer_new();
            n += gt_symbolize(s, gt_modules_epoch(), (uint64_t)(uintptr_t)main, false, f, 8);
            bool good = n == 4 && strcmp(f[0].func, "main") == 0;
            gt_symbolizer_free(s);
            _exit(!good ? 1 : gt_elfutils_generation() ? 77 : 0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && (status == 0 || status == 77 << 8),
              "child %d: status %x", i, status);
        in_the_middle += status != 0;
    }
    CHECK(in_the_middle > 0, "no fork came in the middle of a call");
    stop = true;
    pthread_join(t, NULL);
}

int main(void)
{
    need("gcc");
    make_dir();
    write_file("sample.c", sample_source);
    CHECK(run("gcc -O2 -g -shared -fPIC sample.c -o lib.so && strip lib.so -o libs.so"), "build");
    int server = listen_as_debuginfod();
    bool had_zlib = dlsym(RTLD_DEFAULT, "inflate") != NULL;
    int before = descriptors();
    shared = gt_symbolizer_new();
    void *lib = open_lib("lib.so");
    pc = pc_from(lib, "outer");
    uint64_t stripped = pc_from(open_lib("libs.so"), "call_local");
    in_thread(); /* the first call of all, and the thread is gone afterwards */
    calls = 0;
    warm_up(shared);
    in_thread();
    struct gt_sym_frame f[8];
    struct gt_symbolizer *s = gt_symbolizer_new();
    char *environment = getenv("DEBUGINFOD_URLS");
    watched = true;
    int n = gt_symbolize(s, gt_modules_epoch(), pc, true, f, 8);
    gt_symbolize(s, gt_modules_epoch(), stripped, true, f + 3, 5);
    gt_modules_refresh();
    watched = false;
    CHECK_EQ(n, 3);
    CHECK_EQ(calls, 0);
    CHECK_EQ(descriptors(), before);
    CHECK(environment == getenv("DEBUGINFOD_URLS"), "the program's environment changed");
    CHECK(accept(server, NULL, NULL) < 0, "asked a debuginfod server");
    CHECK(had_zlib == (dlsym(RTLD_DEFAULT, "inflate") != NULL), "zlib in the global scope");
    CHECK(!dlsym(RTLD_DEFAULT, "dwarf_begin"), "libdw in the global scope");
    gt_symbolizer_free(s);
    check_calls();
    check_fork();
    gt_symbolizer_free(shared);
    return 0;
}
