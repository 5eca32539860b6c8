"""Names of code that programs make at run time: test/prog/made.c says what it calls its functions, and waits in them."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from lib import PROGRAMS, ROOT, SOURCES, gotools, proc

GOTRACE = ROOT / "scripts/gotrace"
SNOOZE = ["nanosleep", "snooze"]


@pytest.fixture
def made(traced, tmp_path):
    """A function that runs the program's steps; its maps are gone afterwards. Gives the run."""
    pids = []

    def run(*steps, **options):
        result = traced([PROGRAMS / "made", *steps], cwd=tmp_path, **options).ok()
        pids.extend(re.findall(r"^pid (\d+)$", result.stdout, re.M))
        return result

    yield run
    for pid in pids:
        pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def callers(trace):
    """The frame that waits in each call, as "name" or "name file:line"; "?" where it has no name."""
    found = []
    for event in gotools.parse(trace):
        stack = event.stack
        if event.is_go("Running", "Waiting") and [f.func for f in stack[:2]] == SNOOZE:
            assert [f.func for f in stack[3:5]] == ["run", stack[4].func] and stack[4].func.startswith("wait_")
            f = stack[2]
            found.append("?" if f.func.startswith("0x") else f"{f.func} {f.file}:{f.line}" if f.line else f.func)
    return found


def test_map(made):
    """A name holds for the generations in which it is that of the address; where two may have been there, both."""
    steps = "map,0,alpha wait,0 wait,1 next map,1,beta map,0,gamma wait,1 wait,0 next wait,0 wait,1"
    found = callers(made(*steps.split()).trace)
    assert found[:3] + found[4:] == ["alpha", "?", "beta", "gamma", "beta"]
    assert found[3] in ("alpha or gamma", "gamma")  # a slow run's generation may have ended in between


def test_map_of_a_flight_recorder(made):
    """Names are made when it is written."""
    steps = "map,0,alpha wait,0 wait,1 map,1,beta"
    assert callers(made(*steps.split(), env={"GOTRACE_RING": "10M"}).trace) == ["alpha", "beta"]


def test_jitdump(made):
    """Functions come at their own times, with their lines, and move."""
    steps = """dump load,0,alpha,10 wait,0 early,0 next load,0,gamma,20 wait,0 next wait,0 move,0,1 next wait,1 wait,0
        next load,2,delta,0 wait,2 next wait,2"""
    found = callers(made(*steps.split()).trace)
    assert found[:2] == ["alpha made.src:11", "alpha made.src:10"]
    assert found[2] in ("alpha or gamma", "gamma made.src:21")  # as above
    assert found[3:] == ["gamma made.src:21", "gamma made.src:21", "?", "delta", "delta"]


def test_damaged_jitdump(made):
    """From there on nobody knows which code was replaced."""
    found = callers(made(*"dump load,0,alpha,0 wait,0 next damage wait,0 next wait,0".split()).trace)
    assert found == ["alpha", "?", "?"]


def test_forked_child(made, tmp_path):
    """It has its parent's code, and a map of its own."""
    steps = "map,0,alpha map,1,beta wait,0 next fork map,1,gamma wait,0 next wait,1"
    result = made(*steps.split(), trace=f"{tmp_path}/%p.out")
    parent, child = re.findall(r"^pid (\d+)$", result.stdout, re.M)
    assert callers(tmp_path / f"{parent}.out") == ["alpha"]
    assert callers(tmp_path / f"{child}.out") == ["alpha", "gamma"]


@pytest.mark.parametrize(
    "way, may",
    [("take", True), ("link", False), ("fifo", False), ("owner,12345", False), ("hard", False)],
)
def test_whose_map(made, tmp_path, way, may):
    """It must be a regular file with one name, of this user or of root."""
    other = tmp_path / "other"
    other.write_text("0 7fffffffffff everything\n")
    if way == "hard":
        os.link(other, tmp_path / "second")
    argument = "" if "," in way or way == "fifo" else f",{other}"
    if way.startswith("owner"):
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        steps = ["map,0,everything", way]
    else:
        steps = [("take" if way == "hard" else way) + argument]
    assert callers(made(*steps, "wait,0").trace) == ["everything" if may else "?"]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{i:x} 1 f{i}\n" for i in range(300000)),  # more than are sorted at a time
        "x" * 200000 + "\n",
        "\0\1\2\3 not a map\n\n \n1\n1 2\n1 2 \n-1 5 f\nffffffffffffffff 5 f\n1 ffffffffffffffff f\n12345678901234567 1 f\n",
        "7f0000000000 8 f\x1b[31m\n",
    ],
    ids=["long", "overlong", "nonsense", "controls"],
)
def test_what_is_no_line(made, tmp_path, text):
    """Costs nothing but itself: the next line is read."""
    (tmp_path / "other").write_text(text)
    found = callers(made(f"take,{tmp_path}/other", "map,0,alpha", "wait,0", "wait,1").trace)
    assert found == ["alpha", "?"]


def test_a_huge_map(made, tmp_path):
    """What is not read in one go says nothing until then, and holds nobody up."""
    with open(tmp_path / "other", "w") as file:
        file.truncate(100 << 20)
    found = callers(made(f"take,{tmp_path}/other", "text,\n", "map,0,alpha", "wait,0", "next", "wait,0").trace)
    assert found[0] in ("?", "alpha") and found[1] == "alpha"  # a slow run's generations are more


def test_code_that_is_written_anew(made, tmp_path):
    """A map in the place of another one: functions that it lacks are gone."""
    other = tmp_path / "other"
    other.write_text("")
    found = callers(made("map,0,alpha", "wait,0", "next", f"take,{other}", "map,1,beta", "next", "wait,0", "wait,1").trace)
    assert found == ["alpha", "?", "beta"]


def test_gdb(made):
    """ELF files in memory, registered for GDB; they go and others come, in the same memory."""
    steps = """gdb,0,alpha wait,0 next gdb,1,_ZN4beta3runEv wait,1 next wait,0 ungdb gdb,1,gamma next wait,1 ungdb ungdb next
        wait,0 wait,1"""
    found = callers(made(*steps.split()).trace)
    assert found == ["alpha", "beta::run()", "alpha", "gamma", "?", "?"]


def test_code_without_a_frame_pointer(made):
    """What returns at once from where it was called is crossed by its instructions, as Python's trampolines are."""
    result = made("map,6,py::Thread.run:/opt/app.py", "early,6", "map,7,py::odd", "early,7")
    assert callers(result.trace) == ["Thread.run", "py::odd"]
    files = {f.func: f.file for event in gotools.parse(result.trace) for f in event.stack}
    assert files["Thread.run"] == "/opt/app.py" and {"main", "_start"} <= set(files)
    assert "nanosleep <- Thread.run (app.py)" in proc.run([GOTRACE, "top", result.trace]).ok().stdout


@pytest.mark.parametrize("format", ["go1.26", "go1.19"])
def test_map_afterwards(made, tmp_path, format):
    """Some programs write theirs when they end: `gotrace symbolize` gives the names then."""
    result = made("wait,0", "wait,1", "early,1", env={"GOTRACE_FORMAT": format})
    assert callers(result.trace) == ["?"] * 3
    nameless = {f.func for event in gotools.parse(result.trace) for f in event.stack if f.func.startswith("0x")}
    first = min(int(address, 16) for address in nameless) & ~63
    late = tmp_path / "late.map"
    late.write_text(f"{first:x} 40 alpha\n{first + 64:x} 40 beta\n")
    proc.run([GOTRACE, "symbolize", f"--perf-map={late}", result.trace]).ok()
    assert callers(result.trace) == ["alpha", "beta", "beta"]
    late.write_text("nothing\n")
    assert proc.run([GOTRACE, "symbolize", f"--perf-map={late}", result.trace]).returncode == 1


@pytest.fixture
def staying():
    """A function that starts the program, in a command or alone, and waits until it stays where `argv` says. Gives
    the process, and the pid that the program has for itself."""
    started = []

    def start(*steps, command=(), **options):
        argv = [*command, PROGRAMS / "made", *steps]
        child = proc.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        first = child.stdout.readline()
        assert first.startswith("pid ") and child.stdout.readline() == "stays\n"
        started.append((child, first.split()[1]))
        return started[-1]

    yield start
    for child, pid in started:
        proc.kill_group(child)
        if int(pid) == child.pid:
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def stayed_in(pid):
    """The function that called `read_input`, and its line, by `gotrace stacks`."""
    (thread,) = json.loads(proc.run([GOTRACE, "stacks", "--json", pid]).ok().stdout)["threads"]
    names = [(f["function"], f.get("line")) for f in thread["stack"]]
    return names[[name for name, _ in names].index("read_input") + 1]


def test_stacks(staying, tmp_path):
    _, pid = staying("map,1,beta", "map,0,alpha", "stay,0")
    assert stayed_in(pid) == ("alpha", None)
    _, pid = staying("dump", "load,0,gamma,30", "stay,0", cwd=tmp_path)
    assert stayed_in(pid) == ("gamma", 31)


def test_stacks_of_a_container(staying):
    """The map is where the process sees it, and has the number that it has there."""
    unshare = ["unshare", "--pid", "--mount", "--fork", "sh", "-c", 'mount -t tmpfs none /tmp && exec "$0" "$@"']
    if proc.run([*unshare, "true"]).returncode != 0 or ROOT.is_relative_to("/tmp"):
        pytest.skip("no namespaces here")
    child, pid = staying("map,0,alpha", "stay,0", command=unshare)
    children = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    assert pid == "1" and not pathlib.Path("/tmp/perf-1.map").exists()
    assert stayed_in(children[0]) == ("alpha", None)


@pytest.mark.needs("node")
def test_node(traced, tmp_path):
    """By the map that --perf-basic-prof writes."""
    script = SOURCES / "made/app.js"
    result = traced(["node", "--perf-basic-prof", "--interpreted-frames-native-stack", script], timeout=60, cwd=tmp_path).ok()
    pathlib.Path(f"/tmp/perf-{result.stdout.strip()}.map").unlink()
    chains = set()
    for event in gotools.parse(result.trace):
        names = [re.sub(r"^(JS|LazyCompile|Function):[~*^]?", "", f.func) for f in event.stack]
        chains.add(tuple(name.split(" ")[0] for name in names if str(script) in name))
    assert ("work", "outer", "") in chains, chains


def python_with_perf():
    """A Python from 3.12 on that can tell the names of its functions."""
    has_it = "import sys; sys.exit(not hasattr(sys, 'activate_stack_trampoline'))"
    for name in ["python3.14", "python3.13", "python3.12", "/usr/bin/python3"]:
        if shutil.which(name) and proc.run([name, "-c", has_it]).returncode == 0:
            return name
    pytest.skip("no Python that takes -X perf")


def test_python(traced):
    """The whole call tree, each function once, whether it is known by the map or, with its lines, by the interpreter's memory."""
    script = SOURCES / "made/app.py"
    result = traced([python_with_perf(), "-X", "perf", script], timeout=60).ok()
    pathlib.Path(f"/tmp/perf-{result.stdout.strip()}.map").unlink()
    chains = [[f.func for f in e.stack if f.file == str(script)] for e in gotools.parse(result.trace) if e.stack]
    assert chains.count(["leaf", "middle", "Worker.run"]) >= 3 and ["<module>"] in chains, chains
    top = proc.run([GOTRACE, "top", "--kind=sleep", "--idle=none", result.trace]).ok().stdout
    assert re.search(r" sleep .*nanosleep <- leaf \(app\.py(:9)?\)$", top, re.M), top
