"""`gotrace [options] program`: nothing stands between the program and its parent, and what cannot be traced says so."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.request

import pytest

from lib import LIBC, LIBRARY, PROGRAMS, ROOT, gotools, proc

GOTRACE = ROOT / "scripts/gotrace"
COMMAND = ROOT / "build/gotrace"
THREADS = [PROGRAMS / "threads", "4"]
EMPTY = "int main(void) { return 7; }\n"


def gotrace(*argv, **options):
    return proc.run([GOTRACE, *argv], **options)


# --- running a program


@pytest.mark.parametrize("separator", [[], ["--"]])
def test_trace(tmp_path, separator):
    trace = tmp_path / "t.out"
    result = gotrace("-o", trace, *separator, *THREADS).ok()
    assert f"gotrace: {trace}: " in result.stderr
    created = [e for e in gotools.parse(trace) if e.is_go("NotExist", "Runnable")]
    assert len(created) == 4


def test_arguments_are_the_program_s(tmp_path):
    """Options after the program's name are its own, and its name is as given."""
    result = gotrace("-q", "-o", tmp_path / "t", "sh", "-c", 'echo "$0" "$@"', "-q", "--help", "a b").ok()
    assert result.stdout == "-q --help a b\n"


def test_environment_pid_stdin_and_status(tmp_path):
    """What the program sees differs by the preload and its options only."""
    script = 'env -0 | sort -z | tr "\\0" "\\n"; echo pid $$; cat; exit 41'
    env = {"LD_PRELOAD": "libdl.so.2", "GOTRACE": "off"}
    bare = proc.run(["sh", "-c", script], env=env, stdin="text\n")
    child = proc.spawn(
        [GOTRACE, "--no-heap", "-o", tmp_path / "t", "sh", "-c", script],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    stdout, _ = child.communicate("text\n", timeout=10)
    assert child.returncode == bare.returncode == 41
    assert f"pid {child.pid}\n" in stdout
    added = {f"GOTRACE_OUTPUT={tmp_path}/t", "GOTRACE_HEAP=off", f"LD_PRELOAD={ROOT}/libgotrace.so:libdl.so.2"}
    changed = set(stdout.splitlines()) ^ set(bare.stdout.splitlines())
    assert {line for line in changed if not re.match(r"(pid |_=)", line)} == added | {"LD_PRELOAD=libdl.so.2"}


@pytest.mark.parametrize("ignored", [False, True])
def test_signals(tmp_path, ignored):
    """Dispositions that the parent chose are inherited, and a signal ends the program itself."""
    script = "grep SigIgn /proc/self/status; kill -PIPE $$; exit 3"
    prepare = (lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL))
    ends = []
    for argv in [["sh", "-c", script], [GOTRACE, "-q", "-o", tmp_path / "t", "sh", "-c", script]]:
        child = subprocess.run(argv, stdout=subprocess.PIPE, preexec_fn=prepare, restore_signals=False, timeout=10)
        ends.append((child.returncode, child.stdout))
    assert ends[0] == ends[1] and ends[0][0] == (3 if ignored else -signal.SIGPIPE)


def test_signal_reaches_the_program():
    child = proc.spawn([GOTRACE, "-q", "-o", "/dev/null", "sleep", "100"])
    proc.until(lambda: open(f"/proc/{child.pid}/comm").read() == "sleep\n")
    assert proc.stop(child, sig=signal.SIGINT) == -signal.SIGINT


@pytest.mark.parametrize(
    "argv, expected",
    [
        (["-o", "x"], {"OUTPUT": "x"}),
        (["--output=x", "-F", "go1.25", "-q"], {"OUTPUT": "x", "FORMAT": "go1.25", "QUIET": "1"}),
        (["--syscalls=all", "--syscall-min=5", "--no-heap"], {"SYSCALLS": "all", "SYSCALL_MIN": "5", "HEAP": "off"}),
        (["--no-children", "--max-size=9M", "--max-mem", "64M"], {"CHILDREN": "0", "MAX_SIZE": "9M", "MAX_MEM": "64M"}),
    ],
)
def test_options(tmp_path, argv, expected):
    result = gotrace(*argv, "env", cwd=tmp_path).ok()
    seen = dict(re.findall(r"^GOTRACE_(?!ROOT_)(\w+)=(.*)$", result.stdout, re.M))
    assert seen == expected


def test_every_switch_has_an_option():
    """The tables of the library and of the launcher."""
    switches = set(re.findall(r'{"(GOTRACE_\w+)"', (ROOT / "preload/shared/options.c").read_text()))
    options = set(re.findall(r'"(GOTRACE_\w+)"', (ROOT / "scripts/tool/run_options.c").read_text()))
    assert len(switches) > 8 and switches <= options


@pytest.mark.parametrize(
    "argv", [["--format=go1.99", "true"], ["--max-mem=1", "true"], ["--nonsense", "true"], ["--output"], [], ["-q"]]
)
def test_wrong_use(argv):
    result = gotrace(*argv)
    assert result.returncode == 125 and "gotrace: " in result.stderr, result


def test_version_is_that_of_the_changes():
    newest = re.search(r"^## (\d\S*)", (ROOT / "scripts/CHANGELOG.md").read_text(), re.M)[1]
    assert gotrace("--version").ok().stdout == f"gotrace {newest}\n"


def test_help_names_every_option_and_command():
    """Options that this libgotrace.so has no switch for are not offered."""
    switches = set(re.findall(r'{"(GOTRACE_\w+)"', (ROOT / "preload/shared/options.c").read_text()))
    options = re.findall(r'^    {"([a-z-]+)",.*?"(GOTRACE_\w+)"', (ROOT / "scripts/tool/run_options.c").read_text(), re.M)
    commands = re.findall(r'^    {"([a-z]+)", ', (ROOT / "scripts/tool/launch/main.c").read_text(), re.M)
    text = gotrace("--help").ok().stdout
    assert len(options) > 8 and len(commands) >= 4
    for name, variable in options:
        assert bool(re.search(rf"--{name}\b", text)) == (variable in switches), name
    for name in commands:
        assert f"gotrace {name} " in text, name


COMMANDS = re.findall(r'^    {"([a-z]+)", ', (ROOT / "scripts/tool/launch/main.c").read_text(), re.M)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(command):
    """80 columns; after other options, too; no tab."""
    text = gotrace(*command.split(), "--help").ok().stdout
    assert text.startswith("usage: gotrace ") and "\t" not in text
    assert max(map(len, text.splitlines())) <= 80, max(text.splitlines(), key=len)


def test_help_after_an_option():
    assert gotrace("-f", "-q", "--help").ok().stdout == gotrace("--help").ok().stdout
    assert gotrace("-q", "-V").ok().stdout == gotrace("--version").ok().stdout


@pytest.mark.parametrize(
    "argv, status, meant",
    [
        (["wy", "t.out"], 127, "gotrace why?"),
        (["stakcs"], 127, "gotrace stacks?"),
        (["by-lock", "t.out"], 127, "gotrace top --by-lock?"),
        (["--sycalls=all", "true"], 125, "--syscalls?"),
        (["why", "--form=1s", "t.out"], 2, "--from?"),
        (["top", "--by-thraed", "t.out"], 2, "--by-thread?"),
        (["help", "tpo"], 2, "top?"),
        (["top", "holders", "t.out"], 2, "--holders?"),
    ],
)
def test_mistyped(argv, status, meant):
    """A command, an option: one line says what was meant, perhaps."""
    result = gotrace(*argv)
    assert result.returncode == status and result.stdout == "", result
    assert re.fullmatch(rf"gotrace: .*; did you mean {re.escape(meant)}\n", result.stderr), result


def test_a_file_that_is_no_program(tmp_path):
    """It lies here, and a program is looked for in PATH only."""
    gotrace("-q", "-o", tmp_path / "t.out", "true").ok()
    for name in "a b.out", "-.out":
        shutil.copy(tmp_path / "t.out", tmp_path / name)
    (tmp_path / "app.py").write_text("print()")
    proc.compile(EMPTY, tmp_path / "own")
    shutil.copy(tmp_path / "own", tmp_path / "wy")  # not the command why
    assert "did you mean" not in gotrace("app.py", cwd=tmp_path).stderr
    for name, meant in [("t.out", "why t.out"), ("a b.out", "why 'a b.out'"), ("-.out", "why ./-.out"), ("own", "./own"), ("wy", "./wy")]:
        meant = f"gotrace {meant}?"
        result = gotrace("--", name, cwd=tmp_path)
        assert result.returncode == 127 and result.stderr.endswith(f"; did you mean {meant}\n"), result
    (tmp_path / "app.c").write_text(EMPTY)
    said = "no program in PATH, and the file here is no program and no trace; gotrace --help lists options and commands"
    result = gotrace("app.c", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (127, f"gotrace: app.c: {said}\n")


def test_help_of_record(tmp_path):
    """`gotrace record` is `gotrace`, and has its page. Without man(1) that is --help."""
    assert proc.run([COMMAND, "help", "record"], env={"PATH": str(tmp_path)}).ok().stdout == gotrace("--help").ok().stdout


def test_an_option_takes_the_trace(tmp_path):
    (tmp_path / "t.out").touch()
    result = gotrace("why", "--idle", "t.out", cwd=tmp_path)
    said = "gotrace: why needs one trace: gotrace why TRACE (--idle took t.out as its value)\n"
    assert (result.returncode, result.stderr) == (2, said)
    result = gotrace("why", "--idle", "none", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, "gotrace: why needs one trace: gotrace why TRACE\n")


def test_the_place_of_the_trace_is_checked_first(tmp_path):
    """Before the program runs. --force runs it, and so does a name that only the program's process knows."""
    missing, mark = tmp_path / "no" / "t.out", tmp_path / "ran"
    said = f"--output={missing}: there is no directory {missing.parent}/; mkdir -p {missing.parent}/ makes it"
    for options in [], ["-f"], ["--wait"]:
        result = gotrace("-o", missing, *options, "touch", mark)
        assert (result.returncode, result.stderr) == (125, f"gotrace: {said}\n") and not mark.exists()
    (tmp_path / "file").touch()
    result = gotrace("-o", tmp_path / "file" / "t.out", "touch", mark)
    assert result.returncode == 125 and f"directory {tmp_path}/file/: Not a directory; " in result.stderr and not mark.exists()
    for argv in ["--force", "-o", missing], ["-o", tmp_path / "%p" / "t.out"]:
        assert "cannot write " in gotrace(*argv, "touch", mark).ok().stderr and mark.exists()
        mark.unlink()
    gotrace("-q", "-o", "t.out", "touch", mark, cwd=tmp_path).ok()
    assert (tmp_path / "t.out").exists()


ONE_REPORT = "top: only one of --by-thread, --cum, --wakers, --preempted, --holders, --by-lock and --wakeups"


@pytest.mark.parametrize(
    "argv, said",
    [
        (["top", "--nothing-like-it", "t"], "--nothing-like-it: not an option; gotrace top --help lists them"),
        (["top", "--from"], "--from: this option needs an argument"),
        (["top", "--json=1", "t"], "--json=1: this option takes no argument; type --json"),
        (["top", "-Z", "t"], "-Z: not an option; gotrace top --help lists them"),
        (["top", "-n"], "-n: this option needs an argument"),
        (["top", "-:", "t"], "-:: not an option; gotrace top --help lists them"),
        (["top", "t", "u"], "top needs one trace, not 2: gotrace top TRACE"),
        (["top", "--holders", "--by-lock", "t"], ONE_REPORT),
        (["top", "--wakers", "--preempted", "t"], ONE_REPORT),
        (["top", "--cum", "--wakeups", "t"], ONE_REPORT),
        (["top", "-n", "ten", "t"], "top: -n ten: must be a number of rows, 1 or more"),
        (["convert", "t", "-o", "u"], "convert needs --format or --holds: gotrace convert [--format=FORMAT] [--holds] TRACE -o FILE"),
    ],
)
def test_wrong_options(argv, said):
    result = gotrace(*argv)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"gotrace: {said}\n")


@pytest.mark.needs("man", "go-md2man")
@pytest.mark.parametrize("command", [[], ["why"], ["detach"]])
def test_help_opens_the_page(tmp_path, command):
    """As installed, and with man(1); else the page is --help."""
    proc.run(["make", "-s", "-C", ROOT, "man", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr"]).ok()
    installed = tmp_path / "usr/bin/gotrace"
    page = proc.run([installed, "help", *command]).ok().stdout
    assert re.match(r"gotrace[^\n]*\(1\)", page, re.I) and "NAME" in page and "usage:" not in page, page[:200]
    without = proc.run([installed, "help", *command], env={"PATH": str(tmp_path)}).ok().stdout
    assert without == gotrace(*command, "--help").ok().stdout


# --- what cannot be traced


def refused(argv, why, status=126, **options):
    result = gotrace("-o", "/dev/null", *argv, **options)
    assert result.returncode == status and result.stdout == "", result
    (line,) = result.stderr.splitlines()
    assert line.startswith("gotrace: ") and re.search(why, line), line


def test_static(tmp_path):
    program = proc.compile(EMPTY, tmp_path / "static", "-static")
    refused([program], "static is statically linked")
    assert gotrace("--force", program).returncode == 7
    refused([proc.compile(EMPTY, tmp_path / "pie", "-static-pie")], "pie is statically linked")


def test_go(tmp_path):
    (tmp_path / "main.go").write_text("package main\nfunc main() {}\n")
    env = {"CGO_ENABLED": "0", "GOFLAGS": ""}
    proc.run([gotools.compiler(), "build", "-o", tmp_path / "go", tmp_path / "main.go"], env=env, timeout=50).ok()
    refused([tmp_path / "go"], "Go program without cgo")


def test_musl(tmp_path):
    program = proc.compile(EMPTY, tmp_path / "musl", compiler="musl-gcc")
    refused([program], "linked to another libc, musl: its loader is .*ld-musl")


def test_loader_is_missing(tmp_path):
    program = proc.compile(EMPTY, tmp_path / "app", "-Wl,--dynamic-linker=/lib/ld-linux-none.so.2")
    refused([program], "its loader /lib/ld-linux-none.so.2 is missing")


@pytest.mark.parametrize(
    "at, byte, why", [(18, b"\xb7", "made for aarch64"), (18, b"\x2a", "made for machine 42"), (4, b"\x01", "made for 32-bit")]
)
def test_architecture(tmp_path, at, byte, why):
    program = tmp_path / "app"
    shutil.copy(shutil.which("true"), program)
    with open(program, "r+b") as file:
        file.seek(at)
        file.write(byte)
    refused([program], why)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a program of another user")
def test_privileged(tmp_path):
    program = proc.compile(EMPTY, tmp_path / "app")
    for owner, mode, why in [((1, 0), 0o4755, "set-user-ID"), ((0, 1), 0o2755, "set-group-ID")]:
        os.chown(program, *owner)
        program.chmod(mode)
        refused([program], why)
    os.chown(program, 0, 0)
    program.chmod(0o6755)  # we are that user
    assert gotrace("-q", "-o", "/dev/null", program).returncode == 7
    program.chmod(0o755)
    proc.run(["setcap", "cap_net_raw+ep", program]).ok()
    assert gotrace("-q", "-o", "/dev/null", program).returncode == 7  # root gains nothing by it
    for directory in [tmp_path, *tmp_path.parents][:-1]:
        directory.chmod(directory.stat().st_mode | 0o011)
    (tmp_path / "build").mkdir(mode=0o755)  # a copy: the checkout may be root's alone
    command = shutil.copy(COMMAND, tmp_path / "build")
    shutil.copy(LIBRARY, tmp_path)
    try:
        refused_as_nobody = proc.run(["runuser", "-u", "nobody", "--", command, program], cwd=tmp_path)
    finally:
        proc.run(["setcap", "-r", program])
    assert "given file capabilities" in refused_as_nobody.stderr and refused_as_nobody.returncode == 126


def test_thread_sanitizer(tmp_path):
    refused([proc.compile(EMPTY, tmp_path / "app", "-fsanitize=thread")], "ThreadSanitizer")


def test_address_sanitizer_is_loaded_first(tmp_path):
    program = proc.compile("#include <pthread.h>\n" + EMPTY, tmp_path / "app", "-fsanitize=address")
    result = gotrace("-o", tmp_path / "t", program)
    assert result.returncode == 7 and re.fullmatch(r"gotrace: \S+/t: .*\n", result.stderr), result


def script(path, first, body=""):
    path.write_text(f"{first}\n{body}")
    path.chmod(0o755)
    return path


def test_scripts(tmp_path):
    static = proc.compile(EMPTY, tmp_path / "static", "-static")
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for line in f"#!{static}", f"#! {static} -x", "#!/usr/bin/env static", "#!/usr/bin/env -S A=b static -x":
        refused([script(tmp_path / "script", line)], "script is a script: .*static is statically linked", env=path)
    for line in "#!/usr/bin/env -S -u A static", "#!/usr/bin/env -Sstatic":
        refused([script(tmp_path / "script", line)], "script is a script: .*static is statically linked", env=path)
    outer = script(tmp_path / "outer", f"#!{script(tmp_path / 'inner', f'#!{static}')}")
    refused([outer], "outer is a script: .*inner is a script: .*static")
    refused([script(tmp_path / "lost", "#!/nonexistent/x")], "lost is a script: /nonexistent/x: No such file")
    ok = ["-q", "-o", "/dev/null"]
    assert gotrace(*ok, script(tmp_path / "sh", "#!/bin/sh", "exit 5")).returncode == 5
    assert gotrace(*ok, script(tmp_path / "env", "#!/usr/bin/env sh", "exit 5")).returncode == 5
    assert gotrace(*ok, script(tmp_path / "bare", "exit 5")).returncode == 5  # as env(1) does
    for line in "#!/usr/bin/env -S -u HOME sh", "#!/usr/bin/env -Ssh -u", "#!/usr/bin/env -S --chdir / sh":
        assert gotrace(*ok, script(tmp_path / "options", line, "exit 5")).returncode == 5, line


def test_not_there(tmp_path):
    (tmp_path / "file").write_text("x")
    refused(["nonexistent-program"], "nonexistent-program: No such file", 127)
    refused([tmp_path / "nonexistent"], "No such file", 127)
    refused([tmp_path / "file"], "Permission denied", 126)
    refused([tmp_path], "Is a directory", 126)


def test_the_loader_as_a_program(tmp_path):
    loader = re.search(r"interpreter: (\S+)]", proc.run(["readelf", "-lW", THREADS[0]]).stdout)[1]
    name = os.path.relpath(THREADS[0], tmp_path)
    named = ["--argv0", "other", name], ["--argv0", "no/such/file", name]
    for program in [THREADS[0]], [name], *(named if LIBC >= 33 else ()):
        gotrace("-o", tmp_path / "t", loader, *program, *THREADS[1:], cwd=tmp_path).ok()
        frames = {(f.func, os.path.basename(f.file)) for e in gotools.parse(tmp_path / "t") for f in e.stack}
        assert ("main", "threads.c") in frames, frames


def test_a_path_the_loader_cannot_take(tmp_path):
    place = tmp_path / "a b" / "bin"
    place.mkdir(parents=True)
    shutil.copy(COMMAND, place)
    shutil.copy(ROOT / "libgotrace.so", place.parent)
    result = proc.run([place / "gotrace", "true"])
    assert result.returncode == 125 and "takes no path with a space" in result.stderr
    (place.parent / "libgotrace.so").unlink()
    result = proc.run([place / "gotrace", "true"])
    assert result.returncode == 125 and "there is no libgotrace.so in or beside" in result.stderr


@pytest.mark.parametrize("library", ["..", "."])
@pytest.mark.parametrize("name", ["a[b]c", "a*b", "a?", "back\\slash", "a{b,c}~"])
def test_any_other_path(tmp_path, name, library):
    """The directory is no pattern, and the library may be beside it, or in it."""
    place = tmp_path / name / "bin"
    place.mkdir(parents=True)
    shutil.copy(COMMAND, place)
    shutil.copy(ROOT / "libgotrace.so", place / library)
    result = proc.run([place / "gotrace", "-o", tmp_path / "t", *THREADS]).ok()
    assert f"gotrace: {tmp_path}/t: " in result.stderr


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["top", "--help"], ["info", "t"], ["top", "t"]])
def test_full_disk(traced, tmp_path, command):
    """What could not be printed is no success."""
    traced(THREADS).ok().trace.rename(tmp_path / "t")
    with open("/dev/full", "w") as full:
        child = subprocess.run([GOTRACE, *command], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=10)
    assert child.returncode == 1 and child.stderr == "gotrace: standard output: No space left on device\n"


# --- view


def view(argv, check, **options):
    """Starts the viewer, calls check(url), ends it as Ctrl-C does; returns what it wrote to standard error."""
    child = proc.spawn(
        [GOTRACE, "view", "--no-browser", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    url = child.stdout.readline().strip()
    assert re.fullmatch(r"http://[\w.]+:\d+/?", url), url + child.stderr.read()
    check(url)
    child.send_signal(signal.SIGINT)
    stderr = child.communicate(timeout=10)[1]
    assert child.returncode == 0, stderr
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
    with pytest.raises(OSError):  # nothing listens any more
        urllib.request.urlopen(url, timeout=5)
    return stderr


def page(url):
    with urllib.request.urlopen(url + "/trace", timeout=30) as response:
        assert response.status == 200 and b"<html" in response.read().lower()


@pytest.mark.parametrize("format", gotools.some("go1.5", of=["go1.5", "go1.10", "go1.21", "go1.22", "go1.23", "go1.26"]))
def test_view(traced, format):
    trace = traced(THREADS, env={"GOTRACE_FORMAT": format}).ok().trace
    readers = gotools.readers_of(format)
    path = [os.path.dirname(go) for go in readers.values()] + [os.environ["PATH"]]
    stderr = view([trace], page, env={"PATH": ":".join(path)})
    assert f"with {readers[max(readers)]} (Go 1.{max(readers)})" in stderr
    assert "Ctrl-C ends the viewer" in stderr


@pytest.mark.parametrize("version", ["1.26", "1.27"])
@pytest.mark.parametrize("name", ["browser", "xdg-open"])
@pytest.mark.parametrize("options, page", [([], ""), (["--at=1us"], r"/trace\?view=thread#0\.001000:\d+\.\d+")], ids=["pages", "time"])
def test_view_opens_a_browser(traced, tmp_path, version, name, options, page):
    """Once, with a whole URL: of the list of pages, or of the timeline with a time marked, in ms."""
    browser, trace = tmp_path / name, traced(THREADS).ok().trace
    browser.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >>{tmp_path}/opened; kill -INT $PPID\n")
    browser.chmod(0o755)
    desktop = {"BROWSER": "", "DISPLAY": ":0", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env = {"BROWSER": str(browser)} if name == "browser" else desktop
    shown = proc.run([GOTRACE, "view", f"--go={gotools.find(version)}", *options, trace], env=env, timeout=60).ok()
    assert re.fullmatch(rf"http://[\w.]+:\d+{page}\n", shown.stdout), shown
    assert (tmp_path / "opened").read_text() == shown.stdout


def listening(port):
    """The addresses on which some process listens at that port, as the kernel has them; 0: all."""
    rows = [line.split() for kind in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{kind}").read_text().splitlines()]
    return [int(row[1].split(":")[0], 16) for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]


@pytest.mark.parametrize("version", ["1.26", "1.27"])
@pytest.mark.parametrize("host, url, where", [("", "127.0.0.1", 0x0100007F), ("0.0.0.0", "localhost", 0)])
def test_view_listens_where_it_is_told(traced, version, host, url, where):
    """Without a host only on this machine, whatever Go's tool does then. "localhost" stands for every address."""
    trace, found = traced(THREADS).ok().trace, []

    def look(address):
        assert address.startswith(f"http://{url}:")
        found.append(listening(int(address.rsplit(":", 1)[1])))
        page(address)

    view([f"--go={gotools.find(version)}", f"--http={host}:0", trace], look)
    assert found == [[where]]


def test_view_needs_graphviz_for_profiles(traced, tmp_path):
    trace, words = traced(THREADS).ok().trace, "the viewer's profile pages need Graphviz's dot, which is not here"
    for tool in "readlink", "dirname":  # for the script
        (tmp_path / tool).symlink_to(shutil.which(tool))
    for calls in 1, 0:
        stderr = view([f"--go={gotools.find()}", trace], page, env={"PATH": str(tmp_path)})
        assert stderr.count(words) == calls, stderr
        (tmp_path / "dot").touch(mode=0o755)


def test_view_needs_a_go_that_reads_it(traced):
    old = gotools.find("1.22")
    for format, go, needs in [("go1.26", old, "1.26 or later"), ("go1.10", gotools.find("1.23"), "1.10 to 1.22")]:
        trace = traced(THREADS, env={"GOTRACE_FORMAT": format}).ok().trace
        result = gotrace("view", f"--go={go}", trace)
        assert result.returncode == 1
        assert f"is a {format} trace, which Go {needs} reads; here is {go} (1." in result.stderr
    assert f"with {old} (Go 1.22)" in view(["--go", old, trace], page)


def test_view_wrong_use(tmp_path):
    (tmp_path / "text").write_text("hello, world, this is no trace")
    for argv, why in [
        ([tmp_path / "text"], "text: it is not a Go execution trace"),
        ([tmp_path / "none"], "none: No such file"),
        ([], "view needs one trace: gotrace view TRACE"),
    ]:
        result = gotrace("view", *argv)
        assert result.returncode in (1, 2) and why in result.stderr
