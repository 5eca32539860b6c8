"""HeapAlloc and HeapGoal against what test/prog/heap.c and heap_cxx.cc know of themselves, with four allocators."""

import pathlib
import re
import subprocess
import sys

import pytest

from lib import AARCH64, LIBC, LIBRARY, PROGRAMS, ROOT, gotools, proc

LIBRARIES = pathlib.Path("/usr/lib") / subprocess.getoutput("gcc -print-multiarch")
ALLOCATORS = {
    "glibc": None,
    "jemalloc": LIBRARIES / "libjemalloc.so.2",
    "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
    "mimalloc": max(LIBRARIES.glob("libmimalloc.so.[0-9]*"), default=None),  # 2.0 in Debian 12, 3 in Debian 13
}
if LIBC == 31:  # Debian 11 has none
    del ALLOCATORS["mimalloc"]
there = all(ALLOCATORS[name] and ALLOCATORS[name].exists() for name in ALLOCATORS if name != "glibc")
assert there or AARCH64, "scripts/deps test"
OTHERS = [name for name in ALLOCATORS if name != "glibc"]
GRANULARITY = 2 * 64 << 10  # what a thread keeps back, and what the total may have moved since the last event
ALLOC, GOAL = "/memory/classes/heap/objects:bytes", "/gc/heap/goal:bytes"


def metrics(events, name):
    """(time, value) of each."""
    return [(e.time, int(re.search(r"\d+(?=\)})", e.fields["Value"])[0])) for e in events if e.fields.get("Name") == name]


def truth(result):
    return int(result.stdout.split()[-1])


def preload(*libraries):
    return {"LD_PRELOAD": ":".join(str(lib) for lib in libraries if lib)}


class Run:
    """A program bare and traced, behaving the same; what the trace says of its heap."""

    def __init__(self, traced, argv, before=None, after=None):
        bare = proc.run(argv, env=preload(before, after))
        self.result = traced(argv, env=preload(before, LIBRARY, after))
        assert self.result.returncode == bare.returncode, str(self.result)
        lines = [re.findall(r"^(?!step|end).*", text, re.M) for text in (bare.stdout, self.result.stdout)]
        assert lines[0] == lines[1], f"bare: {bare}\ntraced: {self.result}"
        self.truth = truth(self.result)
        self.events = gotools.parse(self.result.trace)
        self.alloc, self.goal = metrics(self.events, ALLOC), metrics(self.events, GOAL)

    @property
    def end(self):
        return self.alloc[-1][1]


def run(traced, *args, **options):
    return Run(traced, [PROGRAMS / "heap", *map(str, args)], **options)


def assert_exact(traced, heap, **options):
    """What libc and its libraries have at the end, a run that allocates nothing of its own says."""
    assert heap.end - run(traced, "nothing", **options).end == heap.truth, str(heap.result)


@pytest.mark.measured
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_curve_is_followed_and_its_end_exact(traced, allocator):
    after = ALLOCATORS[allocator]
    curve = run(traced, "curve", after=after)
    base = run(traced, "nothing", after=after).end
    steps = [int(line.split()[1]) for line in curve.result.stdout.splitlines() if line.startswith("step")]
    pauses = [e.time for e in curve.events if e.is_go("Running", "Waiting")]
    assert len(pauses) == len(steps) == 43
    for live, pause in zip(steps, pauses):
        shown = [value for time, value in curve.alloc if time <= pause][-1]
        assert abs(shown - base - live) <= GRANULARITY
    assert curve.end - base == curve.truth
    assert len(curve.alloc) < 300, "of 5500 allocations"
    # What the allocator holds it has from the system; with libc's and the tracer's data that is not much more.
    top = max(value for _, value in curve.goal)
    assert 0.9 * max(steps) < top < max(steps) + (32 << 20)


# Between libgotrace.so and the allocator: what is live when the process ends, but for what the tracer's thread has.
WITNESS = """
#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
static _Atomic long live, tracers;
static __thread int whose __attribute__((tls_model("initial-exec")));
static struct {
    void *(*malloc)(size_t), *(*calloc)(size_t, size_t), *(*realloc)(void *, size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
} real;
static volatile int resolving; /* glibc 2.31 promises that dlsym calls nothing here */
static char nursery[4096] __attribute__((aligned(16)));
static size_t used;
static int early(void)
{
    if (!real.free && !resolving) {
        resolving = 1;
        *(void **)&real.malloc = dlsym(RTLD_NEXT, "malloc");
        *(void **)&real.calloc = dlsym(RTLD_NEXT, "calloc");
        *(void **)&real.realloc = dlsym(RTLD_NEXT, "realloc");
        *(void **)&real.malloc_usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
        *(void **)&real.free = dlsym(RTLD_NEXT, "free");
        resolving = 0;
    }
    return resolving;
}
static void *early_alloc(size_t n) { return nursery + (used += (n + 15) & ~15ul) - ((n + 15) & ~15ul); }
static long count(void *p, long sign);
size_t malloc_usable_size(void *p) { return early() ? 0 : real.malloc_usable_size(p); }
void *malloc(size_t n)
{
    void *p = early() ? early_alloc(n) : real.malloc(n);
    count(p, 1);
    return p;
}
void *calloc(size_t n, size_t m)
{
    void *p = early() ? early_alloc(n * m) : real.calloc(n, m);
    count(p, 1);
    return p;
}
void free(void *p)
{
    if (early() || (size_t)((char *)p - nursery) < sizeof nursery)
        return;
    count(p, -1);
    real.free(p);
}
void *realloc(void *p, size_t n)
{
    long had = early() || !p ? 0 : malloc_usable_size(p);
    void *q = real.realloc(p, n);
    if (q && count(q, 1))
        live -= had;
    return q;
}
static long count(void *p, long sign)
{
    char name[16];
    if (!whose)
        whose = prctl(PR_GET_NAME, name) == 0 && strcmp(name, "gotrace") == 0 ? 2 : 1;
    tracers += p && whose == 2;
    long size = p && whose == 1 ? sign * (long)malloc_usable_size(p) : 0;
    live += size;
    return size;
}
__attribute__((destructor)) static void end(void) { dprintf(2, "live %ld tracers %ld\\n", live, tracers); }
"""


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_storm_of_four_threads_is_exact(traced, tmp_path, allocator):
    """To the byte, with what libc and the loader keep for each thread."""
    witness = proc.compile(WITNESS, tmp_path / "witness.so", "-shared", "-fPIC", "-D_GNU_SOURCE")
    after = f"{witness}:{ALLOCATORS[allocator] or ''}"

    def difference(rounds):
        storm = run(traced, "storm", 4, rounds, after=after)
        assert "tracers 0\n" in storm.result.stderr, "the tracer's thread takes the allocator's locks"
        return storm.end - int(re.search(r"^live (-?\d+)", storm.result.stderr, re.M)[1])

    assert difference(200000) == difference(0)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_function(traced, allocator):
    after = ALLOCATORS[allocator]
    assert_exact(traced, run(traced, "kinds", after=after), after=after)


@pytest.mark.parametrize("allocator", [name for name in ALLOCATORS if name != "jemalloc"])  # which has no pvalloc
def test_pvalloc(traced, allocator):
    after = ALLOCATORS[allocator]
    assert_exact(traced, run(traced, "pages", after=after), after=after)


@pytest.mark.measured
def test_rate_is_bounded(traced):
    spikes = run(traced, "spikes", 20000)
    seconds = (spikes.events[-1].time - spikes.alloc[0][0]) / 1e9
    assert len(spikes.alloc) <= 1000 + 1000 * seconds + 10, "a thousand at once and a thousand a second"
    assert spikes.end == spikes.truth


def test_no_descriptor_number_is_taken(traced):
    """By reading how much memory there is: not even for the moment of a read."""
    numbers = run(traced, "numbers")
    assert numbers.result.stdout.splitlines()[0] == "number 3 0", str(numbers.result)
    assert len(numbers.goal) > 3


def test_late_allocations(traced):
    """In destructors of thread-specific data, even in more rounds than there are, and in atexit handlers."""
    late = run(traced, "late")
    assert 0 <= late.end - late.truth <= 1024, "thread-local storage of the last thread"


def test_a_forked_child_goes_on(traced, tmp_path):
    parent = run(traced, "fork")
    assert parent.end == parent.truth
    (child,) = tmp_path.glob("t.out.*")
    end = metrics(gotools.parse(child), ALLOC)[-1][1]
    assert 0 <= end - int(parent.result.stdout.split()[-3]) <= 1024, str(parent.result)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_operators(traced, allocator):
    after = ALLOCATORS[allocator]
    cxx = Run(traced, [PROGRAMS / "heap_cxx", *["plain"] * (allocator == "mimalloc")], after=after)
    pool = cxx.end - cxx.truth  # libstdc++'s for exceptions; tcmalloc says it has no size before its own constructor ran
    assert 70000 <= pool <= 90000 or allocator == "tcmalloc" and pool == 0


@pytest.mark.parametrize("allocator", OTHERS)
@pytest.mark.parametrize("source", ["heap.c", "heap_cxx.cc"])
def test_linked(traced, tmp_path, allocator, source):
    flags = ["-D_GNU_SOURCE", "-Wl,--no-as-needed", ALLOCATORS[allocator], "-ldl"]
    compiler, *flags = ["g++", "-std=c++17", *flags] if source.endswith("cc") else ["gcc", *flags]
    program = proc.compile(ROOT / "test/prog" / source, tmp_path / "program", *flags, compiler=compiler)
    linked = Run(traced, [program, "kinds"])
    preloaded = Run(traced, [PROGRAMS / source.split(".")[0], "kinds"], after=ALLOCATORS[allocator])
    assert linked.end - linked.truth == preloaded.end - preloaded.truth


@pytest.mark.parametrize("allocator", OTHERS)
@pytest.mark.parametrize("args", [["curve"], ["kinds"], ["storm", 4, 20000]])
def test_preloaded_before_us(traced, allocator, args):
    """The program's calls are bound to it, until we bind them to us."""
    before = ALLOCATORS[allocator]
    heap = run(traced, *args, before=before)
    base = run(traced, *(["storm", 4, 0] if args[0] == "storm" else ["nothing"]), before=before)
    # libc's thread-local bookkeeping, which comes and goes with the moment elfutils is loaded, only with threads
    assert abs(heap.end - base.end - heap.truth) <= (512 if args[0] == "storm" else 0), str(heap.result)


def test_preloaded_before_us_in_a_program_bound_at_its_start(traced, tmp_path):
    """Its table of functions is read-only by then."""
    flags = ["-D_GNU_SOURCE", "-Wl,-z,now,-z,relro", "-ldl"]
    program = proc.compile(ROOT / "test/prog/heap.c", tmp_path / "program", *flags)
    before = ALLOCATORS["jemalloc"]
    curve, base = (Run(traced, [program, what], before=before) for what in ("curve", "nothing"))
    assert curve.end - base.end == curve.truth


@pytest.mark.parametrize("allocator", ["jemalloc", "tcmalloc"])
def test_operators_of_one_preloaded_before_us(traced, allocator):
    before = ALLOCATORS[allocator]
    earlier, later = (Run(traced, [PROGRAMS / "heap_cxx"], **{place: before}) for place in ("before", "after"))
    pool = later.end - later.truth  # of libstdc++, made before our constructor when the allocator is not ours yet
    assert earlier.end - earlier.truth in (pool, 0)


OWN_MALLOC = """
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char heap[1 << 20] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t n)
{
    char *p = heap + used + 16;
    used += 16 + ((n + 15) & ~15ul);
    *(size_t *)(p - 16) = n;
    return p;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }
void *realloc(void *p, size_t n)
{
    void *q = malloc(n);
    return p ? memcpy(q, p, n < ((size_t *)p)[-2] ? n : ((size_t *)p)[-2]) : q;
}
int main(void)
{
    char *p = strdup("mine"), *q = realloc(calloc(3, 5), 100000);
    printf("%d %d\\n", p > heap && p < heap + sizeof heap, q != NULL);
    free(q);
    free(p);
    puts("end 0");
    return 0;
}
"""


ALLOCATOR_WITH_STRDUP = """
#include <stdlib.h>
""" + OWN_MALLOC[: OWN_MALLOC.index("int main")] + """
size_t malloc_usable_size(void *p) { return p ? ((size_t *)p)[-2] : 0; }
static void *take(size_t) __attribute__((alias("malloc")));
char *strdup(const char *s) { return memcpy(take(strlen(s) + 1), s, strlen(s) + 1); }
char *strndup(const char *s, size_t n)
{
    char *p = take((n = strnlen(s, n)) + 1);
    p[n] = 0;
    return memcpy(p, s, n);
}
"""


@pytest.mark.parametrize("place", ["before", "after"])
def test_strdup_of_an_allocator(traced, tmp_path, place):
    """mimalloc 3 has one, which calls no malloc; what it gave out goes to free like any other block."""
    source = ALLOCATOR_WITH_STRDUP
    allocator = proc.compile(source, tmp_path / "allocator.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin")
    kinds, base = (run(traced, what, **{place: allocator}) for what in ("copies", "nothing"))
    assert kinds.end - base.end == kinds.truth > 1000


def assert_exact_sized(traced, **allocator):
    sized = run(traced, "sized", **allocator)
    if "skip" in sized.result.stdout:
        pytest.skip(sized.result.stdout.splitlines()[0])
    assert sized.truth > 100000
    assert_exact(traced, sized, **allocator)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_free_sized(traced, allocator, place):
    """C23's. glibc's call free, which counts; those of jemalloc and tcmalloc do not."""
    assert_exact_sized(traced, **{place: ALLOCATORS[allocator]})


ALLOCATOR_WITH_FREE_SIZED = """
#include <stdlib.h>
""" + OWN_MALLOC[: OWN_MALLOC.index("int main")] + """
size_t malloc_usable_size(void *p) { return p ? ((size_t *)p)[-2] : 0; }
static void *take(size_t) __attribute__((alias("malloc")));
void *aligned_alloc(size_t alignment, size_t n)
{
    char *p = take(n + alignment);
    size_t to = -(size_t)p & (alignment - 1);
    p += to;
    ((size_t *)p)[-2] = n + alignment - to;
    return p;
}
void free_sized(void *p, size_t n) { (void)p, (void)n; }
void free_aligned_sized(void *p, size_t alignment, size_t n) { (void)p, (void)alignment, (void)n; }
"""


@pytest.mark.parametrize("place", ["before", "after"])
def test_free_sized_of_an_allocator(traced, tmp_path, place):
    """Whether libc has them or not."""
    source = ALLOCATOR_WITH_FREE_SIZED.replace("1 << 20", "8 << 20")
    allocator = proc.compile(source, tmp_path / "allocator.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin")
    assert_exact_sized(traced, **{place: allocator})


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_free_sized_that_may_not_be_there(traced, allocator):
    """Where nobody has it the program's weak reference finds ours all the same: it frees."""
    after = ALLOCATORS[allocator]
    weakly = run(traced, "weakly", after=after)
    assert "skip" not in weakly.result.stdout and weakly.truth > 100000
    assert_exact(traced, weakly, after=after)


ALLOCATOR_THAT_BEGINS = """
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
static void begin(void);
""" + OWN_MALLOC[: OWN_MALLOC.index("int main")].replace("{\n    char *p", "{\n    begin();\n    char *p", 1) + """
size_t malloc_usable_size(void *p) { return p ? ((size_t *)p)[-2] : 0; }
static void begin(void)
{
    static int state;
    if (state == 1)
        abort(); /* jemalloc would wait for itself */
    if (state++ == 0)
        close(open("/proc/self/stat", O_RDONLY));
    state = 2;
}
__attribute__((constructor)) static void at_start(void) { if (!used) begin(); }
"""


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_allocator_that_calls_us_while_it_begins(traced, tmp_path, place):
    """jemalloc reads files then. The real functions are looked up; those that there are not allocate nothing."""
    allocator = proc.compile(ALLOCATOR_THAT_BEGINS, tmp_path / "allocator.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin")
    copies, base = (run(traced, what, **{place: allocator}) for what in ("copies", "nothing"))
    assert copies.end - base.end == copies.truth > 1000


@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pie"]], ids=["pie", "no-pie"])
def test_malloc_of_the_program(traced, tmp_path, flags):
    program = proc.compile(OWN_MALLOC, tmp_path / "own", "-fno-builtin", *flags)
    assert Run(traced, [program]).alloc == []


def test_a_program_that_takes_mallocs_address(traced, tmp_path):
    """Without PIE its symbol table then has an entry for malloc, which is no definition."""
    source = """#include <stdio.h>
#include <stdlib.h>
void *(*volatile take)(size_t) = malloc;
void (*volatile give)(void *) = free;
static char buffer[512];
int main(void)
{
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    give(take(100));
    take(24);
    puts("end 24");
    return 0;
}"""
    program = proc.compile(source, tmp_path / "address", "-no-pie", "-fno-pie")
    address = Run(traced, [program])
    assert address.end == address.truth == 24
    before = ALLOCATORS.get("mimalloc") or pytest.skip("no mimalloc here")  # its blocks are of 24 bytes or more, too
    assert Run(traced, [program], before=before).end == Run(traced, [program], after=before).end >= 24


EXTENSION = """
#include <cstdio>
#include <new>
#include <string>
#include <vector>
@OWN@
extern "C" int work()
{
    std::vector<std::string> v;
    for (int i = 0; i < 1000; i++)
        v.push_back(std::string(100, 'x'));
    try {
        volatile std::size_t huge = static_cast<std::size_t>(-1) / 2;
        char *volatile p = new char[huge];
        delete[] p;
    } catch (const std::bad_alloc &) {
        return CALLS;
    }
    return -1;
}
"""
OWN_OPERATORS = """
#include <cstdlib>
static int calls;
#define CALLS (calls > 1000)
void *operator new(std::size_t n)
{
    calls++;
    void *volatile p = std::malloc(n);
    return p ? p : throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
"""


LEAK = 1 << 20


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("allocator", ["glibc", "jemalloc", "tcmalloc"])  # mimalloc cannot throw
@pytest.mark.parametrize("own", [True, False], ids=["own-operators", "libstdc++"])
def test_cxx_extension_of_a_c_program(traced, tmp_path, own, allocator, place):
    """Operators found in the extension's own scope stay so, when nothing before it has any."""
    source = EXTENSION.replace("@OWN@", OWN_OPERATORS if own else "#define CALLS 1")
    library = proc.compile(source, tmp_path / "ext.so", "-shared", "-fPIC", compiler="g++")
    call = f"import ctypes; print(ctypes.CDLL('{library}').work())\nctypes.CDLL(None).malloc({LEAK})\nprint('end 0')"
    python = Run(traced, [sys.executable, "-c", call], **{place: ALLOCATORS[allocator]})
    assert "-1" not in python.result.stdout
    assert python.end > LEAK + 200_000, "what Python itself has at its end: 480,000 and more"


def test_off(traced):
    result = traced([PROGRAMS / "heap", "curve"], env={"GOTRACE_HEAP": "off"}).ok()
    events = gotools.parse(result.trace)
    assert not metrics(events, ALLOC) and not metrics(events, GOAL)
