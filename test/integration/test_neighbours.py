"""Beside other libraries that come between a program and libc, and programs that are not like others."""

import os
import shutil
import subprocess
import tempfile

import pytest

from lib import LIBRARY, PROGRAMS, gotools, proc

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


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.limit(120)
def test_valgrind(tmp_path):
    """A program has no more errors under both than under valgrind alone."""
    argv = ["valgrind", "-q", "--error-exitcode=9", PROGRAMS / "threads", "4"]
    bare = proc.run(argv, timeout=60)
    result = proc.traced(argv, tmp_path / "t.out", timeout=100)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout) == (0, bare.stdout), str(result)


@pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
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
