/* Demangling, and the names of what has no linkage name. */
#include "symbolize/dwarf/demangle.h"

#include "symbolize_sample.h"

#include <pthread.h>

static const struct {
    const char *symbol, *name;
} table[] = {
    {"main", "main"},
    {"_Z3fooi", "foo(int)"},
    {"_ZN2ns1SC1Ev", "ns::S::S()"},
    {"_Z3fooi.cold", "foo(int)"},
    {"_Z3fooi.constprop.0.isra.0", "foo(int)"},
    {"_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work()"},
    {"_Z1fIiEvT_", "f<int>(int)"},
    {"_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEE6_M_runEv",
     "main::{lambda()#1}"},
    {"_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFvRiESt17reference_wrapperIiEEEEEE6_M_"
     "runEv",
     "void (*)(int&)"},
    /* Rust: the hash goes */
    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
    {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
     "3bar17h930b740aa94f"
     "1d3aE",
     "<Test + 'static as foo::Bar<Test>>::bar"},
    {"_RNvC6_123foo3bar", "123foo::bar"},
    {"_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3new", "<std::path::PathBuf>::new"},
    {"_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
     "std::mem::align_of::<std::mem::Discriminant>"},
    {"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
    {"_RINvC1a1bFUKCjEzE", "a::b::<unsafe extern \"C\" fn(usize) -> !>"},
    {"_RNvYNtC1a1bNtC1c1d1e", "<a::b as c::d>::e"},
    {"_RNvXs_C1aNtB4_1bNtC1c1d1e", "<a::b as c::d>::e"},
    {"_RNvC1au8gdel_5qa", "a::gödel"},
    {"_RNvC1a1bC1z", "a::b"},
    /* a path that is part of itself; one that ends in the middle; more lifetimes than there can be
     */
    {"_RNvB_1a", "_RNvB_1a"},
    {"_RNvC1a", "_RNvC1a"},
    {"_RINvC1a1bFGzzzzzzzzz_EuE", "_RINvC1a1bFGzzzzzzzzz_EuE"},
    /* not names at all */
    {"_Z", "_Z"},
    {"_R", "_R"},
    {"_ZN", "_ZN"},
    {"_Znonsense", "_Znonsense"},
    {"", ""},
};

static const struct {
    const char *name, *callable;
} threads[] = {
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
     "main::{lambda()#1}"},
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)(int, char), int, char> > "
     ">::_M_run()",
     "void (*)(int, char)"},
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<F<std::pair<int, int> >, int> > "
     ">::_M_run()",
     "F<std::pair<int, int> >"},
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (S::*)() const, S*> > "
     ">::_M_run()",
     "void (S::*)() const"},
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<cut off",
     "std::thread::_State_impl<std::thread::_Invoker<std::tuple<cut off"},
    {"std::thread::join()", "std::thread::join()"},
};

/* So many parts, each of which has the one before twice: more than anybody could write down. */
enum { PARTS = 60 };

static const char *reference(char letter, const char *digits, unsigned base, unsigned number)
{
    static char text[8];
    char *p = text + sizeof text - 1;
    *--p = '_';
    for (unsigned rest = number, first = 1; rest; rest = (rest - first) / base, first = 0)
        *--p = digits[(rest - first) % base];
    *--p = letter;
    return p;
}

static const char *substitution(unsigned number)
{
    return reference('S', "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 36, number);
}

/* f<>(pack expansion of pair<pair<…>, the same>), or without the expansion. */
static char *doubling_cplus(char *symbol, const char *before)
{
    char *p = symbol + sprintf(symbol, "_Z1fIJEEv%sSt4pairI", before);
    for (int i = 0; i < PARTS; i++)
        p += sprintf(p, "S0_I");
    p += sprintf(p, "iiE");
    for (unsigned i = 0; i < PARTS; i++)
        p += sprintf(p, "%sE", substitution(2 + i));
    return symbol;
}

/* a::b::<(i32,), the same twice, …> */
static char *doubling_rust(char *symbol)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *p = symbol + sprintf(symbol, "_RINvC1a1b"), *path = symbol + 2, *last = p;
    p += sprintf(p, "TlE");
    for (int i = 0; i < PARTS; i++) {
        const char *of_last = reference('B', digits, 62, (unsigned)(last - path));
        last = p;
        p += sprintf(p, "T%s%sE", of_last, of_last);
    }
    sprintf(p, "E");
    return symbol;
}

static void check_doubling(void)
{
    char symbol[2000], buf[256];
    CHECK(gt_demangle(doubling_rust(symbol), buf, sizeof buf) == symbol, "%s", buf);
    CHECK(gt_demangle(doubling_cplus(symbol, "Dp"), buf, sizeof buf) == symbol, "%s", buf);
    const char *name = gt_demangle(doubling_cplus(symbol, ""), buf, sizeof buf);
    CHECK(strlen(name) == sizeof buf - 1, "%s", name);
    check_starts("doubling", name, "f<>(std::pair<std::pair<std::pair<");
}

/* Hostile names: must return, within the drain thread's stack, and stay inside the buffer. */
static void *check_hostile(void *unused)
{
    static char symbol[200000];
    char buf[256];
    static const char *const seeds[] = {"P",   "I",  "N",  "FPvS_", "U",
                                        "Dv_", "St", "T_", "S_",    "TB_"};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        for (int rust = 0; rust < 2; rust++) {
            size_t n = (size_t)sprintf(symbol, rust ? "_RNvC1a1b" : "_Z1f");
            while (n + 16 < sizeof symbol)
                n += (size_t)sprintf(symbol + n, "%s", seeds[i]);
            memset(buf, 'x', sizeof buf);
            gt_demangle(symbol, buf, sizeof buf - 1);
            CHECK(buf[sizeof buf - 1] == 'x', "wrote past the end");
        }
    }
    check_doubling();
    for (const char *p = table[7].symbol; *p; p++) {
        const char *name = gt_demangle(p, buf, 8);
        CHECK(name == p || strlen(name) < 8, "%s", p);
    }
    return unused;
}

static void in_drain_sized_thread(void *(*f)(void *))
{
    pthread_attr_t attr;
    pthread_t t;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    CHECK(pthread_create(&t, &attr, f, NULL) == 0, "thread");
    pthread_join(t, NULL);
}

static const char cxx_source[] =
    "extern \"C\" __attribute__((noinline)) void *here(void)\n"          /* 1 */
    "{ __asm__ volatile(\"\"); return __builtin_return_address(0); }\n"  /* 2 */
    "#define END __asm__ volatile(\"\"); return p\n"                     /* 3 */
    "#define IN inline __attribute__((always_inline))\n"                 /* 4 */
    "#define OUT __attribute__((noinline))\n"                            /* 5 */
    "namespace a { namespace b {\n"                                      /* 6 */
    "struct S { IN void *in(int) { void *p = here(); END; }\n"           /* 7 */
    "  static IN void *st() { void *p = S().in(1); END; }\n"             /* 8 */
    "  template <class T> OUT void *tm(T) { void *p = st(); END; } };\n" /* 9 */
    "namespace { struct L { OUT void *f() { void *p = here(); END; }\n"  /* 10 */
    "            IN void *g() { void *p = here(); END; } };\n"           /* 11 */
    "            OUT void *hidden() { void *p = L().g(); END; } }\n"     /* 12 */
    "static OUT void *stat() { void *p = L().f(); END; }\n"              /* 13 */
    "OUT void *lam() { auto l = []() OUT { void *p = here(); END; };\n"  /* 14 */
    "  void *p = l(); END; }\n"                                          /* 15 */
    "OUT void *ilam() { auto l = []() __attribute__((always_inline)) { void *p = here(); END; };\n"
    "  void *p = l(); END; }\n"                                             /* 17 */
    "} }\n"                                                                 /* 18 */
    "extern \"C\" void *t_member() { void *p = a::b::S().tm(1.0); END; }\n" /* 19 */
    "extern \"C\" void *t_local() { void *p = a::b::stat(); END; }\n"       /* 20 */
    "extern \"C\" void *t_hidden() { void *p = a::b::hidden(); END; }\n"    /* 21 */
    "extern \"C\" void *t_lambda() { void *p = a::b::lam(); END; }\n"       /* 22 */
    "extern \"C\" void *t_ilambda() { void *p = a::b::ilam(); END; }\n"     /* 23 */
    "namespace { struct V { virtual void *v() = 0; };\n"                    /* 24 */
    "  template <int N> struct W : V { void *v() override {\n"              /* 25 */
    "    auto l = []() { void *p = here(); END; };\n"                       /* 26 */
    "    void *p = l(); END; } }; }\n"                                      /* 27 */
    "extern \"C\" void *t_vlambda() { static W<7> w; V *v = &w;\n"          /* 28 */
    "  __asm__(\"\" : \"+r\"(v)); void *p = v->v(); END; }\n";              /* 29 */

static void check_cxx(const char *compiler, const char *lib_name)
{
    CHECK(run("%s -O2 -g %s -shared -fPIC cxx.cc -o %s", compiler,
              *compiler == 'g' ? "-fno-ipa-icf" : "", lib_name),
          "%s/log", dir);
    void *lib = open_lib(lib_name);
    uint64_t e = gt_modules_epoch();
    struct gt_symbolizer *s = gt_symbolizer_new();
    check_text(compiler, describe(s, e, pc_from(lib, "t_member"), true),
               "a::b::S::in(int) cxx.cc:7 | a::b::S::st() cxx.cc:8 | "
               "a::b::S::tm<double>(double) cxx.cc:9");
    check_text(compiler, describe(s, e, pc_from(lib, "t_local"), true),
               "a::b::(anonymous namespace)::L::f() cxx.cc:10");
    const char *got = describe(s, e, pc_from(lib, "t_hidden"), true);
    check_starts(compiler, got, "a::b::(anonymous namespace)::L::g");
    CHECK(strstr(got, " cxx.cc:11 | a::b::(anonymous namespace)::hidden() cxx.cc:12"), "%s", got);
    check_text(compiler, describe(s, e, pc_from(lib, "t_lambda"), true),
               strcmp(compiler, "g++") == 0
                   ? "a::b::lam()::{lambda()#1}::operator()() const cxx.cc:14"
                   : "a::b::lam()::$_0::operator()() const cxx.cc:14");
    got = describe(s, e, pc_from(lib, "t_ilambda"), true);
    check_starts(compiler, got, "a::b::ilam()::");
    CHECK(strstr(got, "operator()") && strstr(got, " cxx.cc:16 | a::b::ilam() cxx.cc:17"), "%s",
          got);
    got = describe(s, e, pc_from(lib, "t_vlambda"), true);
    check_starts(compiler, got, "(anonymous namespace)::W<7>::v");
    CHECK(strstr(got, "{lambda") && strstr(got, "::operator()") && strstr(got, " cxx.cc:26 | "),
          "%s", got);
    CHECK(strstr(got, " | (anonymous namespace)::W<7>::v"), "%s", got);
    gt_symbolizer_free(s);
}

static const char rust_source[] =
    "extern \"C\" { fn here() -> *const u8; }\n" /* 1 */
    "mod m { pub struct T;\n"                    /* 2 */
    "  impl T { #[inline(always)] pub fn inl(&self) -> usize {\n"
    "    unsafe { super::here() as usize } }\n"         /* 4 */
    "  #[inline(never)] pub fn out(&self) -> usize {\n" /* 5 */
    "    let p = self.inl();\n"                         /* 6 */
    "    std::hint::black_box(p) } } }\n"               /* 7 */
    "#[no_mangle] pub extern \"C\" fn t_rust() -> usize { m::T.out() }\n";

static void check_rust(const char *mangling)
{
    if (system("command -v rustc >/dev/null && rustc --version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "left out: rust (no rustc)\n");
        return;
    }
    write_file("r.rs", rust_source);
    write_file("here.c", "__attribute__((noinline)) void *here(void)\n"
                         "{ __asm__ volatile(\"\"); return __builtin_return_address(0); }\n");
    bool built = run("gcc -O1 -fPIC -c here.c && ar rcs libhere.a here.o && RUSTC_BOOTSTRAP=1 "
                     "rustc -Z unstable-options -g -O -C"
                     " symbol-mangling-version=%s --crate-type cdylib r.rs -L . -l static=here -o"
                     " librust_%s.so",
                     mangling, mangling);
    if (!built) {
        fprintf(stderr, "left out: rust %s (does not build)\n", mangling);
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "librust_%s.so", mangling);
    void *lib = open_lib(name);
    struct gt_symbolizer *s = gt_symbolizer_new();
    const char *got = describe(s, gt_modules_epoch(), pc_from(lib, "t_rust"), true);
    CHECK(strstr(got, "m::T>::inl r.rs:4 | ") || strstr(got, "m::T::inl r.rs:4 | "), "%s", got);
    CHECK(strstr(got, "::out r.rs:6"), "%s", got);
    gt_symbolizer_free(s);
}

/* A function's address is that of the function, also where it begins with an inlined one. */
static void check_beginning(void)
{
    write_file("begin.c", "int area[64];\n"
                          "static inline int *slot(long i) { return area + i; }\n"
                          "int *whole(long i)\n"
                          "{ return slot(i); }\n");
    if (!run("gcc -O2 -g -shared -fPIC -o libbegin.so begin.c")) {
        fprintf(stderr, "left out: begin.c (no gcc)\n");
        return;
    }
    uint64_t pc = (uint64_t)(uintptr_t)dlsym(open_lib("libbegin.so"), "whole");
    struct gt_symbolizer *s = gt_symbolizer_new();
    check_text("begin", describe(s, gt_modules_epoch(), pc, false), "whole begin.c:4");
    gt_symbolizer_free(s);
}

int main(void)
{
    char buf[512];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_text(table[i].symbol, gt_demangle(table[i].symbol, buf, sizeof buf), table[i].name);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        strcpy(buf, threads[i].name);
        check_text(threads[i].name, gt_thread_callable(buf), threads[i].callable);
    }
    in_drain_sized_thread(check_hostile);
    make_dir();
    write_file("cxx.cc", cxx_source);
    if (system("command -v g++ >/dev/null") == 0)
        check_cxx("g++", "libgxx.so");
    if (system("command -v clang++ >/dev/null") == 0)
        check_cxx("clang++", "libclangxx.so");
    check_beginning();
    check_rust("legacy");
    check_rust("v0");
    return 0;
}
