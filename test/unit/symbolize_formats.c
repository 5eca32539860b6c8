/* Every way debug information comes in: versions, compression, split files, symbols only, none. */
#include "symbolize_sample.h"

#include <sys/auxv.h>

static const char full[] = "inner sample.c:9 | middle sample.c:13 | outer sample.c:17";

/* Builds lib<name>.so with the command, in which each %s is the name. */
struct variant {
    const char *name, *tool, *build;
    const char *outer, *local; /* expected for the two addresses; local "+": module+0xoffset */
};

#define CC_G "gcc -O2 -shared -fPIC sample.c"
static const char local_full[] = "local sample.c:21";

static const struct variant variants[] = {
    {"dwarf4", "gcc", CC_G " -gdwarf-4 -o libdwarf4.so", full, local_full},
    {"dwarf5", "gcc", CC_G " -gdwarf-5 -o libdwarf5.so", full, local_full},
    {"zlib", "gcc", CC_G " -g -gz=zlib -o libzlib.so", full, local_full},
    {"zgnu", "gcc", CC_G " -g -gz=zlib-gnu -o libzgnu.so", full, local_full},
    {"clang4", "clang", "clang -O2 -shared -fPIC sample.c -gdwarf-4 -o libclang4.so", full,
     local_full},
    {"clang5", "clang", "clang -O2 -shared -fPIC sample.c -gdwarf-5 -o libclang5.so", full,
     local_full},
    {"sections", "gcc", CC_G " -g -ffunction-sections -o libsections.so", full, local_full},
    {"types", "gcc", CC_G " -g -fdebug-types-section -o libtypes.so", full, local_full},
    {"lto", "gcc", CC_G " -g -flto -o liblto.so", full, local_full},
    {"noid", "gcc", CC_G " -g -Wl,--build-id=none -o libnoid.so", full, local_full},
    {"link", "objcopy",
     CC_G " -g -o liblink.so && objcopy --only-keep-debug liblink.so liblink.debug &&"
          " strip liblink.so && objcopy --add-gnu-debuglink=liblink.debug liblink.so",
     full, local_full},
    {"dotdebug", "objcopy",
     CC_G " -g -o libdotdebug.so && mkdir .debug && objcopy --only-keep-debug"
          " --compress-debug-sections libdotdebug.so .debug/libdotdebug.debug &&"
          " strip libdotdebug.so &&"
          " objcopy --add-gnu-debuglink=.debug/libdotdebug.debug libdotdebug.so",
     full, local_full},
    {"crc", "objcopy",
     CC_G " -g -Wl,--build-id=none -o libcrc.so && objcopy --only-keep-debug libcrc.so crc.debug &&"
          " strip libcrc.so && objcopy --add-gnu-debuglink=crc.debug libcrc.so",
     full, local_full},
    {"badcrc", "objcopy",
     CC_G " -g -Wl,--build-id=none -o libbadcrc.so &&"
          " objcopy --only-keep-debug libbadcrc.so badcrc.debug && strip libbadcrc.so &&"
          " objcopy --add-gnu-debuglink=badcrc.debug libbadcrc.so && echo >>badcrc.debug",
     "outer libbadcrc.so:0", "+"},
    {"otherid", "objcopy",
     CC_G " -g -o libotherid.so && objcopy --only-keep-debug liblink.so other.debug &&"
          " strip libotherid.so && objcopy --add-gnu-debuglink=other.debug libotherid.so",
     "outer libotherid.so:0", "+"},
    {"symtab", "gcc", CC_G " -o libsymtab.so", "outer libsymtab.so:0", "local libsymtab.so:0"},
    {"stripped", "strip", CC_G " -g -o libstripped.so && strip libstripped.so",
     "outer libstripped.so:0", "+"},
    {"mini", "xz",
     CC_G " -g -o libmini.so && nm -D libmini.so --format=posix --defined-only | cut -d' ' -f1 |"
          " sort >dyn && nm libmini.so --format=posix --defined-only | grep -i ' t ' |"
          " cut -d' ' -f1 | sort >all && comm -13 dyn all >keep &&"
          " objcopy --only-keep-debug libmini.so mini.full && objcopy -S"
          " --remove-section .comment --keep-symbols=keep mini.full mini.small && xz mini.small &&"
          " strip libmini.so && objcopy --add-section .gnu_debugdata=mini.small.xz libmini.so",
     "outer libmini.so:0", "local libmini.so:0"},
    {"dwz", "dwz",
     CC_G " -g -include types.h -o libdwz.so && sed 's/here/there/' sample.c >two.c && gcc -O2"
          " -shared -fPIC -include types.h two.c -g -o libtwo.so && dwz -m common.debug libdwz.so "
          "libtwo.so",
     full, local_full},
    {"noalt", "dwz",
     CC_G " -g -include types.h -o libnoalt.so && gcc -O2 -shared -fPIC -include types.h two.c"
          " -g -o libthree.so && dwz -m gone.debug libnoalt.so libthree.so && rm gone.debug",
     NULL, NULL},
    /* Another file has taken the common one's place. */
    {"otheralt", "dwz",
     CC_G
     " -gdwarf-4 -include types.h -o libotheralt.so && gcc -O2 -shared -fPIC -include types.h two.c"
     " -gdwarf-4 -o libfour.so && dwz -m taken.debug -M $PWD/taken.debug libotheralt.so libfour.so "
     "&&"
     " cp common.debug taken.debug",
     NULL, NULL},
};

/* Two names of one function, in whatever order the linker puts them, and a label inside it. */
static const char alias_source[] =
    "void *here(void) { return __builtin_return_address(0); }\n"
    "#define PAIR(name)                                                            \\\n"
    "    void *__##name(void) {                                                    \\\n"
    "        __asm__ volatile(\".globl l_\" #name \"; l_\" #name \": nop\");         \\\n"
    "        void *p = here(); __asm__ volatile(\"\"); return p; }                 \\\n"
    "    void *name(void) __attribute__((alias(\"__\" #name)));\n"
    "PAIR(one) PAIR(two) PAIR(three) PAIR(four) PAIR(five)\n";

static void check_symbols(struct gt_symbolizer *s)
{
    static const char *const names[] = {"one", "two", "three", "four", "five"};
    char expected[64];
    write_file("alias.c", alias_source);
    CHECK(run("gcc -O1 -fno-ipa-icf -fPIC -shared -s alias.c -o libalias.so"), "%s/log", dir);
    void *lib = open_lib("libalias.so");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(expected, sizeof expected, "%s libalias.so:0", names[i]);
        check_text("alias", describe(s, gt_modules_epoch(), pc_from(lib, names[i]), true),
                   expected);
    }
}

/* Names in dwz's common part, at offsets where the library's own has a namespace. */
static void check_common_scopes(struct gt_symbolizer *s)
{
    write_file("common.hh", "extern \"C\" void *here(void);\n"
                            "static inline __attribute__((always_inline)) void *shared(void)\n"
                            "{ void *p = here(); __asm__ volatile(\"\"); return p; }\n");
    write_file("user.cc",
               "namespace wrong { struct wide { int\n"
               "a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8,\n"
               "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8;\n"
               "} wide; }\n"
               "#include \"types.h\"\n#include \"common.hh\"\n"
               "extern \"C\" __attribute__((noinline)) void *here(void)\n"
               "{ __asm__ volatile(\"\"); return __builtin_return_address(0); }\n"
               "extern \"C\" void *outer(void)\n"
               "{ void *p = shared(); __asm__ volatile(\"\"); return p; }\n");
    if (system("command -v dwz >/dev/null && command -v g++ >/dev/null") != 0) {
        fprintf(stderr, "left out: scopes in a common part (no dwz or g++)\n");
        return;
    }
    CHECK(
        run("for i in 1 2; do sed s/wide/wide$i/g user.cc >user$i.cc && g++ -O2 -g -shared -fPIC"
            " user$i.cc -o libuser$i.so || exit; done; dwz -m user.debug libuser1.so libuser2.so"),
        "%s/log", dir);
    check_text("scopes",
               describe(s, gt_modules_epoch(), pc_from(open_lib("libuser1.so"), "outer"), true),
               "shared common.hh:3 | outer user1.cc:10");
}

/* More functions inlined into each other than there is room for: of the outermost some are left
 * out, but not the one that has the code. */
static void check_deep(struct gt_symbolizer *s, int depth)
{
    char source[16384], name[32], expected[64];
    int n = snprintf(source, sizeof source,
                     "__attribute__((noinline)) void *here(void)\n"
                     "{ __asm__ volatile(\"\"); return __builtin_return_address(0); }\n"
                     "#define IN static inline __attribute__((always_inline)) void *\n"
                     "#define GO(f) void *p = f(); __asm__ volatile(\"\"); return p;\n"
                     "IN in0(void) { GO(here) }\n");
    for (int i = 1; i < depth; i++)
        n += snprintf(source + n, sizeof source - (size_t)n, "IN in%d(void) { GO(in%d) }\n", i,
                      i - 1);
    snprintf(source + n, sizeof source - (size_t)n, "void *outer(void) { GO(in%d) }\n", depth - 1);
    snprintf(name, sizeof name, "deep%d.c", depth);
    write_file(name, source);
    CHECK(run("gcc -O2 -g -shared -fPIC deep%d.c -o libdeep%d.so", depth, depth), "%s/log", dir);
    snprintf(name, sizeof name, "libdeep%d.so", depth);
    snprintf(expected, sizeof expected, " | outer deep%d.c:%d", depth, depth + 5);
    const char *got = describe(s, gt_modules_epoch(), pc_from(open_lib(name), "outer"), true);
    check_starts("deep", got, "in0 deep");
    check_text("deep", strrchr(got, '|') - 1, expected);
}

static void check(struct gt_symbolizer *s, const struct variant *v)
{
    char name[64], expected[256];
    snprintf(name, sizeof name, "command -v %s >/dev/null", v->tool);
    if (system(name) != 0) {
        fprintf(stderr, "left out: %s (no %s)\n", v->name, v->tool);
        return;
    }
    CHECK(run("%s", v->build), "%s: see %s/log", v->name, dir);
    snprintf(name, sizeof name, "lib%s.so", v->name);
    void *lib = open_lib(name);
    uint64_t epoch = gt_modules_epoch(), pc = pc_from(lib, "call_local");
    const char *got = describe(s, epoch, pc_from(lib, "outer"), true);
    if (v->outer)
        check_text(v->name, got, v->outer);
    else
        CHECK(strstr(got, "outer"), "%s: got %s", v->name, got);
    const struct gt_module *m = gt_modules_find(epoch, pc);
    CHECK(m, "%s", name);
    snprintf(expected, sizeof expected, "%s+0x%" PRIx64 " %s:0", name, pc - 1 - m->bias, name);
    if (v->local)
        check_text(v->name, describe(s, epoch, pc, true), *v->local == '+' ? expected : v->local);
}

/* The vDSO lies in no file: some address in it must be clock_gettime. */
static void check_vdso(struct gt_symbolizer *s)
{
    uint64_t at = getauxval(AT_SYSINFO_EHDR);
    const struct gt_module *m = at ? gt_modules_find(gt_modules_epoch(), at) : NULL;
    bool found = !m;
    for (; m && !found && at < m->hi; at += 16)
        found =
            strstr(describe(s, gt_modules_epoch(), at, false), "clock_gettime [vdso]:0") != NULL;
    CHECK(found, "no clock_gettime in the vDSO");
}

static uint64_t inside_qsort;

static int note_caller(const void *a, const void *b)
{
    inside_qsort = (uint64_t)(uintptr_t)__builtin_return_address(0);
    return *(const int *)a - *(const int *)b;
}

/* The build-id directory of the system, if libc's debug file is there (package libc6-dbg). */
static void check_build_id_directory(struct gt_symbolizer *s)
{
    int numbers[] = {3, 1, 2};
    char path[128] = "/usr/lib/debug/.build-id/";
    qsort(numbers, 3, sizeof *numbers, note_caller);
    const struct gt_module *m = gt_modules_find(gt_modules_epoch(), inside_qsort);
    CHECK(m, "qsort is in no module");
    for (size_t i = 0; i < m->build_id_len; i++)
        sprintf(path + strlen(path), "%02x%s", m->build_id[i], i ? "" : "/");
    strcat(path, ".debug");
    if (access(path, R_OK) != 0) {
        fprintf(stderr, "left out: build-id directory (no %s)\n", path);
        return;
    }
    const char *got = describe(s, gt_modules_epoch(), inside_qsort, true);
    CHECK(strstr(got, " msort.c:") || strstr(got, " qsort.c:"), "got %s", got);
    /* In its source it is called ___pthread_mutex_lock. */
    check_starts("public name",
                 describe(s, gt_modules_epoch(),
                          (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "pthread_mutex_lock"), false),
                 "pthread_mutex_lock pthread_mutex_lock.c:");
}

int main(void)
{
    need("gcc");
    make_dir();
    write_file("sample.c", sample_source);
    /* Something for dwz to move. */
    write_file("types.h",
               "struct big { int alpha, beta, gamma; struct big *delta, *epsilon;\n"
               "  struct in { long zeta; short eta; char theta[7]; } iota, *kappa; } big;\n");
    struct gt_symbolizer *s = gt_symbolizer_new();
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        check(s, &variants[i]);
    CHECK(run("! ls -l /proc/%d/fd | grep %s", (int)getpid(), dir), "a descriptor stayed open");
    check_common_scopes(s);
    check_deep(s, 40);
    check_deep(s, 90);
    check_symbols(s);
    check_vdso(s);
    check_build_id_directory(s);
    gt_symbolizer_free(s);
    return 0;
}
