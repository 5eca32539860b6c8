/* Tests of symbolize/: building small libraries at run time and asking about addresses in them. */
#pragma once

#include "symbolize/elf/modules.h"
#include "symbolize/symbolize.h"

#include "check.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64]; /* of this test; removed at exit */

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (system(command) != 0)
        fprintf(stderr, "cannot remove %s\n", dir);
}

static inline void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/gotrace-symbolize-XXXXXX");
    CHECK(mkdtemp(dir), "mkdtemp");
    atexit(remove_dir);
}

/* Runs a shell command in the directory; true when it succeeded. */
__attribute__((format(printf, 1, 2))) static inline bool run(const char *format, ...)
{
    char command[4096];
    int n = snprintf(command, sizeof command, "cd %s && exec 2>>log && ", dir);
    va_list ap;
    va_start(ap, format);
    vsnprintf(command + n, sizeof command - (size_t)n, format, ap);
    va_end(ap);
    return system(command) == 0;
}

static inline void need(const char *tool)
{
    char command[128];
    snprintf(command, sizeof command, "command -v %s >/dev/null", tool);
    if (system(command) != 0) {
        fprintf(stderr, "skipped: no %s\n", tool);
        exit(77);
    }
}

static inline void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

/* outer() returns an address inside itself, behind two inlined calls: lines 9, 13, 17. */
static const char sample_source[] = "__attribute__((noinline)) void *here(void)\n" /* 1 */
                                    "{\n"                                          /* 2 */
                                    "    __asm__ volatile(\"\");\n"                /* 3 */
                                    "    return __builtin_return_address(0);\n"    /* 4 */
                                    "}\n"                                          /* 5 */
                                    "#define IN static inline __attribute__((always_inline))\n"
                                    "IN void *inner(void)\n"                    /* 7 */
                                    "{\n"                                       /* 8 */
                                    "    void *p = here();\n"                   /* 9 */
                                    "    __asm__ volatile(\"\"); return p; }\n" /* 10 */
                                    "IN void *middle(void)\n"                   /* 11 */
                                    "{\n"                                       /* 12 */
                                    "    void *p = inner();\n"                  /* 13 */
                                    "    __asm__ volatile(\"\"); return p; }\n" /* 14 */
                                    "void *outer(void)\n"                       /* 15 */
                                    "{\n"                                       /* 16 */
                                    "    void *p = middle();\n"                 /* 17 */
                                    "    __asm__ volatile(\"\"); return p; }\n" /* 18 */
                                    "static __attribute__((noinline)) void *local(void)\n"
                                    "{\n"                                        /* 20 */
                                    "    void *p = here();\n"                    /* 21 */
                                    "    __asm__ volatile(\"\"); return p; }\n"  /* 22 */
                                    "void *call_local(void)\n"                   /* 23 */
                                    "{\n"                                        /* 24 */
                                    "    void *p = local();\n"                   /* 25 */
                                    "    __asm__ volatile(\"\"); return p; }\n"; /* 26 */

static inline void *open_lib(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(lib, "%s", dlerror());
    gt_modules_refresh();
    return lib;
}

static inline uint64_t pc_from(void *lib, const char *function)
{
    void *(*f)(void) = (void *(*)(void))dlsym(lib, function);
    CHECK(f, "%s", function);
    return (uint64_t)(uintptr_t)f();
}

/* Frames as "name file:line | name file:line", files without directories. */
static inline const char *describe(struct gt_symbolizer *s, uint64_t epoch, uint64_t pc,
                                   bool is_call)
{
    static char text[8192];
    struct gt_sym_frame frames[32];
    size_t at = 0;
    int n = gt_symbolize(s, epoch, pc, is_call, frames, 32);
    CHECK(n >= 1 && n <= 32, "%d frames", n);
    for (int i = 0; i < n && at < sizeof text; i++) {
        const char *base = strrchr(frames[i].file, '/');
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s:%u", i ? " | " : "",
                               frames[i].func, base ? base + 1 : frames[i].file, frames[i].line);
    }
    return text;
}

static inline void check_text(const char *what, const char *got, const char *expected)
{
    CHECK(strcmp(got, expected) == 0, "%s\n  got:      %s\n  expected: %s", what, got, expected);
}

static inline void check_starts(const char *what, const char *got, const char *expected)
{
    CHECK(strncmp(got, expected, strlen(expected)) == 0, "%s\n  got:      %s\n  expected: %s…",
          what, got, expected);
}
