"""Runs `go tool trace` of the Go versions on this machine and gives back what it read in a trace."""

import ast
import collections
import contextlib
import dataclasses
import functools
import html
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.request

from . import BUILD, ROOT, pprof as profile, proc

# The formats that GOTRACE_FORMAT chooses from, and the Go versions (1.N) whose tools read them: from, to.
FORMATS = {
    **dict.fromkeys(["go1.5", "go1.7", "go1.8", "go1.9", "go1.10"], (19, 22)),
    **dict.fromkeys(["go1.11", "go1.19"], (19, None)),
    **{f"go1.{minor}": (minor, None) for minor in (21, 22, 23, 25, 26)},
}
EVERY_FORMAT = os.environ.get("FORMATS") == "all"
VERSIONS = (19, 21, 22, 23, 25, 26, 27)  # between them they read every format; scripts/get-go gets them


def some(*own, of=FORMATS):
    """The formats `of` these that a test is repeated in: a v1 and a v2 format, and those with something of their `own` in
    what the test looks at. FORMATS=all: every one."""
    return [format for format in of if EVERY_FORMAT or format in ("go1.21", "go1.23", *own)]


@functools.cache
def find(version=None):
    """The `go` of that version ("1.23"), or of the newest, with the little of it that scripts/get-go keeps."""
    os.environ["GOTOOLCHAIN"] = "local"  # never let one Go fetch another
    result = proc.run([ROOT / "scripts/get-go", "--where", version or f"1.{VERSIONS[-1]}"])
    assert result.returncode == 0, f"Go {version or 'is'} not here: {result.stderr}; ./scripts/deps test installs it"
    return result.stdout.strip()


@functools.cache
def compiler():
    """A whole Go, of whichever version this machine has."""
    result = proc.run([ROOT / "scripts/find-go"])
    assert result.returncode == 0, "no Go here; ./scripts/deps view installs it"
    return result.stdout.strip()


def build(directory, output, go=None):
    """The program in that directory, built with the machine's Go, whose packages are compiled once."""
    env = {"GOCACHE": BUILD / "go-cache", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    proc.run([go or compiler(), "build", "-o", output, "."], cwd=directory, env=env, timeout=140).ok()
    return output


def readers():
    """Both ends of the range of Go versions that must read our traces: 1.23 and the newest."""
    return [find("1.23"), find()]


@functools.cache
def versions():
    """Minor version → path of each Go."""
    return {minor: find(f"1.{minor}") for minor in VERSIONS}


@functools.cache
def minor_of(go):
    return int(re.search(r"go1\.(\d+)", proc.run([go, "version"]).ok().stdout)[1])


def program(go, name):
    """A program built with that Go: readall, or one of test/apps/itself."""
    return pathlib.Path(go).parent / name


def readers_of(format, every=EVERY_FORMAT):
    """Minor version → path of Go: the oldest and the newest that read this format, or all that do."""
    first, last = FORMATS[format]
    readers = {minor: go for minor, go in versions().items() if first <= minor <= (last or minor)}
    return readers if every else {minor: readers[minor] for minor in (min(readers), max(readers))}


def read_all(go):
    """A program that reads the traces it is given with that Go's own reader, and prints what it refuses and why.

    Faster than `go tool trace` for many small files.
    """
    return program(go, "readall")


def tool(go):
    """The command `go tool trace`."""
    return [go, "tool", "trace"]


def program_of(trace):
    """What stands before the trace on the tool's command line: Go 1.5's traces need a program for their symbols."""
    with open(trace, "rb") as file:
        return [f"{trace}.elf"] if file.read(16).startswith(b"go 1.5 ") else []


@functools.cache
def _parse_flag(go):
    usage = proc.run([*tool(go), "-h"]).stderr
    return "-d=parsed" if "-d=mode" in usage else "-d=1"


@dataclasses.dataclass(frozen=True)
class Frame:
    func: str
    file: str
    line: int
    pc: int


@dataclasses.dataclass
class Event:
    """One event as the Go tool sees it. Ids are -1 where there is none; `time` is in nanoseconds."""

    kind: str  # StateTransition, Metric, Label, Sync, Log, …
    time: int
    m: int
    p: int
    g: int
    fields: dict  # all Name=Value pairs that follow; quoted values without their quotes
    goid: int = None  # a StateTransition of a goroutine: which; `old`, `new`: its states
    procid: int = None  # the same of a P
    old: str = None
    new: str = None
    stack: list = dataclasses.field(default_factory=list)  # Frames of the M that did it, leaf first
    transition_stack: list = dataclasses.field(default_factory=list)  # Frames of the goroutine it was done to

    @property
    def reason(self):
        return self.fields.get("Reason", "")

    def is_go(self, old, new):
        """Is this a transition of a goroutine from state `old` to `new`?"""
        return self.goid is not None and (self.old, self.new) == (old, new)


_HEAD = re.compile(r"M=(-?\d+) P=(-?\d+) G=(-?\d+) (\w+) Time=(-?\d+)")
_TRANSITION = re.compile(r" (Go|Proc)ID=(\d+) (\w+)->(\w+)")
_FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')
_FRAME = re.compile(r"\t(.*) @ 0x([0-9a-f]+)\n\t\t(.*):(\d+)\n")
_PROGRESS = re.compile(r"^.* (Parsing|Splitting) trace\.\.\.\n", re.M)  # up to Go 1.22


def _value(text):
    """Of a field. Most that are quoted have nothing escaped, and literal_eval takes longer than all the rest."""
    if text[0] != '"':
        return text
    return ast.literal_eval(text) if "\\" in text else text[1:-1]


def _event(line, head):
    m, p, g, kind, time = head.groups()
    rest = line[head.end() :]
    event = Event(kind, int(time), int(m), int(p), int(g), {name: _value(text) for name, text in _FIELD.findall(rest)})
    if transition := _TRANSITION.search(rest):
        resource, ident, event.old, event.new = transition.groups()
        setattr(event, "goid" if resource == "Go" else "procid", int(ident))
    return event


def _frame(lines):
    if not (found := _FRAME.fullmatch(lines)):
        raise ValueError(f"not understood: {lines!r}")
    return Frame(found[1], found[3], int(found[4]), int(found[2], 16))


def read_events(lines):
    """Yields the Events in the text that `go tool trace -d=parsed` prints."""
    event = stack = function = None
    frames = {}  # the two lines of each → Frame: stacks are alike
    for line in lines:
        if line.startswith("\t\t"):
            place = function + line
            if not (frame := frames.get(place)):
                frame = frames[place] = _frame(place)
            stack.append(frame)
        elif line[0] == "\t":
            function = line
        elif head := _HEAD.match(line):
            if event:
                yield event
            event = _event(line, head)
        elif line == "Stack=\n":
            stack = event.stack
        elif line == "TransitionStack=\n":
            stack = event.transition_stack
        elif line != "\n":
            raise ValueError(f"not understood: {line!r}")
    if event:
        yield event


@contextlib.contextmanager
def viewer(trace, *, go=None):
    """`go tool trace` as it serves its pages; gives the URL."""
    argv = [*tool(go or find()), "-http=127.0.0.1:0", *program_of(trace), str(trace)]
    child = proc.spawn(argv, env={"BROWSER": "true"}, stderr=subprocess.PIPE, text=True)
    try:
        # the first URL in what it says
        yield next(url[0] for line in child.stderr if (url := re.search(r"http://127\.0\.0\.1:\d+", line)))
    finally:
        proc.kill_group(child)


def check(trace, *, go=None, timeout=120):
    """Reads the whole trace with the reader of that Go's tool; fails the test at any complaint. Cheap on large traces:
    to print their events as well, which `parse` has the tool do, takes twenty times as long."""
    go = go or find()
    if program_of(trace):
        _dump(trace, go, timeout, subprocess.DEVNULL)
        return
    result = proc.run([read_all(go), trace], timeout=timeout).ok()
    assert not result.stdout, f"{go} finds the trace broken: {result}"


def check_all(trace, **options):
    """`check` with the oldest and the newest Go that must read it."""
    for go in readers():
        check(trace, go=go, **options)


def parse(trace, *, go=None, timeout=120, stacks=True):
    """All Events of a trace, with or without their stacks; fails the test if the tool finds anything wrong with it."""
    with tempfile.TemporaryFile("w+", errors="replace") as text:
        _dump(trace, go or find(), timeout, text)
        text.seek(0)
        return list(read_events(text if stacks else (line for line in text if line.startswith("M="))))


def count(trace, name, *, timeout=120):
    """How many events of that name there are in a v2 trace, as they stand in the file: quick, for many of them."""
    text = proc.run([find(), "tool", "trace", "-d=wire", trace], timeout=timeout).ok().stdout
    return text.count(f"\n{name} ")


def _dump(trace, go, timeout, stdout):
    argv = [*tool(go), _parse_flag(go), *program_of(trace), str(trace)]
    child = proc.spawn(argv, stdout=stdout, stderr=subprocess.PIPE, text=True)
    try:
        stderr = _PROGRESS.sub("", child.communicate(timeout=timeout)[1])
    except subprocess.TimeoutExpired:
        raise proc.Hang(f"killed after {timeout} s: {proc.repeat(argv, {})}") from None
    finally:
        proc.kill_group(child)
    assert child.returncode == 0 and not stderr, (
        f"the trace is broken; repeat: {proc.repeat(argv, {})}\nreturncode {child.returncode}\n{stderr}"
    )


def states(trace):
    """Thread → state of its goroutine → nanoseconds, from the events alone, by Go's own reader."""
    events, now, times, of = parse(trace, stacks=False), {}, collections.defaultdict(collections.Counter), {}
    for e in events:
        if e.goid is None:
            continue
        if e.new == "Running" and e.m:
            of[e.goid] = e.m
        state, since = now.get(e.goid, (e.new, e.time))
        times[e.goid][state] += e.time - since
        now[e.goid] = e.new, e.time
    for goid, (state, since) in now.items():
        times[goid][state] += events[-1].time - since
    return {of[goid]: dict(t) for goid, t in times.items() if goid in of}


def pprof(trace, kind="sync", *, go=None, timeout=120):
    """The blocking profile `kind` (sync, net, syscall, sched) of a trace, as a pprof.Profile."""
    argv = [*tool(go or find()), f"-pprof={kind}", *program_of(trace), str(trace)]
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    assert result.returncode == 0, f"repeat: {proc.repeat(argv, {})}\n{result.stderr.decode(errors='replace')}"
    return profile.decode(result.stdout)


def serve(trace, *, go=None):
    """Starts the tool's web server for a trace; returns it, for `proc.kill_group`, and its URL."""
    argv = [*tool(go or find()), "-http=127.0.0.1:0", *program_of(trace), str(trace)]
    child = proc.spawn(argv, env={"BROWSER": "true"}, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if url := re.search(r"http://127\.0\.0\.1:\d+", line):
            return child, url[0]
    raise AssertionError(f"it did not start to listen: {proc.repeat(argv, {})}")


_DRAWN = re.compile(r"/(io|block|syscall|sched)(?!.*raw=1)")  # by Graphviz, from what the link beside it gives raw


def _links(page):
    """Where a page leads; instead of a timeline to the data that its scripts ask for."""
    for link in map(html.unescape, re.findall(r'href="(/[^"]*)"', page)):
        if not link.startswith("/static/") and not _DRAWN.match(link):
            yield re.sub(r"^/trace\b", "/jsontrace", link)


def pages(trace, *, go=None):
    """URL → contents of the pages of the tool's web server, two of each kind; fails if one cannot be shown."""
    child, url = serve(trace, go=go)
    shown, ahead, kinds = {}, ["/"], collections.Counter()
    try:
        while ahead:
            page = ahead.pop(0)
            kind = page.split("?")[0]
            if page in shown or kinds[kind] == 2:
                continue
            with urllib.request.urlopen(f"{url}{page}", timeout=60) as answer:  # a panic closes the connection
                shown[page] = answer.read().decode(errors="replace")
            kinds[kind] += 1
            ahead += _links(shown[page])
    finally:
        proc.kill_group(child)
    return shown
