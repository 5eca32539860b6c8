"""Our walker against libunwind, frame by frame, in programs of all kinds (test/unwind/check.c)."""

import re
import sys
import os

import pytest

from lib import AARCH64, BUILT, LIBC, ROOT, SINGLE, SOURCES, gotools, proc

pytestmark = [
    pytest.mark.skipif(LIBC < 35, reason="the checker looks for modules by _dl_find_object, of glibc 2.35"),
]

CHECK = BUILT / "test/unwind/check.so"
SCENES = ROOT / "test/unwind"


def compared(argv, at_least, **options):
    """Runs a program under the checker; every process of it must have found no difference."""
    result = proc.run(argv, env={"LD_PRELOAD": CHECK} | options.pop("env", {}), **options).ok()
    reports = re.findall(r"unwindcheck: (\d+) compared, (\d+) different, (\d+) odd", result.stderr)
    assert reports and all(different == "0" for _, different, _ in reports), result
    n, odd = sum(int(r[0]) for r in reports), sum(int(r[2]) for r in reports)
    assert n >= at_least, result
    assert odd <= n / 1000, result  # left to libunwind: code written by hand, where a signal interrupted it


CLANG = pytest.param("clang", marks=pytest.mark.needs("clang"))


@pytest.mark.parametrize("compiler", ["gcc", CLANG])
@pytest.mark.parametrize(
    "flags",
    ["-O0", "-O2", "-O3 -fomit-frame-pointer", "-O2 -fno-omit-frame-pointer -fno-plt", "-O3 -march=native -Wl,-z,lazy"],
)
def test_c(tmp_path, compiler, flags):
    """Frames of all sizes, callbacks, signals at any instruction and on other stacks, coroutines, threads."""
    flags = flags.replace("native", "armv8.5-a" if AARCH64 else "native")
    argv = [compiler, "-std=gnu11", "-D_GNU_SOURCE", *flags.split(), "-o", tmp_path / "scenes"]
    proc.run([*argv, SCENES / "scenes.c", "-pthread"]).ok()
    compared([tmp_path / "scenes"], 5000)


CXX = [("g++", "-O0"), ("g++", "-O3 -fomit-frame-pointer"), pytest.param("clang++", "-O2", marks=pytest.mark.needs("clang++"))]


@pytest.mark.parametrize("compiler, flags", CXX)
def test_cxx(tmp_path, compiler, flags):
    proc.run([compiler, *flags.split(), "-o", tmp_path / "cxx", SCENES / "cxx.cc", "-pthread"]).ok()
    compared([tmp_path / "cxx"], 5000)


@pytest.mark.parametrize("program", ["micro-cxx", "micro-cxx-fp"])
def test_deep_cxx(program):
    """What test/bench measures on."""
    compared([BUILT / "test/bench" / program, "yield", "100", "3000"], 3000)


def test_python():
    argv = [os.path.realpath(sys.executable), SOURCES / "unwind/deep.py"]
    compared(argv, 10000, env={"PYTHONMALLOC": "malloc", "UNWINDCHECK_LIMIT": "30000"})


@pytest.mark.needs("rustc")
def test_rust(tmp_path):
    proc.run(["rustc", "-O", "-o", tmp_path / "prog", SOURCES / "unwind/panics.rs"], timeout=50).ok()
    compared([tmp_path / "prog"], 2000)


def test_a_library_takes_the_place_of_another(traced, tmp_path):
    """The same code at the same addresses but for the size of its frame: an old layout would show."""
    sizes = [1000, 3000, 2000]
    source = {n: proc.compile(SOURCES / "unwind/frame.c", tmp_path / f"l{n}.so", "-shared", "-fPIC", "-O2", f"-DSIZE={n}") for n in sizes}
    result = traced([SINGLE / "unwind/loads", *source.values()]).ok()
    assert len(set(result.stdout.split())) == 1, "not at one address: the test tests nothing"
    stacks = [
        [f.func for f in e.stack[:3]]
        for e in gotools.parse(result.trace)
        if e.is_go("Running", "Waiting") and e.stack[0].func == "nanosleep"
    ]
    assert stacks == [["nanosleep", "outer", "main"]] * 3


# Return addresses that are signed: libunwind cannot follow them.
SIGNED = [["-mbranch-protection=standard"]] if AARCH64 else []


@pytest.mark.parametrize("flags", [[], *SIGNED])
def test_no_frames_of_ours_in_the_middle(traced, tmp_path, flags):
    """Nor are they in the way of a stack that is found again."""
    trace = traced([proc.compile(SOURCES / "unwind/once.c", tmp_path / "once", "-fno-inline", *flags)]).ok().trace
    stacks = [e.stack for e in gotools.parse(trace) if e.is_go("Running", "Waiting")]
    libc = re.compile(r"pthread_once|__libc_start|_start$")
    chains = [["thrice", "main"], ["thrice", "outer", "main"], ["thrice", "inner", "outer", "main"], ["thrice", "outer", "main"], ["thrice", "main"]]
    expected = [["nanosleep", *top, *chain] for chain in chains for top in [["doze"], ["doze", "deeper"]] * 3]
    assert [[f.func for f in stack if not libc.search(f.func)] for stack in stacks] == expected
    assert not any("libgotrace.so" in f.file or "preload/" in f.file for stack in stacks for f in stack), stacks


@pytest.mark.skipif(not AARCH64, reason="on x86-64 ld.so keeps where its caller's frame is in a register that is not followed")
@pytest.mark.parametrize("size", [8, 48, 3000])
def test_while_a_function_is_bound(traced, tmp_path, size):
    """ld.so's tables of its frames then leave out what the procedure linkage table has pushed."""
    library = proc.compile(SOURCES / "unwind/picked.c", tmp_path / "libpicked.so", "-shared", "-fPIC")
    program = proc.compile(SOURCES / "unwind/picks.c", tmp_path / "picks", "-O2", f"-DSIZE={size}", "-Wl,-z,lazy", library)
    trace = traced([program], env=proc.EVERY_YIELD).ok().trace
    (stack,) = ([f.func for f in e.stack] for e in gotools.parse(trace) if e.is_go("Running", "Runnable"))
    assert stack[:2] == ["sched_yield", "pick"] and stack[-1] == "_start", stack
    begin = stack.index("outer")
    assert stack[begin : begin + 3] == ["outer", "outermost", "main"], stack
    assert begin >= 4, f"not bound lazily: {stack}"  # at least _dl_fixup and its caller


@pytest.mark.parametrize("size", [24, 3000])
def test_a_stack_that_ran_over(traced, tmp_path, size):
    """In the handler the interrupted stack pointer may stand where nothing can be read."""
    flags = ["-O1", "-fno-optimize-sibling-calls", f"-DSIZE={size}", "-w"]
    result = traced([proc.compile(SOURCES / "unwind/overflow.c", tmp_path / "overflow", *flags)], env=proc.EVERY_YIELD).ok()
    assert result.stdout == "1\n1\n"
    yields = [e.stack for e in gotools.parse(result.trace) if e.is_go("Running", "Runnable")]
    handlers = [[f.func for f in stack[:2]] for stack in yields if stack]
    assert handlers == [["sched_yield", "handler"]] * 2
    assert all("down" in [f.func for f in stack] for stack in yields), yields


def test_reader_under_address_sanitizer():
    """build/asan/cfi: `make asan`."""
    proc.run([ROOT / "build/asan/cfi"], timeout=55).ok()
