"""Programs and libraries with functions of their own in place of libc's: what libgotrace.so does itself passes none of them."""

import re

import pytest

from integration.test_attach import Program, attach
from lib import LIBC, LIBRARY, PROGRAMS, SINGLE, SOURCES, gotools, own_functions, proc

in_assembly = pytest.mark.skipif(not own_functions.ARE_THERE, reason=own_functions.WHERE)

SWITCHES = [
    {},
    {"GOTRACE": "off"},
    {"GOTRACE_CHILDREN": "all"},
    {"GOTRACE_RING": "4M"},
    {"GOTRACE_SCHED": "on"},
    {"GOTRACE_HEAP": "on"},
    {"GOTRACE_LIVE": "on"},
    {"GOTRACE_CPU_HZ": "1000"},
    {"GOTRACE_ROTATE": "1M"},
    {"GOTRACE_SIGNAL": "USR2", "GOTRACE_HANG": "1s"},
    {"GOTRACE_FORMAT": "go1.11", "GOTRACE_NAMES": "later"},
]
with_switches = pytest.mark.parametrize("switches", SWITCHES, ids=lambda switches: " ".join(switches) or "none")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return own_functions.build(tmp_path_factory.mktemp("own"), "own.so", "-fPIC", "-shared")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """prog/threads.c with the functions."""
    folder = tmp_path_factory.mktemp("own")
    own = own_functions.build(folder, "own.o", "-fPIE", "-c")
    return proc.compile(proc.ROOT / "test/prog/threads.c", folder / "threads", own, "-rdynamic")


def check(argv, trace, *, before="", behind="", **env):
    """The program ends as without us, and libgotrace.so calls none of the functions."""
    bare = proc.run(argv, env={"LD_PRELOAD": f"{before} {behind}".strip()})
    result = proc.traced(argv, trace, env={"LD_PRELOAD": f"{before} {LIBRARY} {behind}".strip()} | env)
    outputs = [re.sub(r"^\d+ ", "", r.stdout, flags=re.M) for r in (result, bare)]  # without process IDs
    assert (result.returncode, outputs[0]) == (bare.returncode, outputs[1]), f"bare: {bare}\ntraced: {result}"
    assert "libgotrace.so calls" not in result.stderr, str(result)
    return result


def test_what_we_import():
    names = own_functions.names()
    assert {"mmap", "getenv", "dlopen", "__register_atfork", "memcpy"} <= names
    left = set(own_functions.symbols(LIBRARY, "undefined")) - names
    variables = {"environ", "__environ", "stdin", "stdout", "__progname", "program_invocation_short_name", "__libc_single_threaded", "_r_debug"}
    weak = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__", "__asan_init", "__hwasan_init", "__msan_init", "__tsan_init"}
    assert left <= variables | weak


@in_assembly
def test_calls_are_seen(tmp_path):
    """Of functions that stay the program's: its calls of others that are hooked end in them."""
    library = own_functions.build(tmp_path, "own.so", "-fPIC", "-shared", but=set())
    result = proc.traced([PROGRAMS / "locks"], tmp_path / "t.out", env={"LD_PRELOAD": f"{LIBRARY} {library}"}).ok()
    called = set(re.findall(r"^libgotrace\.so calls (\w+)$", result.stderr, re.M))
    assert called and called <= own_functions.PROGRAMS_OWN


@in_assembly
@with_switches
def test_in_the_program(program, tmp_path, switches):
    result = check([program, "4"], tmp_path / "t.out", **switches)
    if switches.get("GOTRACE") != "off" and "GOTRACE_ROTATE" not in switches:
        gotools.check_all(result.trace)


@in_assembly
@pytest.mark.parametrize("order", ["before", "behind"])
@with_switches
def test_in_another_preload(library, tmp_path, order, switches):
    for argv in (["threads", "4"], ["lineage", "cFfevp"], ["lineage", "oftd"]):
        check([PROGRAMS / argv[0], *argv[1:]], tmp_path / "t.out", **{order: library}, **switches)


@in_assembly
@pytest.mark.skipif(LIBC < 34, reason="nothing is attached to where threads are a library of their own")
@pytest.mark.parametrize("what", ["locks", "forks", "signals"])
def test_attached(library, tmp_path, what):
    """The loader finds the program's functions before libc's, and before ours."""
    with open(tmp_path / "errors", "w") as errors:
        program = Program(what, env={"LD_PRELOAD": str(library)}, stderr=errors)
        attach(program, tmp_path / "t.out")
        program.end()
    assert "libgotrace.so calls" not in (tmp_path / "errors").read_text()
    gotools.check_all(tmp_path / "t.out")


@pytest.mark.measured
def test_handlers_around_clone(tmp_path):
    """What fork handlers of ours wait for is at most their own locks: a second each."""
    result = check([SINGLE / "own_functions/handlers"], tmp_path / "t.out", GOTRACE_CHILDREN="all")
    assert result.stdout == "10 of 10\n" and result.seconds < 1


@pytest.mark.measured
@pytest.mark.parametrize("way", ["clone", "fork"])
def test_fork_in_a_handler(tmp_path, way):
    flags = ["-DBY_FORK"] if way == "fork" else []
    library = proc.compile(SOURCES / "own_functions/clones.c", tmp_path / "clones.so", "-shared", "-fPIC", *flags)
    assert check([PROGRAMS / "lineage", "ff"], tmp_path / "t.out", behind=library).seconds < 1


def test_a_librarys_function_with_other_parameters(tmp_path):
    """A hook reads no argument that is no address, where the function is not libc's."""
    library = proc.compile(SOURCES / "own_functions/binds.c", tmp_path / "binds.so", "-shared", "-fPIC")
    check([PROGRAMS / "lineage", "ff"], tmp_path / "t.out", behind=library)


def test_operator_new(tmp_path):
    """The threads' names are read from objects whose size only a malloc of libc's would know."""
    result = check([SINGLE / "own_functions/pool"], tmp_path / "t.out")
    assert result.stdout == "0\n1\n2\n"
    gotools.check_all(result.trace)
