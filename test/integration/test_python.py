"""Frames of Python's interpreter are shown as what it executes: a program tells its own stack, and waits there."""

import collections
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import time

import pytest

from lib import BUILT, LIBC, PROGRAMS, ROOT, SOURCES, gotools, proc

GOTRACE = ROOT / "build/gotrace"
KNOWN = range(9, 16)  # of 3.N
# Those of this machine; or of GOTRACE_TEST_PYTHONS, paths with colons between them, which end in python3.N each.
HERE = [p for d in ("/usr/bin", "/usr/local/bin") for p in pathlib.Path(d).glob("python3.*") if re.fullmatch(r"python3\.\d+", p.name)]
PYTHONS = [pathlib.Path(p) for p in os.environ.get("GOTRACE_TEST_PYTHONS", "").split(":") if p] or sorted(HERE)


def source(name):
    """The text of one of the programs, which needs what tells.py has."""
    text = (SOURCES / f"python/{name}.py").read_text()
    return re.sub(r"^# (\d+) lines\n", lambda found: "\n" * int(found[1]), text, flags=re.M)


TELLS = source("tells")


def embeds(python, rounds=1):
    """The command that executes scripts in that Python's library, after a dlopen, so often."""
    library = proc.run([python, SOURCES / "python/library.py"]).ok().stdout.strip()
    command = [PROGRAMS / "embeds", library, rounds]
    if "dlopen" in proc.run([*command, "-c", ""]).stderr:
        pytest.skip(f"{library} is not here; ./scripts/deps test installs that of the system")
    return command


@pytest.fixture(params=PYTHONS, ids=lambda p: p.name)
def python(request):
    if int(request.param.name.split(".")[1]) not in KNOWN:
        pytest.skip(f"{request.param.name} has a layout that is not known")
    return request.param


@pytest.fixture(params=["itself", "embedded"])
def command(request, python):
    return [python] if request.param == "itself" else embeds(python)


@pytest.fixture
def run(command, traced, tmp_path):
    """A function that runs such a program; gives the result and the stacks that it told."""

    def run(text, **options):
        program = tmp_path / "app.py"
        program.write_text(TELLS + text)
        env = {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", **options.pop("env", {})}
        result = traced([*command, program], env=env, timeout=60, **options).ok()
        return result, [[tuple(frame) for frame in json.loads(line)] for line in result.stdout.splitlines() if line.startswith("[")]

    return run


def python_frames(event, files):
    return [(f.func, f.file, f.line) for f in event.stack if f.file in files]


def waits(trace, told, leaf=r"clock_nanosleep|select", go=None):
    """The frames of Python in every wait of ours."""
    files = {file for stack in told for _, file, _ in stack}
    events = [e for e in gotools.parse(trace, go=go) if e.is_go("Running", "Waiting") or e.is_go("Running", "Syscall")]
    return [python_frames(e, files) for e in events if re.fullmatch(leaf, e.stack[0].func) and python_frames(e, files)]


def test_tree(run, go):
    result, told = run(source("tree"))
    assert len(told) == 19 and waits(result.trace, told, go=go) == told
    assert all("_PyEval_EvalFrameDefault" not in [f.func for f in e.stack] for e in gotools.parse(result.trace) if any(f.func == "nap" for f in e.stack))


@pytest.mark.measured
def test_how_long(run):
    """It slept 50 ms in f, which g called."""
    result, _ = run("def f(): time.sleep(tell(0.05))\ndef g(): f()\ng()\ng()\n")
    began, lengths = {}, []
    for event in gotools.parse(result.trace):
        if event.is_go("Running", "Waiting") and [f.func for f in event.stack if f.func in "fg"] == ["f", "g"]:
            began[event.goid] = event.time
        elif event.goid in began and event.old == "Waiting" != event.new:
            lengths.append(event.time - began.pop(event.goid))
    assert len(lengths) == 2 and all(0.05e9 <= ns < 0.25e9 for ns in lengths), lengths


def test_threads(run):
    """Each has its own, whichever thread has the interpreter's lock."""
    result, told = run(source("threads"))
    count = lambda stacks: collections.Counter(map(tuple, stacks))
    assert len(told) == 120
    found = count(waits(result.trace, told, "clock_nanosleep|select"))
    assert {s: n for s, n in found.items() if s[0][0] == "nap"} == count(told)


def test_names_of_threads(run, python):
    """Those of threading by the time that they start, however the object keeps them; or as much as the kernel has of them."""
    result, _ = run(source("names_of_threads"))
    told = {int(tid): bytes.fromhex(name).decode() for tid, name in re.findall(r"^named (\d+) ?(\w*)$", result.stdout, re.M)}
    if python.name in ("python3.14", "python3.15"):
        told = {tid: name.encode()[:15].decode(errors="ignore") for tid, name in told.items()}
    events = gotools.parse(result.trace)
    found = {e.m: e.fields["Label"].strip('"') for e in events if e.kind == "Label"}
    assert len(told) >= 15 and {tid: found.get(tid, "") for tid in told} == told


def test_functions_of_threads(run):
    """What a thread executes is its target, or the method that a class has in its place, and not C's function."""
    result, _ = run(source("functions_of_threads"))
    told = {int(tid): name for tid, name in re.findall(r"^executes (\d+) (\S+)$", result.stdout, re.M)}
    rows = proc.run([GOTRACE, "sql", "--json", result.trace, "SELECT tid, routine FROM threads"]).ok().stdout
    found = {row["tid"]: row["routine"] for row in json.loads(rows)}
    assert len(told) == 6
    if all("." not in found[tid] for tid in told):  # to 3.10, functions are without their class
        told = {tid: name.rpartition(".")[2] for tid, name in told.items()}
    assert [name for tid, name in told.items() if name not in ("?", found[tid])] == [], (told, found)
    assert all(found[tid] not in told.values() for tid, name in told.items() if name == "?"), (told, found)


def test_code_that_goes(run):
    """Functions of one name and place in one file, each made where the one before has just been given back."""
    result, told = run(source("code_that_goes"))
    assert len({stack[1][2] for stack in told}) == 31 and waits(result.trace, told) == told


def test_names_in_all_scripts(run):
    result, told = run(source("names_in_all_scripts"))
    assert [f[0] for f in told[2]][:4] == ["nap", "größe", "日本", "𐐨"] and waits(result.trace, told) == told


def test_deep(run):
    """The innermost functions are there, as many as a stack has."""
    result, told = run(source("recursion"))
    found = waits(result.trace, told)
    assert len(found) == len(told) and found[0] == told[0]
    assert all(f == t[: len(f)] and len(f) >= min(len(t), 40) for f, t in zip(found, told)), [len(f) for f in found]


def test_a_call_under_way(run):
    """Others look at its stack, when a generation is over."""
    result, told = run(source("a_call_under_way"))
    assert [f for f in waits(result.trace, told, "read") if f[0][0] == "read"] == told


def test_code_that_is_compiled(python, traced):
    """PYTHON_JIT: native frames end where the code of a hot loop begins; Python's own are there all the same."""
    result = traced([python, SOURCES / "python/hot.py"], env={"PYTHON_JIT": "1"}, timeout=60).ok()
    if result.stdout != "True\n":
        pytest.skip("this Python compiles nothing")
    waits = [[f.func for f in e.stack] for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting")]
    assert sum("work" in stack for stack in waits) >= 12000
    assert not [stack for stack in waits if any(re.match("0x|jit", f) for f in stack)]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program makes code for x86-64")
def test_code_that_is_made_for_a_function_without_a_name(traced, tmp_path):
    """It stays in the stack: no frame of Python's says more."""
    program = proc.compile(SOURCES / "python/made_in_between.c", tmp_path / "anything", "-rdynamic")
    (nap,) = [e for e in gotools.parse(traced([program]).ok().trace) if e.is_go("Running", "Waiting")]
    functions = [re.sub("^0x.*", "made", f.func) for f in nap.stack]
    assert functions[:5] == ["nanosleep", "sleep_a_bit", "made", "_PyEval_EvalFrameDefault", "main"]


def test_threads_that_python_leaves(run):
    """They wait in calls when it ends, and all that they would show is given back."""
    for _ in range(8):
        run(source("threads_that_python_leaves"))


def test_handlers_and_destructors(run):
    """They are called in the middle of other functions."""
    result, told = run(source("handlers_and_destructors"))
    assert len(told) == 6 and [stack[1][0].split(".")[-1] for stack in told] == ["__del__", *["handler"] * 5]
    assert [f for f in waits(result.trace, told) if f[0][0] == "nap"] == told


def test_forked_child(run, tmp_path):
    """It has the same functions, and goes on from there."""
    result, told = run(source("forks"), trace=f"{tmp_path}/%p.out")
    traces = [waits(path, told) for path in tmp_path.glob("*.out")]
    assert len(told) == 2 and sorted(t for t in traces if t) == sorted([[told[0]], [told[1]]]), traces


def test_unloaded_and_loaded_again(python, traced, tmp_path):
    """A program that never was Python, with threads that have nothing to do with it."""
    program = tmp_path / "app.py"
    program.write_text(TELLS + source("tree"))
    rounds = 5
    result = traced([*embeds(python, rounds), program], env={"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}, timeout=60).ok()
    told = [[tuple(frame) for frame in json.loads(line)] for line in result.stdout.splitlines() if line.startswith("[")]
    assert len(told) == 19 * rounds and told == told[:19] * rounds and waits(result.trace, told) == told
    assert re.findall("^(?:gone|stays)$", result.stdout, re.M) in (["gone"] * rounds, ["stays"] * rounds)
    others = [e for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting") and "play" in [f.func for f in e.stack]]
    assert len(others) > 100 and not [e for e in others if any(f.file == str(program) for f in e.stack)]


@pytest.fixture(params=["live", pytest.param("core", marks=pytest.mark.needs("gcore"))])
def look(request, tmp_path):
    """A function that says which frames `gotrace stacks` finds in each thread of a process, or of its core file."""

    def look(pid):
        core = request.param == "core"
        if core:
            proc.run(["gcore", "-o", tmp_path / "core", pid]).ok()
        told = proc.run([GOTRACE, "stacks", "--json", f"{tmp_path}/core.{pid}" if core else pid]).ok()
        return [[(f["function"], f.get("file"), f.get("line")) for f in t["stack"]] for t in json.loads(told.stdout)["threads"]]

    return look


def test_stacks_from_outside(command, look, tmp_path):
    """Without the library: functions of Python in place of the interpreter's function, of threads that wait and of one that computes."""
    program = tmp_path / "app.py"
    program.write_text(TELLS + source("stands"))
    env = {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    child = proc.spawn([*command, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    try:
        told = [[tuple(frame) for frame in json.loads(child.stdout.readline())] for _ in range(5)]
        files = {file for stack in told for _, file, _ in stack}
        end = time.monotonic() + 10
        while True:  # a thread that has told may still be on its way
            stacks = look(child.pid)
            found = [[frame for frame in stack if frame[1] in files] for stack in stacks]
            if sorted(found) == sorted(told) or time.monotonic() > end:
                break
        assert sorted(found) == sorted(told)
        assert not [f for stack in stacks for f in stack if f[0].startswith("_PyEval_EvalFrameDefault")]
    finally:
        proc.kill_group(child)


@pytest.mark.skipif(platform.machine() != "x86_64" or LIBC < 34, reason="nothing is attached to there")
def test_attached(python, tmp_path):
    """To a program that has Python's library from dlopen, and has it anew while it is recorded, and when it is not."""
    program = tmp_path / "app.py"
    program.write_text(TELLS + "def f(): nap()\nprint('ready')\nfor line in iter(sys.stdin.readline, 'end\\n'):\n    f()\n    print('done')\n")
    env = {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    child = proc.spawn([*embeds(python, 3), program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(line):
        child.stdin.write(line + "\n")
        child.stdin.flush()
        return child.stdout.readline()

    def call():
        told.append([tuple(frame) for frame in json.loads(ask("call"))])
        assert child.stdout.readline() == "done\n"

    def have_it_anew():
        assert ask("end") in ("gone\n", "stays\n") and child.stdout.readline() == "ready\n"

    try:
        assert child.stdout.readline() == "ready\n"
        for anew in (True, False):
            trace, told = tmp_path / f"{anew}.out", []
            proc.run([BUILT / "gotrace", "attach", "-o", trace, child.pid], timeout=60).ok()
            call()
            if anew:
                have_it_anew()
            call()
            proc.run([BUILT / "gotrace", "detach", child.pid], timeout=60).ok()
            assert len(told) == 2 and waits(trace, told) == told
            if anew:
                have_it_anew()
        assert ask("end") in ("gone\n", "stays\n")
        assert child.wait(30) == 0
    finally:
        proc.kill_group(child)


def test_functions_of_an_extension_module_are_places(python, traced, tmp_path):
    """Though names and files are like the interpreter's."""
    (tmp_path / "Modules").mkdir()
    source = shutil.copy(SOURCES / "python/spammodule.c", tmp_path / "Modules")
    proc.compile(pathlib.Path(source), tmp_path / "spam.so", "-shared", "-fPIC")
    result = traced([python, "-c", "import spam"], env={"PYTHONPATH": tmp_path})
    assert "initialization of spam failed" in result.stderr
    rows = json.loads(proc.run([GOTRACE, "top", "--json", "--kind=sleep", result.trace]).ok().stdout)["waits"]
    assert {row["place"] for row in rows} == {"usleep <- PyInit_spam (spammodule.c:14)", "usleep <- PySpam_Wait (spammodule.c:9)"}


@pytest.mark.measured
def test_samples(run):
    """What runs: 3 parts of 4 in a, by lines of spin."""
    result, _ = run(source("samples"), env={"GOTRACE_CPU_HZ": "500"})
    found = collections.Counter()
    for event in gotools.parse(result.trace):
        names = [f.func for f in event.stack if f.file.endswith("/app.py")]
        if event.kind == "StackSample" and "both" in names:
            at = names.index("both")
            assert names[at - 2 : at] in (["spin", "a"], ["spin", "b"]) or at < 2, names
            found[names[at - 1]] += 1
    assert found["a"] + found["b"] > 0.9 * 0.8 * 100 and 2 < found["a"] / found["b"] < 4.5, found


@pytest.mark.parametrize("options", [{"GOTRACE_FORMAT": "go1.11"}, {"GOTRACE_NAMES": "later"}, {"GOTRACE_RING": "10M"}])
def test_recordings_of_all_kinds(run, options):
    result, told = run("def f(): nap()\nfor i in range(5): f()\n", env=options)
    assert waits(result.trace, told) == told


# What 3.13 to 3.15 publish, by words.
PUBLISHED = {
    "0x030d00f0": {19: 400, 23: 72, 28: 88, 29: 8, 30: 0, 31: 56, 33: 70, 34: 216, 35: 112, 37: 128, 38: 136, 39: 68, 43: 200, 44: 16, 45: 8},
    "0x030e00f0": {22: 400, 26: 72, 31: 88, 32: 8, 33: 0, 34: 56, 36: 74, 39: 216, 40: 112, 42: 128, 43: 136, 44: 68, 48: 208, 50: 16, 51: 8},
    "0x030f00f0": {22: 888, 26: 72, 39: 88, 40: 8, 41: 0, 42: 56, 43: 80, 44: 74, 47: 216, 48: 112, 50: 128, 51: 136, 52: 68, 56: 208, 58: 16, 59: 8},
}


LOADER = r"""
#include <dlfcn.h>
int main(int argc, char **argv) { return argc == 2 ? ((int (*)(void))dlsym(dlopen(argv[1], RTLD_NOW), "main"))() : 2; }
"""


@pytest.fixture(params=["program", "library"])
def build(request, tmp_path):
    """A function that makes a program with these macros, or a library, and one that has it from dlopen: the command."""

    def build(**macros):
        flags = [f"-D{name}={value}" for name, value in macros.items()]
        if request.param == "program":
            return [proc.compile(SOURCES / "python/no_python.c", tmp_path / "anything", "-rdynamic", *flags)]
        library = proc.compile(SOURCES / "python/no_python.c", tmp_path / "anything.so", "-shared", "-fPIC", *flags)
        return [proc.compile(LOADER, tmp_path / "loader", "-ldl"), library]

    return build


@pytest.mark.parametrize("version", ["0x030900f0", "0x030a00f0", "0x030b00f0", "0x030c00f0", *PUBLISHED])
def test_what_is_not_as_it_has_to_be(traced, build, version):
    """A program with Python's symbols, and at random what they lead to: it goes on, and has its own frames."""
    words = {0: int.from_bytes(b"xdebugpy", "little"), 1: int(version, 16), **PUBLISHED.get(version, {})}
    offsets = ", ".join(f"[{at}] = {word}" for at, word in words.items())
    result = traced(build(VERSION=version, OFFSETS=offsets), env={"GOTRACE_CPU_HZ": "10000"}, timeout=60).ok()
    stacks = [[f.func for f in e.stack] for e in gotools.parse(result.trace) if e.is_go("Running", "Waiting")]
    assert int(result.stdout) >= 3000  # who has such symbols is asked
    assert len(stacks) == 3000 and all(s[0] == "nanosleep" and "main" in s for s in stacks)
    assert all(s[1:5].count("_PyEval_EvalFrameDefault") == 4 for s in stacks)


@pytest.mark.parametrize("version", PUBLISHED)
def test_free_threaded(traced, build, version):
    """It says so, and is left alone: what it has at the same places is other than it looks."""
    words = {0: int.from_bytes(b"xdebugpy", "little"), 1: int(version, 16), 2: 1, **PUBLISHED[version]}
    offsets = ", ".join(f"[{at}] = {word}" for at, word in words.items())
    assert traced(build(VERSION=version, OFFSETS=offsets), timeout=60).ok().stdout == "0\n"  # so often it was asked
