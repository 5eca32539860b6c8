"""gotrace.h: tasks, regions and logs, and what the real viewer's pages about them say."""

import collections
import html
import re
import urllib.parse
import urllib.request

import pytest

from lib import PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc

FORMATS = [f for f in gotools.FORMATS if int(f.split(".")[1]) >= 11]
formats = pytest.mark.parametrize("format", gotools.some(of=FORMATS))
HEADER = ROOT / "preload/gotrace.h"
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
KINDS = {"RegionBegin", "RegionEnd", "TaskBegin", "TaskEnd", "Log"}


def record(traced, format, program, **options):
    return traced([PROGRAMS / program], env={"GOTRACE_FORMAT": format}, **options).ok()


def page(url, path):
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return html.unescape(answer.read().decode())


def nanoseconds(text):
    return float(re.match(r"[\d.]+", text)[0]) * UNITS[re.search(r"\D+$", text)[0]]


def links(text, kind):
    """The name, path and count of each row of an overview."""
    for path, count in re.findall(rf'<a href="(/{kind}\?[^"]*)">(\d+)</a>', text):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query, keep_blank_values=True)
        yield query["type"][0], path, int(count)


def shown(url):
    """(kind, name) → the durations on the pages of that task or region."""
    found = collections.defaultdict(list)
    for name, path, count in links(page(url, "/usertasks"), "usertask"):
        times = re.findall(r'class="first">.*?class="elapsed">\s*([^<\s]+)', page(url, urllib.parse.quote(path, "/?=&%")), re.S)
        assert len(times) == count or not name, f"{path}: {times}"
        found["task", name] += map(nanoseconds, times)
    for name, path, count in links(page(url, "/userregions"), "userregion"):
        rows = page(url, urllib.parse.quote(path, "/?=&%"))
        times = re.findall(r'<td> <a href="/trace\?goid=\d+">\d+</a> </td>\s*<td>.*?</td>\s*<td>\s*([\d.]+\D+?)\s*</td>', rows)
        assert len(times) == count, f"{path}: {times}"
        found["region", name] += map(nanoseconds, times)
    return found


@pytest.mark.measured
@pytest.mark.limit(180)
@formats
def test_pages(traced, format):
    """Names, counts and durations, of a program that has measured them, in each tool that reads the format."""
    result = record(traced, format, "annotations")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    for go in gotools.readers_of(format).values():
        gotools.check(result.trace, go=go)
        with gotools.viewer(result.trace, go=go) as url:
            found = shown(url)
            assert "ready" in page(url, "/usertask?type=request"), go
        found.pop(("task", ""), None)  # stands for what belongs to no task
        assert set(found) == {(kind, name) for kind, name, *_ in rows}, go
        for kind, name, count, least, most in rows:
            times = found[kind, name]
            assert len(times) == int(count), f"{go}: {kind} {name}: {times}"
            assert 0.95 * int(least) <= sum(times) <= 1.05 * int(most), f"{go}: {kind} {name}: {times}, {least} to {most}"


def annotations(trace, go=None):
    """But for what our own logs say of locks."""
    ours = "held by", "waits for", "waits again for"
    return [e for e in gotools.parse(trace, go=go) if e.kind in KINDS and e.fields.get("Category") not in ours]


@formats
def test_misuse(traced, tmp_path, format):
    """Whatever a program does, the file is readable, and what was right is in it."""
    result = record(traced, format, "misuse")
    traces = list(tmp_path.glob("t.out*"))
    assert len(traces) == 2, traces  # of the child, too
    for trace in traces:
        for go in gotools.readers_of(format).values():
            gotools.check(trace, go=go)
    events = annotations(result.trace)
    count = collections.Counter((e.kind, e.fields.get("Message", e.fields.get("Type"))) for e in events)
    for kind, name, *numbers in (line.split("\t") for line in result.stdout.splitlines()):
        kinds = {"region": ["RegionBegin", "RegionEnd"], "task": ["TaskBegin", "TaskEnd"], "log": ["Log"]}[kind]
        assert [count[k, name] for k in kinds] == [int(n) for n in numbers], f"{kind} {name}"
    child = annotations(next(t for t in traces if t != result.trace))
    # it is recorded from its first thread on; nothing of what the parent had begun
    assert {e.fields.get("Type") for e in child} == {"left open", "in a thread"}


def test_stack(traced):
    """The leaf is the caller, at the line of the call."""
    events = annotations(record(traced, "go1.23", "annotations").trace)
    source = (ROOT / "test/prog/annotations.c").read_text().splitlines()
    for event in events:
        frame = event.stack[0]
        assert frame.file.endswith("annotations.c") and "gotrace_" in source[frame.line - 1], event


def test_scopes(traced):
    events = annotations(record(traced, "go1.23", "annotations_cxx").trace)
    assert [(e.kind, e.fields.get("Message", e.fields.get("Type"))) for e in events] == [
        ("TaskBegin", "request"), ("TaskBegin", "part"), ("RegionBegin", "compute"), ("RegionEnd", "compute"),
        ("TaskEnd", "part"), ("RegionBegin", "outer"), ("RegionBegin", "compute"), ("RegionEnd", "compute"),
        ("RegionEnd", "outer"), ("Log", "unwound"), ("TaskEnd", "request"),
    ]  # fmt: skip
    assert events[1].fields["Parent"] == events[0].fields["ID"]
    assert events[2].fields["Task"] == events[1].fields["ID"]
    assert events[6].fields["Task"] == events[0].fields["ID"]


WAYS = {
    "pie": ["-fPIE", "-pie"],
    "no-pie": ["-fno-pie", "-no-pie"],
    "static": ["-static"],
    "static-pie": ["-fPIE", "-static-pie"],
    "no-plt": ["-fno-plt"],
    "lto": ["-flto", "-O2", "-no-pie"],
    "pedantic": ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2"],
}


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.needs("clang")), "g++"])
@pytest.mark.parametrize("way", WAYS)
def test_built_in_any_way(traced, tmp_path, compiler, way):
    """Without the library nothing happens; with it everything is recorded, but in static programs."""
    flags = [f.replace("c99", "c++11") if "++" in compiler else f for f in WAYS[way]]
    program = proc.compile(SOURCES / "annotations/small.c", tmp_path / "small", *flags, compiler=compiler)
    bare = proc.run([program]).ok()
    assert bare.stdout == "38\n"  # ENOSYS
    result = traced([program]).ok()
    if way.startswith("static"):
        assert result.stdout == bare.stdout and not result.trace.exists()
    else:
        assert [e.fields["Message"] for e in annotations(result.trace)] == ["message"]


def test_in_a_library_loaded_later(traced, tmp_path):
    text = f'#include "{HEADER}"\nvoid plugin(void) {{\n    gotrace_log(0, "", "from the plugin");\n}}\n'
    proc.compile(text, tmp_path / "plugin.so", "-shared", "-fPIC")
    main = '#include <dlfcn.h>\nint main(int n, char **v) { void (*f)(void) = (void (*)(void))dlsym(dlopen(v[n - 1], RTLD_NOW), "plugin"); f(); return 0; }'
    program = proc.compile(main, tmp_path / "main", "-ldl")
    proc.run([program, tmp_path / "plugin.so"]).ok()
    (event,) = annotations(traced([program, tmp_path / "plugin.so"]).ok().trace)
    assert event.fields["Message"] == "from the plugin" and event.stack[0].func == "plugin"


@pytest.mark.measured
@pytest.mark.parametrize("flags", [["-fPIE", "-pie"], ["-no-pie", "-fno-pie"]])
def test_costs_one_branch(tmp_path, flags):
    """Instructions of a call in a program without the library, beyond those of the loop itself."""
    program = proc.compile(SOURCES / "annotations/loop.c", tmp_path / "loop", "-O2", *flags)
    empty = proc.compile(SOURCES / "annotations/loop.c", tmp_path / "empty", "-DEMPTY", "-O2", *flags)

    def instructions(program, n):
        argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp_path}/out", program, n]
        return int(re.search(r"Collected : (\d+)", proc.run(argv).ok().stderr)[1])

    call, none = (instructions(p, 1_000_000) - instructions(p, 0) for p in (program, empty))
    assert call - none <= 3_010_000, f"{(call - none) / 1e6} instructions a call"


TALKERS = 20


@pytest.mark.parametrize("memory", ["256M", "1M"])
@pytest.mark.long
def test_many_texts_of_many_threads(traced, tmp_path, memory):
    """Buffers change between events and texts; with little memory each thread has one of events already."""
    result = traced([proc.compile(SOURCES / "annotations/talk.c", tmp_path / "talk", f"-DTALKERS={TALKERS}")], env=proc.EVERY_YIELD | {"GOTRACE_MAX_MEM": memory}).ok()
    assert "nothing lost" in result.stderr
    said = collections.defaultdict(list)
    for e in gotools.parse(result.trace):
        if e.kind == "Log":
            who, number, rest = e.fields["Message"].split()
            said[who].append(int(number))
            assert rest == "x"
    assert said == {str(i): list(range(400)) for i in range(TALKERS)}


@pytest.mark.measured
def test_memory_with_new_texts(traced):
    """A million messages and names that never come again leave nothing behind in the process."""
    program = SINGLE / "annotations/many_texts"
    result = traced([program], env={"GOTRACE_OUTPUT": "/dev/null", "GOTRACE_MAX_MEM": "16M"}).ok()
    assert int(result.stdout) < 8000, f"{result.stdout} KiB more"


def test_installed(tmp_path):
    """As a user finds it: pkg-config says how to compile, nothing is linked."""
    prefix = tmp_path / "usr"
    proc.run(["make", "-C", ROOT, "install", f"PREFIX={prefix}"], timeout=60).ok()
    env = {"PKG_CONFIG_PATH": prefix / "share/pkgconfig"}
    flags = proc.run(["pkg-config", "--cflags", "--libs", "gotrace"], env=env).ok().stdout.split()
    assert flags == [f"-I{prefix}/include"]
    program = proc.compile(SOURCES / "annotations/small.c", tmp_path / "small", "-DINSTALLED", *flags)
    result = proc.run([program], env={"LD_PRELOAD": prefix / "lib/libgotrace.so", "GOTRACE_OUTPUT": tmp_path / "t.out"}).ok()
    assert "1 events" not in result.stderr and annotations(tmp_path / "t.out")
    proc.run(["make", "-C", ROOT, "uninstall", f"PREFIX={prefix}"]).ok()
    assert not [file for file in prefix.rglob("*") if not file.is_dir()]


@pytest.mark.parametrize(
    "language, compiler, flags, kinds, message",
    [
        ("c", "gcc", [], ["TaskBegin", "Log", "RegionBegin", "RegionEnd", "TaskEnd"], "/index.html"),
        ("cpp", "g++", ["-std=c++11", "-pthread"], ["TaskBegin", "RegionBegin", "Log", "RegionEnd", "TaskEnd"], "9"),
    ],
)
def test_examples_of_the_man_page(traced, tmp_path, language, compiler, flags, kinds, message):
    """Each compiles without a warning, runs without the library, and records what the page says that it does."""
    page = (ROOT / "scripts/man/gotrace_annotations.3.md").read_text()
    (text,) = re.findall(rf"```{language}\n(#include <gotrace.h>.*?)```", page, re.S)
    program = proc.compile(text, tmp_path / "example", f"-I{HEADER.parent}", "-Wall", "-Wextra", "-Werror", *flags, compiler=compiler)
    proc.run([program]).ok()
    events = annotations(traced([program]).ok().trace)
    assert [e.kind for e in events] == kinds
    assert [e.fields["Message"] for e in events if e.kind == "Log"] == [message]
