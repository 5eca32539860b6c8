"""Beside other libraries that come between a program and libc, and programs that are not like others."""

import errno
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from lib import LIBRARY, PROGRAMS, SINGLE, SOURCES, gotools, proc

pytestmark = pytest.mark.foreign

SANITIZERS = ["address", "thread", "undefined"]
THREADS = "test/prog/threads.c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("neighbours")


def build(folder, name, compiler, *flags):
    return proc.compile(proc.ROOT / THREADS, folder / name, "-D_GNU_SOURCE", *flags, compiler=compiler)


def runtime(name):
    """A preloadable sanitizer runtime of gcc's."""
    return subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()


def same(program, trace, **options):
    bare = proc.run([program, "4"], **options)
    result = proc.traced([program, "4"], trace, **options)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), f"bare: {bare}\ntraced: {result}"
    return result


@pytest.mark.needs("clang")
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_sanitizer_in_the_program(folder, tmp_path, sanitizer):
    """clang puts the sanitizer's runtime into the program, where it comes before every preload."""
    program = build(folder, f"clang-{sanitizer}", "clang", f"-fsanitize={sanitizer}")
    result = same(program, tmp_path / "t.out")
    if sanitizer == "thread":
        assert result.stderr == "gotrace: a program with ThreadSanitizer is not traced\n"
    else:
        gotools.check_all(result.trace)


def test_sanitizer_behind(folder, tmp_path):
    program = build(folder, "gcc-undefined", "gcc", "-fsanitize=undefined")
    gotools.check_all(same(program, tmp_path / "t.out").trace)


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_sanitizer_preloaded_before(folder, tmp_path, sanitizer):
    """gcc's runtimes insist on being first; then it works."""
    program = build(folder, f"gcc-{sanitizer}", "gcc", f"-fsanitize={sanitizer}")
    first = runtime("libasan.so" if sanitizer == "address" else "libtsan.so")
    env = {"LD_PRELOAD": f"{first} {LIBRARY}", "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_bugs=0"}
    bare = proc.run([program, "4"], env={"ASAN_OPTIONS": "detect_leaks=0"})
    result = proc.traced([program, "4"], tmp_path / "t.out", env=env)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), str(result)
    if sanitizer == "address":
        gotools.check_all(result.trace)
    else:
        assert not result.trace.exists()


@pytest.mark.limit(120)
def test_valgrind(tmp_path):
    """A program has no more errors under both than under valgrind alone."""
    argv = ["valgrind", "-q", "--error-exitcode=9", PROGRAMS / "threads", "4"]
    bare = proc.run(argv, timeout=60)
    result = proc.traced(argv, tmp_path / "t.out", timeout=100)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout) == (0, bare.stdout), str(result)


@pytest.mark.limit(120)
def test_gdb(tmp_path):
    script = ["-ex", f"set exec-wrapper env LD_PRELOAD={LIBRARY} GOTRACE_OUTPUT={tmp_path / 't.out'}"]
    result = proc.run(
        ["gdb", "-q", "-batch", *script, "-ex", "run", "-ex", "print $_exitcode", "--args", PROGRAMS / "threads", "4"],
        timeout=100,
    )
    assert "$1 = 0" in result.stdout, str(result)
    gotools.check_all(tmp_path / "t.out")


@pytest.mark.parametrize("order", ["before", "after"])
def test_libfaketime(tmp_path, order):
    library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
    if not os.path.exists(library):
        pytest.skip("libfaketime is not installed")
    code = "import threading, time; t = threading.Thread(target=time.sleep, args=(.05,)); t.start(); t.join(); " + (
        "print(time.gmtime().tm_year)"
    )
    argv, fake = ["/usr/bin/python3", "-c", code], {"FAKETIME": "2001-02-03 04:05:06"}
    preload = [library, str(LIBRARY)] if order == "before" else [str(LIBRARY), library]
    bare = proc.run(argv, env=fake | {"LD_PRELOAD": library})
    result = proc.traced(argv, tmp_path / "t.out", env=fake | {"LD_PRELOAD": " ".join(preload)})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout) == (0, "2001\n"), str(result)
    gotools.check_all(tmp_path / "t.out")


@pytest.mark.parametrize("order", ["before", "behind"])
@pytest.mark.parametrize("library", ["libeatmydata.so.1", "libjemalloc.so.2", "libtcmalloc.so.4", "libprofiler.so.0", "libtcmalloc_and_profiler.so.4"])
def test_python_beside_a_preload(tmp_path, library, order):
    """Libraries that take the place of sync calls, malloc, signals and threads."""
    found = list(pathlib.Path("/usr/lib").glob(f"*/{library}"))
    if not found:
        pytest.skip(f"{library} is not here; ./scripts/deps all installs it")
    code = "import threading, os, subprocess; sums = []; t = [threading.Thread(target=lambda: sums.append(sum(range(9999)))) for _ in range(4)]; "
    code += "[x.start() for x in t]; [x.join() for x in t]; os.sync(); print(sums, subprocess.run(['true']).returncode)"
    preload = [str(found[0]), str(LIBRARY)] if order == "before" else [str(LIBRARY), str(found[0])]
    argv, env = ["/usr/bin/python3", "-c", code], {"CPUPROFILE": str(tmp_path / "profile")}
    bare = proc.run(argv, env=env | {"LD_PRELOAD": str(found[0])})
    result = proc.traced(argv, tmp_path / "t.out", env=env | {"LD_PRELOAD": " ".join(preload)})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout) == (0, bare.stdout), str(result)
    gotools.check_all(tmp_path / "t.out")


def test_static_program(folder, tmp_path):
    program = build(folder, "static", "gcc", "-static")
    assert same(program, tmp_path / "t.out").stderr == ""
    assert not (tmp_path / "t.out").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a setuid program")
def test_setuid_program(folder):
    """The loader itself refuses to preload by path; a library in a trusted folder does nothing in it."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        program = shutil.copy(build(folder, "setuid", "gcc"), place)
        os.chmod(program, 0o4755)
        as_nobody = ["setpriv", "--reuid", "65534", "--clear-groups", program, "4"]
        bare = proc.run(as_nobody).ok()
        result = proc.run(as_nobody, env={"LD_PRELOAD": LIBRARY, "GOTRACE_OUTPUT": f"{place}/t.out"}).ok()
        assert result.stdout == bare.stdout
        assert os.listdir(place) == ["setuid"]


# --- programs that replace malloc and free, and nothing else: calloc, realloc and the rest stay libc's


@pytest.mark.parametrize("place", ["in the program", "linked", "preloaded before", "preloaded after"])
def test_only_malloc_and_free_replaced(folder, tmp_path, place):
    allocator = SOURCES / "neighbours/partial_allocator.c"
    library = proc.compile(allocator, folder / "libpartial.so", "-shared", "-fPIC", "-fno-builtin")
    linked = {"in the program": [allocator], "linked": ["-Wl,--no-as-needed", library]}.get(place, [])
    program = proc.compile(SOURCES / "neighbours/partial_user.c", folder / "partial", "-fno-builtin", *linked)
    others = {"preloaded before": (f"{library} ", ""), "preloaded after": ("", f" {library}")}.get(place, ("", ""))
    bare = proc.run([program], env={"LD_PRELOAD": "".join(others).strip()})
    result = proc.traced([program], tmp_path / "t.out", env={"LD_PRELOAD": f"{others[0]}{LIBRARY}{others[1]}"})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout) == (4, "hello 1\n1\n"), str(result)
    gotools.check_all(result.trace)


# --- RTLD_DEEPBIND: a library whose calls go to libc itself

DEEP_LIBRARY = "#include <stdlib.h>\nvoid *make(size_t n) { return malloc(n); }\nvoid take(void *p) { free(p); }\n"


def test_loaded_late(folder, tmp_path):
    """Nothing calls it then; and it is gone when the program closes it."""
    program = SINGLE / "neighbours/late"
    result = proc.run([program, LIBRARY], env={"GOTRACE_OUTPUT": tmp_path / "t.out"}).ok()
    assert result.stdout == f"{errno.ESHUTDOWN} 0 0 0\n"
    assert result.stderr == "gotrace: loaded by dlopen(3), not by LD_PRELOAD: nothing is recorded\n"
    assert not (tmp_path / "t.out").exists()


def test_deepbind(folder, tmp_path):
    """Blocks made behind our back and freed through us, and the other way round: the heap's graph may be too low, but
    never below nothing."""
    library = proc.compile(DEEP_LIBRARY, folder / "libdeep.so", "-shared", "-fPIC")
    program = SINGLE / "neighbours/deep"
    bare = proc.run([program, library]).ok()
    result = proc.traced([program, library], tmp_path / "t.out").ok()
    assert result.stdout == bare.stdout == "mixed\n"
    gotools.check_all(result.trace)
    events = [e for e in gotools.parse(result.trace) if e.fields.get("Name") == "/memory/classes/heap/objects:bytes"]
    values = [int(re.search(r"\d+(?=\)})", e.fields["Value"])[0]) for e in events]
    assert values and all(0 <= v < 1 << 30 for v in values) and values[-1] < 1 << 20, values


# --- musl: its loader cannot take a library made for glibc

MUSL_LOADER = "/lib/ld-musl-x86_64.so.1"


@pytest.fixture(scope="module")
def of_musl(folder):
    source = '#include <stdio.h>\nint main(void) { puts("musl"); return 0; }\n'
    return lambda name, *flags: proc.compile(source, folder / name, *flags, compiler="musl-gcc")


def test_static_program_of_musl(of_musl, tmp_path):
    """It has no loader."""
    assert proc.traced([of_musl("musl-static", "-static")], tmp_path / "t.out").ok().stdout == "musl\n"
    assert not (tmp_path / "t.out").exists()


needs_musl = pytest.mark.skipif(not os.path.exists(MUSL_LOADER), reason="no musl here")


@needs_musl
def test_program_of_musl(of_musl, tmp_path):
    """The loader says what it misses and ends, before the program and before anything of ours runs. The launcher says
    it in words (test_launcher.py)."""
    program = of_musl("musl")
    assert proc.run([program]).ok().stdout == "musl\n"
    result = proc.traced([program], tmp_path / "t.out")
    assert result.returncode == 127 and not result.stdout and "Error relocating" in result.stderr, str(result)
    assert not (tmp_path / "t.out").exists()


@needs_musl
def test_path_that_only_glibc_understands(of_musl, tmp_path):
    """As gotrace-systems(7) has it: by $LIB glibc's loader finds the library, and that of musl, nothing, which it does not mind."""
    (value,) = re.findall(r"`LD_PRELOAD='(/usr/\$LIB/[./]*)/DIR/libgotrace.so'`", (proc.ROOT / "scripts/man/gotrace-systems.7.md").read_text())
    env = {"LD_PRELOAD": f"{value}{LIBRARY}"}
    result = proc.traced(["sh", "-c", of_musl("musl-child")], tmp_path / "t.out", env=env | {"GOTRACE_CHILDREN": "all"}).ok()
    assert result.stdout == "musl\n" and "Error" not in result.stderr
    gotools.check_all(result.trace)
    assert proc.run([of_musl("musl-alone")], env=env).ok().stderr == ""


def test_program_with_a_libunwind_of_its_own(folder, tmp_path):
    """It exports the names that C++ exceptions are unwound by; whose they are bound to is not for us to change."""
    source, flags = proc.ROOT / "test/prog/cxx.cc", ["-std=c++17", "-Wl,--no-as-needed", "-lunwind", "-ldl"]
    program = proc.compile(source, folder / "unwinds", *flags, compiler="g++")
    assert "libunwind.so" in proc.run(["ldd", program]).ok().stdout
    bare = proc.run([program]).ok()
    result = proc.traced([program], tmp_path / "t.out").ok()
    assert result.stdout == bare.stdout
    gotools.check_all(result.trace)
