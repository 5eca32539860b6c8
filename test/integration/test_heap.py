"""HeapAlloc and HeapGoal against what test/prog/heap.c and heap_cxx.cc know of themselves, with four allocators."""

import re
import sys

import pytest

from lib import AARCH64, LIBC, LIBRARIES, LIBRARY, PROGRAMS, ROOT, SOURCES, gotools, proc

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


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_storm_of_four_threads_is_exact(traced, tmp_path, allocator):
    """To the byte, with what libc and the loader keep for each thread."""
    witness = proc.compile(SOURCES / "heap/witness.c", tmp_path / "witness.so", "-shared", "-fPIC", "-D_GNU_SOURCE")
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


@pytest.mark.parametrize("place", ["before", "after"])
def test_strdup_of_an_allocator(traced, tmp_path, place):
    """mimalloc 3 has one, which calls no malloc; what it gave out goes to free like any other block."""
    allocator = proc.compile(SOURCES / "heap/with_strdup.c", tmp_path / "allocator.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin")
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


@pytest.mark.parametrize("place", ["before", "after"])
def test_free_sized_of_an_allocator(traced, tmp_path, place):
    """Whether libc has them or not."""
    allocator = proc.compile(SOURCES / "heap/with_free_sized.c", tmp_path / "allocator.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin")
    assert_exact_sized(traced, **{place: allocator})


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_free_sized_that_may_not_be_there(traced, allocator):
    """Where no other library has it the program's weak reference finds ours: it frees."""
    after = ALLOCATORS[allocator]
    weakly = run(traced, "weakly", after=after)
    assert "skip" not in weakly.result.stdout and weakly.truth > 100000
    assert_exact(traced, weakly, after=after)


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_allocator_that_calls_us_while_it_begins(traced, tmp_path, place):
    """jemalloc reads files then. The real functions are looked up; those that there are not allocate nothing."""
    allocator = proc.compile(SOURCES / "heap/begins.c", tmp_path / "allocator.so", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin")
    copies, base = (run(traced, what, **{place: allocator}) for what in ("copies", "nothing"))
    assert copies.end - base.end == copies.truth > 1000


@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pie"]], ids=["pie", "no-pie"])
def test_malloc_of_the_program(traced, tmp_path, flags):
    program = proc.compile(SOURCES / "heap/own.c", tmp_path / "own", "-fno-builtin", *flags)
    assert Run(traced, [program]).alloc == []


def test_a_program_that_takes_mallocs_address(traced, tmp_path):
    """Without PIE its symbol table then has an entry for malloc, which is no definition."""
    program = proc.compile(SOURCES / "heap/address.c", tmp_path / "address", "-no-pie", "-fno-pie")
    address = Run(traced, [program])
    assert address.end == address.truth == 24
    before = ALLOCATORS.get("mimalloc") or pytest.skip("no mimalloc here")  # its blocks are of 24 bytes or more, too
    assert Run(traced, [program], before=before).end == Run(traced, [program], after=before).end >= 24


LEAK = 1 << 20


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("allocator", ["glibc", "jemalloc", "tcmalloc"])  # mimalloc cannot throw
@pytest.mark.parametrize("own", [True, False], ids=["own-operators", "libstdc++"])
def test_cxx_extension_of_a_c_program(traced, tmp_path, own, allocator, place):
    """Operators found in the extension's own scope stay so, when nothing before it has any."""
    flags = ["-DOWN"] if own else []
    library = proc.compile(SOURCES / "heap/extension.cc", tmp_path / "ext.so", "-shared", "-fPIC", *flags, compiler="g++")
    call = f"import ctypes; print(ctypes.CDLL('{library}').work())\nctypes.CDLL(None).malloc({LEAK})\nprint('end 0')"
    python = Run(traced, [sys.executable, "-c", call], **{place: ALLOCATORS[allocator]})
    assert "-1" not in python.result.stdout
    assert python.end > LEAK + 200_000, "what Python itself has at its end: 480,000 and more"


def test_off(traced):
    result = traced([PROGRAMS / "heap", "curve"], env={"GOTRACE_HEAP": "off"}).ok()
    events = gotools.parse(result.trace)
    assert not metrics(events, ALLOC) and not metrics(events, GOAL)
