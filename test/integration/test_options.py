"""The environment switches, the exit line, and what happens when the trace cannot be written."""

import json
import os
import platform
import re
import select
import shutil
import socket
import subprocess

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc
from lib.reports import GOTRACE

THREADS = [PROGRAMS / "threads", "4"]


def test_exit_line(traced):
    result = traced(THREADS).ok()
    line = result.stderr.strip()
    assert "\n" not in line and line.startswith(f"gotrace: {result.trace}: "), line
    assert "events in" in line and "nothing lost" in line and line.endswith(f"; next: {GOTRACE} why {result.trace}")


WAITED = re.compile(r"nothing lost; threads waited ([\d.]+) s in all for (\w+) in (\w+) \((\S+):(\d+)\); next: ")
LOCK_WAITS = """
SELECT count(*) AS n, sum(ns) / 1e9 AS least, sum(ns + delay_ns) / 1e9 AS most
FROM waits JOIN stacks ON stacks.id = stack_id WHERE function = 'lock' AND waits.kind = 'sync'
"""
LONG_HOLDS = [PROGRAMS / "locks", "7", "20000"]  # each for 20 ms, while another thread waits


@pytest.mark.parametrize("argv, locks", [(LONG_HOLDS, "plain"), ([PROGRAMS / "locks", "105", "5000"], "locks")])
def test_exit_line_says_where_threads_waited_longest(traced, argv, locks):
    """For as long as the trace says: until they were woken, or until they had a CPU."""
    result = traced(argv, env={"GOTRACE_QUIET": "0"}).ok()
    seconds, *where = WAITED.search(result.stderr).groups()
    assert where[:3] == [locks, "lock", "locks.c"], result.stderr
    assert "pthread_mutex_lock" in (ROOT / "test/prog/locks.c").read_text().splitlines()[int(where[3]) - 1]
    (waits,) = json.loads(proc.run([GOTRACE, "sql", "--json", result.trace, LOCK_WAITS]).ok().stdout)
    assert waits["n"] and waits["least"] - 0.002 < float(seconds) < waits["most"] + 0.002, (seconds, waits)


SAYS_ALL = {"GOTRACE_QUIET": "0"}


def test_exit_line_shortens_names(traced):
    """What tells them from others is left: not the arguments of templates."""
    line = traced([SINGLE / "options/templates"], env=SAYS_ALL).ok().stderr
    (lock, function) = re.search(r"; threads waited [\d.]+ s in all for (\S+) in (\S+) \(templates\.cc:\d+\); next: ", line).groups()
    assert lock == f"…{'journal_of_everything_that_was_ever_committed_to_this_very_pool'[-60:]}" and function == "Pool<…>::commit<…>(…)", line


UNSAID = {
    "unread": (LONG_HOLDS, {}),
    "without names": (LONG_HOLDS, {**SAYS_ALL, "GOTRACE_NAMES": "later"}),
    "flight recorder": (LONG_HOLDS, {**SAYS_ALL, "GOTRACE_RING": "10M"}),
    "more locks than are summed up": ([SINGLE / "options/many_locks"], SAYS_ALL),
    "idle": (["/usr/bin/python3", SOURCES / "options/idle_pool.py"], SAYS_ALL),
}


@pytest.mark.parametrize("argv, env", UNSAID.values(), ids=UNSAID)
def test_exit_line_says_no_place(traced, argv, env):
    """Where nobody reads it, or where the longest waits are not known, or may be those of threads without work."""
    assert "nothing lost; next: " in traced(argv, env=env).ok().stderr


@pytest.mark.parametrize("wait", ["ended", "unended"])
def test_exit_line_of_a_later_recording(traced, wait):
    """A wait counts from where the recording begins, and until it ends."""
    result = traced([SINGLE / "options/late", wait], env={**SAYS_ALL, "GOTRACE_START": "manual"}).ok()
    seconds = float(WAITED.search(result.stderr)[1])
    assert seconds <= float(result.stdout), result


def test_exit_line_on_a_terminal(tmp_path):
    """It says where threads waited, if they waited for a lock."""
    env = proc.traced_env(tmp_path / "t.out")
    assert WAITED.search(proc.on_terminal(LONG_HOLDS, columns=200, env=env).ok().stdout)
    assert "nothing lost; next: " in proc.on_terminal([PROGRAMS / "sleeps"], columns=200, env=env).ok().stdout


@pytest.mark.parametrize(
    "commands, path, names, next",
    [
        ([], "", "now", ""),
        (["usr/go"], "usr", "now", "; next: go tool trace {}"),
        (["usr/go"], "usr", "later", ""),
        (["usr/go", "lib/gotrace"], "usr", "now", "; next: {here}/lib/gotrace why {}"),
        (["bin/gotrace"], "usr", "now", "; next: {here}/lib/../bin/gotrace why {}"),
        (["bin/gotrace"], "usr:bin", "now", "; next: gotrace why {}"),
        (["lib/gotrace", "bin/gotrace"], "bin", "now", "; next: {here}/lib/gotrace why {}"),  # another program of that name
    ],
)
def test_exit_line_names_only_a_command_that_is_there(traced, tmp_path, commands, path, names, next):
    for command in ["lib/libgotrace.so", *commands]:
        (tmp_path / command).parent.mkdir(exist_ok=True)
        shutil.copy(LIBRARY if command.endswith(".so") else "/bin/true", tmp_path / command)
    path = ":".join(str(tmp_path / folder) for folder in path.split(":"))
    env = {"LD_PRELOAD": tmp_path / "lib/libgotrace.so", "PATH": path, "GOTRACE_NAMES": names}
    result = traced(THREADS, env=env).ok()
    assert result.stderr.endswith(f" s, nothing lost{next.format(result.trace, here=tmp_path)}\n"), result


@pytest.mark.parametrize("name", ["a b", "it's", "$(id)", "back\\slash", "-dash", "~", "é ü", "line\nbreak", "e\x1b[31msc", "\u202eturned"], ids=ascii)
def test_next_commands_can_be_typed(tmp_path, name):
    """As they stand: a shell takes the trace's path out of them as it is."""
    trace = tmp_path / name
    line = proc.run(THREADS, env=proc.traced_env(trace)).ok().stderr.strip()
    page = proc.run(["bash", "-c", line.split("; next: ")[1]]).ok().stdout
    for command in re.search(" (gotrace view .*)  +all of it", page)[1], re.search(" (gotrace top .*)  +who ended", page)[1]:
        typed = proc.run(["bash", "-c", f"printf '%s\\n' {command}"]).ok().stdout
        assert typed.endswith(f"\n{trace}\n"), command


def test_next_command_of_a_family(tmp_path):
    """It names this gotrace, which PATH does not lead to."""
    result = proc.run([GOTRACE, "-f", "-o", "a b", "--", *THREADS], cwd=tmp_path).ok()
    assert result.stderr.endswith(f" 1 process; next: {GOTRACE} why 'a b'\n"), result


def test_no_command_is_cut_off(tmp_path):
    trace = tmp_path.joinpath(*["d" * 200] * 3) / "t.out"
    trace.parent.mkdir(parents=True)
    line = proc.run(THREADS, env=proc.traced_env(trace)).ok().stderr
    assert line.startswith(f"gotrace: {trace}: ") and line.endswith(" s, nothing lost\n"), line


@pytest.mark.parametrize(
    "line",
    ["sort -o /dev/null FILE", "sort --parallel=4 FILE", "tar -cf OUT FILE", "grep -c the FILE", "find FILE", "cp FILE OUT", "ls FILE",
     "xz -kc FILE", "xz -T2 --block-size=10000 -kc FILE", "m4 FILE"],
)  # fmt: skip
def test_exit_line_of_programs_that_close_stderr(traced, tmp_path, line):
    """xz before it calls exit, those of the GNU project in a function that exit calls."""
    (tmp_path / "in").write_text("the text\n" * 20_000)
    argv = line.replace("FILE", str(tmp_path / "in")).replace("OUT", str(tmp_path / "out")).split()
    if not shutil.which(argv[0]):
        pytest.skip(f"no {argv[0]} here")
    bare = proc.run(argv)
    result = traced(argv)
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout)
    last = result.stderr.removeprefix(bare.stderr)
    assert last.startswith(f"gotrace: {result.trace}: ") and last.count("\n") == 1 and "nothing lost" in last, result


@pytest.fixture(scope="session")
def closes():
    return SINGLE / "options/closes"


@pytest.mark.parametrize("how", ["alone", "with threads", "forks", "forks with threads"])
def test_who_waits_for_the_end_of_stderr_does_not_wait_for_us(tmp_path, closes, how):
    pipe = subprocess.PIPE
    child = proc.spawn([closes, how], env=proc.traced_env(tmp_path / "t.out"), stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdout.readline() == b"closed\n"
    assert select.select([child.stderr], [], [], 10)[0] and child.stderr.read() == b""
    child.stdin.close()
    assert child.wait(10) == 0
    proc.kill_group(child)


@pytest.mark.parametrize("how", ["end", "end with threads", "end with few descriptors"])
def test_a_program_that_closes_stderr_has_the_same_descriptors(traced, closes, how):
    bare = proc.run([closes, how]).ok()
    result = traced([closes, how]).ok()
    assert result.stdout == bare.stdout and result.stderr.startswith(f"gotrace: {result.trace}: ")


def test_quiet(traced):
    assert traced(THREADS, env={"GOTRACE_QUIET": "1"}).ok().stderr == ""


def test_off(traced):
    result = traced(THREADS, env={"GOTRACE": "off"}).ok()
    assert result.stderr == "" and not result.trace.exists()


@pytest.mark.parametrize(
    "name, value", [("GOTRACE_FORMAT", "go1.99"), ("GOTRACE", "maybe"), ("GOTRACE_HEAP", "maybe"), ("GOTRACE_QUIET", "loud"), ("GOTRACE_OUTPUT", "")]
)
def test_bad_value_gets_one_line_and_the_default(traced, tmp_path, name, value):
    result = traced(THREADS, env={name: value}, cwd=tmp_path).ok()
    complaint, exit_line = result.stderr.strip().split("\n")
    assert complaint.startswith(f"gotrace: {name}={value} is not "), complaint
    gotools.check(tmp_path / "trace.out" if name == "GOTRACE_OUTPUT" else result.trace)


MISSPELT = [
    ("GOTRACE_SYCALLS", "GOTRACE_SYSCALLS"),
    ("GOTRACE_SYSCALL", "GOTRACE_SYSCALLS"),
    ("GOTRACE_OUPTUT", "GOTRACE_OUTPUT"),
    ("GOTRACE_ROATTE", "GOTRACE_ROTATE"),
    ("GOTRACE_CPUHZ", "GOTRACE_CPU_HZ"),
    ("GOTRACE_NOTHING_LIKE_IT", None),
]


@pytest.mark.parametrize("name, meant", MISSPELT)
def test_misspelt_variable_gets_one_line(traced, name, meant):
    """From the process that the user has started, and not from its children."""
    threads = PROGRAMS / "threads"
    result = traced(["sh", "-c", f"{threads} 2; {threads} 2"], env={name: "all"}).ok()
    line = f"gotrace: {name}: not known" + (f"; did you mean {meant}?" if meant else "")
    assert [said for said in result.stderr.splitlines() if "not known" in said] == [line]
    assert "not known" not in traced([threads, "2"], env={name: "all", "GOTRACE_QUIET": "1"}).ok().stderr


def test_a_family_is_told_once_of_what_is_misspelt(tmp_path):
    """By the command: its processes say nothing."""
    argv = [ROOT / "build/gotrace", "-f", "-o", tmp_path / "t.out", "--", "sh", "-c", "/bin/true; /bin/true"]
    env = os.environ | {"GOTRACE_SYCALLS": "all", "GOTRACE_SCHED": "maybe"}
    lines = [
        "gotrace: GOTRACE_SCHED=maybe is not on or off; using off",
        "gotrace: GOTRACE_SYCALLS: not known; did you mean GOTRACE_SYSCALLS?",
    ]
    assert proc.run(argv, env=env).ok().stderr.splitlines()[:2] == lines
    assert proc.run(argv, env=env | {"GOTRACE_QUIET": "1"}).ok().stderr == ""


def test_known_variables_are_no_mistake(traced):
    switches = re.findall(r'{"(GOTRACE\w*)"', (ROOT / "preload/shared/options.c").read_text())
    known = [*switches, "GOTRACE_LIBRARY", "GOTRACE_TEST_BUILD", "GOTRACEBACK"]
    result = traced([PROGRAMS / "threads", "2"], env={name: "" for name in known if name != "GOTRACE_OUTPUT"})
    assert "not known" not in result.ok().stderr


def test_default_output(tmp_path):
    env = proc.traced_env("unused")
    del env["GOTRACE_OUTPUT"]
    proc.run(THREADS, env=env, cwd=tmp_path).ok()
    gotools.check(tmp_path / "trace.out")


def test_output_pattern(tmp_path):
    result = proc.run(THREADS, env=proc.traced_env("%e-%h-%p-%t-100%%.trace"), cwd=tmp_path).ok()
    (name,) = os.listdir(tmp_path)
    program, host, pid, seconds = name.removesuffix("-100%.trace").replace(socket.gethostname(), "HOST").split("-")
    assert (program, host) == ("threads", "HOST") and int(pid) > 1 and int(seconds) > 1_700_000_000
    assert f"{tmp_path}/{name}" in result.stderr


def test_no_file_is_overwritten(tmp_path):
    for expected in (["1.out"], ["1.out", "2.out"], ["1.out", "2.out", "3.out"]):
        proc.run(THREADS, env=proc.traced_env("%u.out"), cwd=tmp_path).ok()
        assert sorted(os.listdir(tmp_path)) == expected
    (tmp_path / "2.out").unlink()
    proc.run(THREADS, env=proc.traced_env("%u.out"), cwd=tmp_path).ok()
    for name in expected:
        gotools.check(tmp_path / name)


def names_of(directory):
    """The traces of a directory by their names without the number of the process, all of them read."""
    for path in directory.iterdir():
        gotools.check(path)
    return sorted(re.sub(r"\.\d+$", "", path.name) for path in directory.iterdir())


def test_output_is_named_by_the_program_not_its_title(tmp_path):
    program = proc.compile(SOURCES / "options/titled.c", tmp_path / "titled-program")
    (tmp_path / "traces").mkdir()
    proc.run([program], env=proc.traced_env(tmp_path / "traces/%e")).ok()
    assert names_of(tmp_path / "traces") == ["titled-program", "titled-program"]


def test_output_is_named_by_the_program_after_exec(tmp_path):
    program = proc.compile(SOURCES / "options/titled.c", tmp_path / "titled-program")
    (tmp_path / "traces").mkdir()
    proc.run([program, THREADS[0]], env=proc.traced_env(tmp_path / "traces/%e.%p")).ok()
    assert names_of(tmp_path / "traces") == ["n_e_w", "titled-program"]


@pytest.mark.parametrize(
    "name, shown",
    [
        ("/bin/g++-12", "g++-12"),
        ("..", "_."),
        (".hidden", "_hidden"),
        ("-login shell", "_login_shell"),
        ("b\nc\x1b[d]é%p*", "b_c__d____p_"),
        ("", "_"),
    ],
)
def test_output_of_odd_names(tmp_path, name, shown):
    argv = ["bash", "-c", 'exec -a "$0" "$@"', name, *THREADS]
    proc.run(argv, env=proc.traced_env(tmp_path / "%e")).ok()
    assert names_of(tmp_path) == [shown]


@pytest.mark.parametrize("pattern", ["%e", "%e%e-%h", "100 characters more" * 5 + "%e"])
@pytest.mark.parametrize("script", ['exec -a "$0" "$@"', '(exec -a "$0" "$@"); true'], ids=["first", "descendant"])
def test_output_of_a_long_name(tmp_path, pattern, script):
    env = proc.traced_env(tmp_path / pattern, {"GOTRACE_QUIET": "0"})
    result = proc.run(["bash", "-c", script, "n" * 255, *THREADS], env=env).ok()
    (name,) = (name for name in names_of(tmp_path) if "bash" not in name)
    assert "nnnnnnnn" in name and name.startswith(pattern.split("%")[0]) and f"{tmp_path}/{name}" in result.stderr


def test_output_of_an_odd_host(tmp_path):
    script = "import os, socket, sys; socket.sethostname('a/b c'); os.execvp(sys.argv[1], sys.argv[1:])"
    env = [f"{name}={value}" for name, value in proc.traced_env(tmp_path / "%h").items()]
    result = proc.run(["unshare", "-r", "-u", "python3", "-c", script, "env", *env, *THREADS])
    if "unshare" in result.stderr or "sethostname" in result.stderr:
        pytest.skip("no name of one's own here")
    result.ok()
    assert names_of(tmp_path) == ["a_b_c"]


def test_descendants_write_beside(tmp_path):
    proc.run(["sh", "-c", f"{THREADS[0]} 4; {THREADS[0]} 5"], env=proc.traced_env(tmp_path / "t.out")).ok()
    names = sorted(os.listdir(tmp_path))
    assert names[0] == "t.out" and len(names) == 3, names
    for name in names[1:]:
        assert name.removeprefix("t.out.").isdigit()
        gotools.check(tmp_path / name)


def test_wrapper_hands_the_name_on(traced):
    result = traced(["env", "A=b", "nice", *THREADS]).ok()
    assert len([e for e in gotools.parse(result.trace) if e.is_go("NotExist", "Runnable")]) == 4


@pytest.mark.parametrize("path", ["/nonexistent/t.out", "/dev/full", "/proc/t.out"])
def test_cannot_write(path):
    bare = proc.run(THREADS)
    result = proc.run(THREADS, env=proc.traced_env(path)).ok()
    assert result.stdout == bare.stdout
    (line,) = result.stderr.strip().split("\n")
    assert line.startswith(f"gotrace: cannot write {path}: "), line


def test_exported_symbols_are_the_hooks():
    """Whatever else became visible would take part in the program's symbol resolution."""
    tables = "".join(table.read_text() for table in (ROOT / "preload").rglob("*.def"))
    hooks = set(re.findall(r"^GT_(?:HOOK|NEW|DELETE)\((\w+)", tables, re.M)) | {"prctl", "execl", "execlp", "execle"}
    hooks |= set(re.findall(r"^(?:GT_CALL|GT_READS|GT_WRITES|STDIO)\(.*?,\s*[\w *]+,\s*(\w+),\s*\(", tables, re.M))
    hooks |= set(re.findall(r"^GT_NEW_FD\(\w+,\s*(\w+),", tables, re.M))
    hooks |= set(re.findall(r"^STDIO_VOID\((\w+)", tables, re.M))
    hooks |= set(re.findall(r"^GT_RESOLVER\([\w *]+,\s*(\w+),", tables, re.M))
    hooks |= set(re.findall(r"^GT_ROW\(\w+,\s*[\w *]+,\s*(\w+),", tables, re.M))
    hooks |= set(re.findall(r"(gotrace_\w+)\(.*GOTRACE_WEAK;", (ROOT / "preload/gotrace.h").read_text()))
    hooks |= set(re.findall(r"^GT_OMP\(\w+,\s*[\w *]+,\s*(\w+),", tables, re.M)) | {"ompt_start_tool"}
    hooks |= set(re.findall(r"^GT_(?:URING|AIO)\(\w+,\s*(\w+),", tables, re.M))
    hooks |= {"gotrace_attached", "gotrace_bind"}  # preload/commands/attach.c
    nm = [line.split()[1:] for line in proc.run(["nm", "-D", "--defined-only", LIBRARY]).ok().stdout.splitlines()]
    names = [name.split("@") for kind, name in nm if kind != "A"]  # A: the versions themselves
    assert {name[0] for name in names} == hooks
    conditions = {f"pthread_cond_{what}" for what in ("wait", "timedwait", "signal", "broadcast")}
    versions = {"io_getevents", *(name for name in hooks if name.startswith("omp_"))}
    assert {name[0] for name in names if len(name) > 1} == versions | (conditions if platform.machine() == "x86_64" else set())
