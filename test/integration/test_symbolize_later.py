"""`gotrace symbolize`: names for the trace of a host without debug files, from files that another machine has."""

import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import threading

import pytest

from lib import PROGRAMS, ROOT, SANITIZER, SOURCES, gotools, proc
from lib.seeds import seeded

GOTRACE = ROOT / "scripts/gotrace"
SANITIZED = ROOT / "build/asan/gotrace"
MAIN = "void outer(void);\nint main(void) { outer(); return 0; } // line 2\n"
NAMED = [("inner", "inlined.c", 13), ("hidden", "inlined.c", 18), ("outer", "inlined.c", 24), ("main", "prog.c", 2)]
formats = pytest.mark.parametrize("format", gotools.some("go1.7", of=[f for f in gotools.FORMATS if f != "go1.5"]))


def split(path, debug):
    """Moves the debug information of a program or library into the directory `debug`."""
    debug.mkdir(exist_ok=True)
    proc.run(["objcopy", "--only-keep-debug", path, debug / f"{path.name}.debug"]).ok()
    proc.run(["strip", path]).ok()


def made_library(path, *flags):
    return proc.compile(SOURCES / "symbols/inlined.c", path, "-DAPART", "-Dmiddle=hidden", "-shared", "-fPIC", "-Wl,--build-id", *flags)


@pytest.fixture
def host(tmp_path):
    """A program and its library as they are on the traced host; their debug files are in tmp_path/debug."""
    library = made_library(tmp_path / "libx.so")
    program = proc.compile(MAIN, tmp_path / "prog", "-Wl,--build-id", library, f"-Wl,-rpath,{tmp_path}")
    split(library, tmp_path / "debug")
    split(program, tmp_path / "debug")
    return program


def build_id(path):
    return re.search(r"Build ID: (\w+)", proc.run(["readelf", "-n", path]).ok().stdout)[1]


def sleeps(trace, go=None):
    """The frames above nanosleep in each wait, as (function, file name, line)."""
    events = gotools.parse(trace, go=go)
    waits = [e for e in events if e.is_go("Running", "Waiting") and e.stack[0].func == "nanosleep"]
    return [[(f.func, os.path.basename(f.file), f.line) for f in e.stack[1:]] for e in waits]


def away(program, tmp_path):
    """The traced host's files are not on this machine."""
    for path in program, tmp_path / "libx.so":
        path.unlink()


def symbolize(*argv, **options):
    return proc.run([GOTRACE, "symbolize", *argv], **options)


def without_frames(events):
    return [(e.kind, e.time, e.m, e.p, e.g, e.goid, e.old, e.new, e.reason, bool(e.stack)) for e in events]


@formats
@pytest.mark.parametrize("here", [True, False])
def test_debug_dir(traced, tmp_path, host, format, here):
    trace = traced([host], env={"GOTRACE_FORMAT": format}).ok().trace
    if not here:
        away(host, tmp_path)
    named = tmp_path / "named"
    result = symbolize("--debug-dir", tmp_path / "debug", "-o", named, trace).ok()
    assert re.search(rf"gotrace: {named}: \d+ addresses named", result.stderr)
    for go in gotools.readers_of(format).values():
        gotools.check(named, go=go)
    text = proc.run([GOTRACE, "top", "--kind=sleep", named]).ok().stdout
    assert "nanosleep <- inner (inlined.c:13)" in text, text
    if gotools.FORMATS[format][1] is None:
        (before,), (after,) = sleeps(trace), sleeps(named)
        assert after[: len(NAMED)] == NAMED
        assert [f[0] for f in before[:3]] != ["inner", "hidden", "outer"] and before[0][2] == 0
        assert without_frames(gotools.parse(trace)) == without_frames(gotools.parse(named))


def test_viewer_opens_it(traced, tmp_path, host):
    trace = traced([host]).ok().trace
    symbolize("--debug-dir", tmp_path / "debug", trace).ok()  # in its place
    for go in gotools.versions().values():
        if gotools.minor_of(go) >= 23:
            (stack,) = sleeps(trace, go)
            assert stack[: len(NAMED)] == NAMED
    assert [p.name for p in tmp_path.glob("t.out*")] == ["t.out"]


def test_by_build_id(traced, tmp_path, host):
    trace = traced([host]).ok().trace
    store = tmp_path / "store"
    for path in host, tmp_path / "libx.so":
        ident = build_id(path)
        place = store / ".build-id" / ident[:2]
        place.mkdir(parents=True, exist_ok=True)
        shutil.move(tmp_path / "debug" / f"{path.name}.debug", place / f"{ident[2:]}.debug")
    away(host, tmp_path)
    symbolize(f"--debug-dir={store}", trace).ok()
    assert sleeps(trace)[0][: len(NAMED)] == NAMED


def test_path_below_the_directory(traced, tmp_path, host):
    """As in a copy of the host's /usr/lib/debug, or of the unstripped files themselves."""
    trace = traced([host]).ok().trace
    root = tmp_path / "root"
    place = root / str(tmp_path)[1:]
    place.mkdir(parents=True)
    for name in "prog", "libx.so":
        shutil.move(tmp_path / "debug" / f"{name}.debug", place / name)
    away(host, tmp_path)
    symbolize(f"--debug-dir={root}", trace).ok()
    assert sleeps(trace)[0][: len(NAMED)] == NAMED


def test_debug_information_that_has_no_line_for_an_address(traced):
    """libc's functions that call a thread's are not looked up: that is no want of debug information."""
    trace = traced([PROGRAMS / "threads", "2"]).ok().trace
    (libc,) = set(re.findall(r"/\S+/libc\.so\.6", proc.run(["ldd", PROGRAMS / "threads"]).ok().stdout))
    its = build_id(libc)
    has = pathlib.Path(f"/usr/lib/debug/.build-id/{its[:2]}/{its[2:]}.debug").exists()
    assert (f"{libc}: no debug information; its build ID is {its}\n" in symbolize(trace).ok().stderr) == (not has)


def test_another_build_is_refused(traced, tmp_path, host):
    trace = traced([host]).ok().trace
    other = made_library(tmp_path / "other", "-DROUNDS=1")
    wrong = tmp_path / "debug/libx.so.debug"
    proc.run(["objcopy", "--only-keep-debug", other, wrong]).ok()
    away(host, tmp_path)
    expected, before = build_id(wrong), sleeps(trace)
    result = symbolize("--debug-dir", tmp_path / "debug", trace).ok()
    line = f"gotrace: {wrong} is not used: its build ID is not that of {tmp_path}/libx.so"
    assert [l for l in result.stderr.splitlines() if l.startswith(line)] and expected not in result.stderr
    assert f"gotrace: {tmp_path}/libx.so: no debug information; its build ID is " in result.stderr
    (after,) = sleeps(trace)
    assert ("main", "prog.c", 2) in after and "inner" not in [f[0] for f in after]
    assert [f for f in after if "libx.so" in f[1]] == [f for f in before[0] if "libx.so" in f[1]]


def test_in_steps(traced, tmp_path, host):
    """What one run names, the next one keeps and adds to; a third changes nothing."""
    trace = traced([host]).ok().trace
    away(host, tmp_path)
    first, second = tmp_path / "first", tmp_path / "second"
    for directory, name in (first, "libx.so"), (second, "prog"):
        directory.mkdir()
        shutil.move(tmp_path / "debug" / f"{name}.debug", directory)
    symbolize("--debug-dir", first, trace).ok()
    assert sleeps(trace)[0][:3] == NAMED[:3] and ("main", "prog.c", 2) not in sleeps(trace)[0]
    symbolize("--debug-dir", second, trace).ok()
    assert sleeps(trace)[0][: len(NAMED)] == NAMED
    data = trace.read_bytes()
    assert "0 addresses named" in symbolize("--debug-dir", second, trace).ok().stderr
    assert trace.read_bytes() == data


@pytest.mark.parametrize("format", gotools.some(of=["go1.21", "go1.23", "go1.26"]))
def test_libraries_that_came_and_went(traced, tmp_path, format):
    """One after the other at one address: each keeps its own names."""
    libraries = []
    for name in "liba.so", "libb.so":
        library = made_library(tmp_path / name, f"-Dinner=inner_{name[3]}", f"-Dhidden=hidden_{name[3]}")
        split(library, tmp_path / "debug")
        libraries.append(library)
    trace = traced([PROGRAMS / "loader", *libraries, libraries[0]], env={"GOTRACE_FORMAT": format}).ok().trace
    assert b"gotrace-module 4000000000000 " in trace.read_bytes(), "they were not at one address"
    symbolize("--debug-dir", tmp_path / "debug", trace).ok()
    for go in gotools.readers_of(format).values():
        gotools.check(trace, go=go)
    names = [[(f, line) for f, _, line in stack[:3]] for stack in sleeps(trace)]
    assert names == [[(f"inner_{x}", 13), (f"hidden_{x}", 18), ("outer", 24)] for x in "aba"]


def test_a_cut_trace(traced, tmp_path, host):
    """Its whole generations get their names, the rest stays as it is."""
    data = traced([PROGRAMS / "rounds"]).ok().trace.read_bytes()
    cut = tmp_path / "cut"
    for size in range(len(data) // 3, len(data), len(data) // 7):
        cut.write_bytes(data[:size])
        before = proc.run([GOTRACE, "info", cut]).ok().stdout
        symbolize(cut).ok()
        after = proc.run([GOTRACE, "info", cut]).ok().stdout
        assert [l for l in after.splitlines() if "events" not in l and "size" not in l] == [
            l for l in before.splitlines() if "events" not in l and "size" not in l
        ]


def test_debuginfod(traced, tmp_path, host):
    """Servers are asked only when the user says so."""
    trace = traced([host]).ok().trace
    files = {f"/buildid/{build_id(p)}/debuginfo": tmp_path / f"debug/{p.name}.debug" for p in (host, tmp_path / "libx.so")}
    away(host, tmp_path)
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            data = files[self.path].read_bytes() if self.path in files else b""
            self.send_response(200 if data else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}", "DEBUGINFOD_CACHE_PATH": tmp_path / "cache"}
    symbolize(trace, env=env).ok()
    assert not asked and "inner" not in [f[0] for f in sleeps(trace)[0]]
    symbolize("--debuginfod", trace, env=env).ok()
    server.shutdown()
    assert set(files) <= set(asked)
    assert sleeps(trace)[0][: len(NAMED)] == NAMED


def test_a_server_that_does_not_answer(traced, tmp_path, host):
    trace = traced([host]).ok().trace
    away(host, tmp_path)
    with socket.socket() as closed:  # nobody listens there
        closed.bind(("127.0.0.1", 0))
        env = {"DEBUGINFOD_URLS": "http://127.0.0.1:%d" % closed.getsockname()[1], "DEBUGINFOD_CACHE_PATH": tmp_path / "cache"}
        result = symbolize("--debuginfod", trace, env=env)
    assert result.returncode == 1, result
    assert re.search(r"^gotrace: debuginfod-find: .*Connection refused.*\ngotrace: \S+: 0 addresses named\n", result.stderr, re.M), result.stderr


@pytest.fixture
def asking(traced, tmp_path, host):
    """(trace, program): `gotrace symbolize` of that, in the middle of its work: it waits for a debuginfod-find."""
    trace = traced([host]).ok().trace
    for name in "asked", "answer":
        os.mkfifo(tmp_path / name)
    find = tmp_path / "bin/debuginfod-find"
    find.parent.mkdir()
    find.write_text("#!/bin/sh\ncd ${0%/*}/..; test -e no && exit 1; echo >asked; cat answer\n")
    find.chmod(0o755)
    env = {"PATH": f"{find.parent}:{os.environ['PATH']}", "DEBUGINFOD_URLS": "http://127.0.0.1:1"}
    argv = ["env", "--ignore-signal=HUP", GOTRACE, "symbolize", "--debuginfod", trace]
    away(host, tmp_path)
    program = proc.spawn(argv, env=env)
    (tmp_path / "asked").read_bytes()
    assert len(list(tmp_path.glob("t.out.??????"))) == 1
    return trace, program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_interrupted(asking, number):
    """It dies of the signal; the trace is as it was, and alone."""
    trace, program = asking
    before = trace.read_bytes()
    assert proc.stop(program, sig=number) == -number
    assert trace.read_bytes() == before
    assert [p.name for p in trace.parent.glob("t.out*")] == ["t.out"]


def test_ignores_what_its_parent_ignored(asking):
    """As under nohup(1)."""
    trace, program = asking
    before = trace.stat().st_ino
    program.send_signal(signal.SIGHUP)
    (trace.parent / "no").touch()
    (trace.parent / "answer").write_text("")
    assert program.wait(20) == 1, "no file was fetched, and nothing named"
    assert trace.stat().st_ino != before
    assert [p.name for p in trace.parent.glob("t.out*")] == ["t.out"]


def test_paths_do_not_control_the_terminal(traced, tmp_path, host):
    """Those of modules are the traced host's, also of files that have another build ID."""
    evil = "\x1b[31mred\n\x7f\u009b1mbold-é"
    program = host.rename(tmp_path / evil)
    trace = traced([program]).ok().trace
    others = tmp_path / "others"
    others.mkdir()
    shutil.copy("/bin/true", others / evil)
    program.unlink()
    text = symbolize("--debug-dir", others, trace).ok().stderr
    assert text.count("?[31mred????1mbold-é") >= 2, text
    assert not [c for c in text if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160], text


@pytest.mark.chance
@pytest.mark.long
def test_damaged_files_are_survived(traced, tmp_path):
    """Bytes changed at random: a message or a trace, never a touch of what is not its own. `make asan`."""
    chosen = seeded("FUZZ_FIRST", 11)
    for format, names in ("go1.19", "later"), ("go1.10", "now"), ("go1.23", "now"), ("go1.26", "later"):
        data = traced([PROGRAMS / "truth"], env={"GOTRACE_FORMAT": format, "GOTRACE_NAMES": names}).ok().trace.read_bytes()
        for _ in range(45):
            bad = bytearray(data)
            for _ in range(chosen.randrange(1, 6)):
                bad[chosen.randrange(16, len(bad))] = chosen.randrange(256)
            (tmp_path / "bad").write_bytes(bad)
            argv = [SANITIZED, "symbolize", "-o", tmp_path / "out", tmp_path / "bad"]
            result = proc.run(argv, env=SANITIZER)
            assert result.returncode in (0, 1), result


def test_link_to_a_trace(traced, tmp_path, host):
    """Others may have made the link: what it leads to is read, and written only elsewhere."""
    trace = traced([host]).ok().trace
    before = trace.read_bytes()
    (tmp_path / "link").symlink_to("t.out")
    result = symbolize("--debug-dir", tmp_path / "debug", tmp_path / "link")
    assert (result.returncode, result.stderr) == (1, f"gotrace: {tmp_path / 'link'} is a symbolic link, and stays as it is\n")
    assert (tmp_path / "link").is_symlink() and trace.read_bytes() == before
    symbolize("--debug-dir", tmp_path / "debug", "-o", tmp_path / "new", tmp_path / "link").ok()
    assert sleeps(tmp_path / "new")[0][: len(NAMED)] == NAMED


def test_wrong_use(traced, tmp_path):
    again = shutil.copy(traced([PROGRAMS / "threads", "2"]).ok().trace, tmp_path / "again")
    trace = traced([PROGRAMS / "threads", "2"], env={"GOTRACE_FORMAT": "go1.5"}).ok().trace
    env = {"DEBUGINFOD_URLS": ""}
    for argv, why in [
        ([trace], "go1.5 trace has no place"),
        ([], "symbolize needs one trace: gotrace symbolize TRACE"),
        (["--debug-dir", tmp_path / "none", trace], "none: No such file"),
        (["-o", tmp_path / "no/such/place", tmp_path / "new"], "new: No such file"),
        (["-o", "/dev/null", again], "/dev/null is no regular file"),
        (["--debug-dir=/"] * 64 + [again], "at most 63 times"),
    ]:
        result = symbolize(*argv, env=env)
        assert result.returncode in (1, 2) and why in result.stderr, result
    assert not list(tmp_path.glob("*.??????"))
