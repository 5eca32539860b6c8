"""GOTRACE_NAMES=later: a trace has addresses, and whoever reads it by `gotrace` looks up the names."""

import re

import pytest

from lib import PROGRAMS, ROOT, SOURCES, gotools, proc
from test_symbolize_later import made_library

GOTRACE = ROOT / "scripts/gotrace"
LATER = {"GOTRACE_NAMES": "later"}
MAIN = SOURCES / "names_later/waits.c"
LINE = {word: next(i for i, line in enumerate(MAIN.read_text().splitlines(), 1) if f"// {word}" in line) for word in ("WANT", "SIGNAL", "OUTER")}
NAMED = [("inner", 13), ("hidden", 18), ("outer", 24), ("main", LINE["OUTER"])]
ADDRESSES = [r"libx\.so\+0x", r"prog\+0x"]  # `inner` is no frame of its own there


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The program; `libx.so` lies beside it."""
    directory = tmp_path_factory.mktemp("later")
    library = made_library(directory / "libx.so")
    return proc.compile(MAIN, directory / "prog", "-Wl,--build-id", "-pthread", library, f"-Wl,-rpath,{directory}")


def tool(*argv):
    return proc.run([GOTRACE, *argv]).ok()


def sleeps(trace, leaf="nanosleep"):
    """The functions and lines above that call, of each wait in it that has a line or an address of `prog` in it."""
    events = gotools.parse(trace)
    stacks = [e.stack for e in events if e.is_go("Running", "Waiting") and e.stack and e.stack[0].func == leaf]
    return [[(f.func, f.line) for f in stack[1:]] for stack in stacks]


def check_reports(trace):
    """What the program is known to have done, with names: of frames, locks, holders, places of signals."""
    holders = tool("top", "--holders", trace).stdout
    assert f"pthread_mutex_lock <- want_it (waits.c:{LINE['WANT']}), vault\n" in holders, holders
    assert re.search(r"\(worker\), by take: ", holders), holders
    signals = tool("top", "--wakeups", trace).stdout
    assert re.search(r" ready$", signals, re.M), signals
    assert f"pthread_cond_signal finish (waits.c:{LINE['SIGNAL']})" in signals, signals
    last = tool("top", trace).stdout
    assert re.search(r"stuck\+40\b", last), last
    for text in holders, signals, last:
        assert "gotrace-" not in text and "prog+0x" not in text and "libx.so+0x" not in text, text


@pytest.mark.parametrize("format", gotools.some("go1.7", of=[f for f in gotools.FORMATS if f != "go1.5"]))
def test_as_if_it_had_been_at_once(traced, tmp_path, built, format):
    env = {"GOTRACE_FORMAT": format, "GOTRACE_HOLD_MIN": "1us"}
    now = traced([built], trace=tmp_path / "now", env=env).ok().trace
    result = traced([built], env={**env, **LATER}).ok()
    later, named = result.trace, tmp_path / "named"
    assert b"waits.c" in now.read_bytes() and b"waits.c" not in later.read_bytes(), "names were looked up"
    assert f"next: {ROOT}/build/gotrace why {later}" in result.stderr
    before = later.read_bytes()
    for trace in (now, later) if gotools.FORMATS[format] != (19, 22) else ():  # those have no logs
        check_reports(trace)
    for trace in now, later:
        text = tool("top", "--kind=sleep", trace).stdout
        assert "nanosleep <- inner (inlined.c:13)" in text, text
    assert later.read_bytes() == before, "reading changes nothing"
    assert tool("symbolize", "-o", named, later).stderr.endswith("addresses named\n")
    for words in b"gotrace-later", b"gotrace-function", b"gotrace-variable", b"gotrace-place":
        assert words not in named.read_bytes()
    if gotools.FORMATS[format][1] is None:
        ((first, *_), (same, *_)) = sleeps(now), sleeps(named)
        assert first == same and first[: len(NAMED)] == NAMED
        (raw, *_) = sleeps(later)
        assert [bool(re.match(e, f)) and not line for e, (f, line) in zip(ADDRESSES, raw[:1] + raw[2:])] == [True, True], raw
    for go in gotools.readers_of(format).values():
        gotools.check(later, go=go)
        gotools.check(named, go=go)


def test_every_command_has_the_names(traced, tmp_path, built):
    trace = traced([built], env=LATER).ok().trace
    place = f"want_it (waits.c:{LINE['WANT']})"
    result = proc.run([GOTRACE, "top", trace], env={"TMPDIR": tmp_path / "none"}).ok()
    assert "no names: " in result.stderr and "prog+0x" in result.stdout, "there is no place for a copy"
    assert place in tool("top", trace).stdout
    assert "worker" in tool("info", trace).stdout and f"{trace.stat().st_size} bytes" in tool("info", trace).stdout
    assert "want_it" in tool("sql", "--csv", trace, "SELECT DISTINCT function FROM frames").stdout
    assert "want_it" in tool("top", "--thread=worker|main", trace).stdout
    tool("export", "--to=folded", "-o", tmp_path / "folded", trace)
    assert "want_it" in (tmp_path / "folded").read_text()
    tool("cut", "--from=0", "-o", tmp_path / "part", trace)
    assert b"waits.c" in (tmp_path / "part").read_bytes()
    tool("convert", "--format=go1.5", "-o", tmp_path / "old", trace)
    assert place in tool("top", tmp_path / "old").stdout
    tool("merge", "-o", tmp_path / "both", trace, tmp_path / "part")
    assert b"waits.c" in (tmp_path / "both").read_bytes()


def keeps_what_it_shows(go, shown):
    """A `go` whose `go tool trace` only copies the trace."""
    go.write_text(f'#!/bin/sh\n[ "$1" = version ] && exec echo go version go1.26.0\nshift 3; cat "$1" >{shown}\n')
    go.chmod(0o755)
    return go


def test_the_viewer_gets_them(traced, tmp_path, built):
    trace = traced([built], env=LATER).ok().trace
    tool("view", f"--go={keeps_what_it_shows(tmp_path / 'go', tmp_path / 'shown')}", "--no-browser", trace)
    assert b"waits.c" in (tmp_path / "shown").read_bytes()
    assert sleeps(tmp_path / "shown")[0][: len(NAMED)] == NAMED


@pytest.mark.parametrize("how", ["symbolize", "view"])
@pytest.mark.parametrize("format", gotools.some("go1.11", of=[f for f in gotools.FORMATS if gotools.FORMATS[f][1] is None]))
def test_no_more_frames_than_viewers_take(traced, tmp_path, format, how):
    """Profile pages before Go 1.27 take 128; inlined functions make more of the addresses. The outermost are left out."""
    program = proc.compile(SOURCES / "names_later/deep.c", tmp_path / "deep")
    trace = traced([program], env={**LATER, "GOTRACE_FORMAT": format}).ok().trace
    named = tmp_path / "named"
    if how == "symbolize":
        tool("symbolize", "-o", named, trace)
    else:
        tool("view", f"--go={keeps_what_it_shows(tmp_path / 'go', named)}", "--no-browser", trace)
    level = ["fourth", "third", "second", "first", "wait_below"]
    (stack,) = sleeps(named, "sem_timedwait")
    assert [function for function, _ in stack] == (level * 30)[: 128 - 1]
    for go in map(gotools.find, ("1.25", "1.26", "1.27")):
        if gotools.minor_of(go) >= int(format[4:]):
            assert any("wait_below" in str(sample) for sample in gotools.pprof(named, go=go).samples)
    assert "takes all of it" in tool("info", "--check", named).stdout


def test_another_build_by_now(traced, tmp_path):
    """Its code stays addresses, which is said; unchanged code has its names."""
    library = made_library(tmp_path / "libx.so")
    source = "void outer(void);\nint main(void) { outer(); return 0; } // line 2\n"
    program = proc.compile(source, tmp_path / "prog", "-Wl,--build-id", library, f"-Wl,-rpath,{tmp_path}")
    trace = traced([program], env=LATER).ok().trace
    kept = tmp_path / "debug"
    kept.mkdir()
    library.rename(kept / "libx.so")
    made_library(tmp_path / "libx.so", "-DROUNDS=1")
    result = tool("top", "--kind=sleep", trace)
    assert f"gotrace: {library} is another build by now" in result.stderr and result.stderr.count("\n") == 1, result
    assert "nanosleep <- libx.so+0x" in result.stdout and "inner" not in result.stdout
    library.unlink()
    result = tool("top", "--kind=sleep", trace)
    assert f"gotrace: {library} cannot be read here" in result.stderr and result.stderr.count("\n") == 1, result
    # What that leaves, files from elsewhere can give.
    tool("symbolize", trace)
    assert b"gotrace-later" in trace.read_bytes()
    tool("symbolize", f"--debug-dir={kept}", trace)
    assert b"gotrace-later" not in trace.read_bytes()
    result = tool("top", "--kind=sleep", trace)
    assert "nanosleep <- inner (inlined.c:13)" in result.stdout and not result.stderr, result


@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_libraries_that_were_unloaded(traced, tmp_path, format):
    """One after the other at one address: each has its own names. One has no build ID: it has them at once."""
    libraries = []
    for name, flag in ("liba.so", "--build-id"), ("libb.so", "--build-id"), ("libc.so", "--build-id=none"):
        names = [f"-D{function}={function}_{name[3]}" for function in ("inner", "hidden")]
        libraries.append(made_library(tmp_path / name, *names, f"-Wl,{flag}"))
    trace = traced([PROGRAMS / "loader", *libraries], env={"GOTRACE_FORMAT": format, **LATER}).ok().trace
    data = trace.read_bytes()
    assert [f"inner_{x}".encode() in data for x in "abc"] == [False, False, True]
    tool("symbolize", trace)
    names = [stack[:3] for stack in sleeps(trace)]
    assert names == [[(f"inner_{x}", 13), (f"hidden_{x}", 18), ("outer", 24)] for x in "abc"]


@pytest.mark.parametrize("format", ["go1.19", "go1.23"])
def test_what_is_read_at_once(tmp_path, format):
    """The deadlock report on standard error has names; the flight recorder's file gets them when it is read."""
    trace, lines = tmp_path / "t.out", [""]
    env = proc.traced_env(trace, {**LATER, "GOTRACE_HANG": "100ms", "GOTRACE_RING": "1M", "GOTRACE_FORMAT": format})
    child = proc.spawn([PROGRAMS / "deadlocks", "ring", "mutex", "2"], env=env, stderr=proc.subprocess.PIPE, text=True)
    while "what led there" not in lines[-1]:
        lines.append(child.stderr.readline())
        assert lines[-1], lines
    proc.stop(child)
    assert any("deadlocks.c:" in line for line in lines) and not any("gotrace-" in line for line in lines), lines
    assert b"deadlocks.c" not in trace.read_bytes()
    text = tool("top", trace).stdout
    assert "DEADLOCK" in text and "deadlocks.c:" in text and "gotrace-" not in text and "deadlocks+0x" not in text, text


def test_what_cannot_be_had(traced):
    """One line each, and names at once."""
    for env, line in [
        ({"GOTRACE_NAMES": "soon"}, "gotrace: GOTRACE_NAMES=soon is not now or later; using now"),
        ({**LATER, "GOTRACE_FORMAT": "go1.5"}, "gotrace: GOTRACE_NAMES=later: a go1.5 trace has no place for what that needs; using now"),
    ]:
        result = traced([PROGRAMS / "threads", "2"], env=env).ok()
        assert [l for l in result.stderr.splitlines() if "GOTRACE_NAMES" in l] == [line]
        assert "threads.c" in tool("top", result.trace).stdout
    assert proc.run([GOTRACE, "--names=soon", "true"]).returncode == 125
