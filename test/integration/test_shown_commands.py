"""Each command line in README.md, CONTRIBUTING.md, the manual pages and `gotrace --help` is run, as the text shows it.

It runs in a folder that has what the line names: traces, programs, a black box, a process. SUBSTITUTES says which word stands for
which thing. ELSEWHERE has the lines that another test runs, and LEFT_OUT those that no test can run. A new line that is in neither
runs here.
"""

import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

import test_readme
import test_reports
import test_stacks
from lib import LIBC, LIBRARY, PROGRAMS, ROOT, proc

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "scripts/man").glob("*.md"))]
DEADLOCK = test_stacks.DEADLOCK

# Page, command line, and the test that types it.
ELSEWHERE = [
    ("README.md", r"\./scripts/demo", "test_readme.py::test_the_first_screen"),
    ("README.md", r"make|scripts/gotrace (-o t\.out \./app|(why|top|report|view) t\.out)", "test_readme.py::test_on_your_own_program"),
    ("README.md", r"LD_PRELOAD=\S+ GOTRACE_OUTPUT=\S+ \./app", "test_readme.py::test_its_other_way_to_record"),
    ("README.md", r"scripts/gotrace -o t\.out -- build/demo/shop", "test_readme.py::test_the_page_of_why"),
    ("", r"\./scripts/deps (build|package|view)( && .*)?", "test_fresh.py::test_a_new_system"),
    ("README.md", r"(gotrace -- python|python -m gotrace) app\.py", "test_fresh.py::test_a_new_system"),
    ("CONTRIBUTING.md", r"make man", "test_man.py::test_pages_are_clean"),
    ("gotrace-sql.1.md", r"gotrace sql t\.out 'SELECT .*'", "test_sql.py::test_examples_of_the_man_page"),
    ("", r"gotrace symbolize --debuginfod", "test_symbolize_later.py::test_debuginfod"),
    ("", r"gotrace symbolize --perf-map=.*", "test_made.py::test_map_afterwards"),
]

# Command line, and why no test types it.
LEFT_OUT = [
    (r"(\w+=\S+ )?\./scripts/test( .*)?", "runs this test"),
    (r"make( WERROR=1 \w+)?|make format && .*|make lint|\./scripts/deps test", "scripts/test does it before it runs the tests, which need the checkout as it is"),
    (r"(docker|kubectl) .*", "needs images of the reader: test_containers.py has the rules of container engines instead"),
    (r"sudo (systemctl|gotrace) .*", "needs a service of systemd: test_containers.py has such a service's filter instead"),
    (r"for pid in \$\(pgrep .*", "is about all processes of that name on the machine"),
]

# What may be typed here: nothing that changes the checkout or the system.
HARMLESS = r"(\w+=\S+ )*((scripts/)?gotrace|\./app|make help$|python3 -m pytest|sleep)\b(?!.*(\b(sudo|rm|install)\b|[>`]))"

# What a text leaves out when it names a command, and what is typed in its place. The first that matches.
COMPLETE = [
    (r"(.*) --cpu-hz|(gotrace start) --cpu", r"\g<0>=100"),
    (r"(.*) --hold-min", r"\1 --hold-min=1ms"),
    (r"(.*) --task", r"\1 --task=NAME"),
    (r"gotrace export", r"\g<0> --to=flame"),
    (r"gotrace convert", r"\g<0> --format=go1.11"),
]
OPERANDS = [
    (r"gotrace (.* )?--(help|version)", r"\g<0>"),
    (r"gotrace (why|top|info|report|view|sql|symbolize|export)( -\S+)*", r"\g<0> t.out"),
    (r"gotrace (cut|convert|merge)( -\S+)*", r"\g<0> t.out -o made.out"),
    (r"gotrace recover", r"\g<0> t.out.live -o made.out"),
    (r"gotrace (stacks|attach|detach|start|stop|snapshot)( -\S+)*", r"\g<0> PID"),
    (r"gotrace (-\S+ ?(all ?|-o )?)+(\w+\.out)?", r"\g<0> -- ./app"),
]

# What stands for what in a command line.
SUBSTITUTES = [
    (r"\[PROGRAM\|PID\]|\bPROGRAM\b", "./app"),
    (r"(?<![/\d])4711\b|\bPID(\|CORE)?\b|(?<=stacks )1$", "{pid}"),
    (r"\./server( --port 8080)?", "./server locks"),
    (r"\bmemcached\b", "memcached -U 0 -s mc.sock -u $(id -un)"),
    (r"\bpostgres …", "./app"),
    (r"-- NAME", "-- top"),
    (r"--task=NAME \w+\.out", "--task=request tasks.out"),
    (r"/srv/debug|\bDIR\b", "."),
    (r"--from=12\.5s --to=13s", "--from=1ms --to=20ms"),
    (r"\bsleep 10\b", "sleep 0"),
    (r" …", ""),
    (r"BOX \[TRACE\]", "t.out.live"),
    (r"\bTRACE\.\.\.", "t.out mc.out"),
    (r"\bTRACE\b", "t.out"),
    (r"--to=FORMAT", "--to=flame"),
    (r"--format=FORMAT", "--format=go1.11"),
    (r"\[STATEMENT\]", "'SELECT 1'"),
    (r"\[?\bFILE\b\]?", "made.out"),
    (r"python3 (-m pytest .*)", rf"{sys.executable} \1 --collect-only -q"),
]

# What each command prints.
TRUTH = {
    "why": r"^\S+: ([\d.]+[mun]?s.*, \d+ threads?|task \"request\", 5 times)",
    "top": r"^\S+: [\d.]+[mun]?s.*, \d+ threads?",
    "info": r"whole: no part of it is missing",
    "report": r": open it in a browser",
    "stop": r"\.out: .* events in ",
    "stacks": r"process \d+ \(\w+\), \d+ thread",
    "doctor": r"^(ok|missing) ",
    "help": r"usage: gotrace|NAME",
    "jq": r'^".* <- .*"\n\d+$',
}


# --- what the texts show


BEGINS = re.compile(r"(?:\w+=\S+ )*(?:(?:scripts/)?gotrace |\./\w|(?:make|python3?|docker|kubectl|sudo|apt|pip|perf|strace|gdb|kill|sleep|cp|export)\b)")
SPAN = re.compile(r"(?<!`)`((?:\w+=\S+ )*(?:(?:scripts/|python -m )?gotrace |\./scripts/)[^`\n]+)`")


class Example:
    """Command lines that follow each other, each with the lines that the text shows as printed by it."""

    def __init__(self, page):
        self.page, self.shown = page, []

    def add(self, line):
        line, _, other = line.partition(" # or: ")
        self.shown.append((re.sub(r"\s+#\s.*", "", line).strip().removesuffix(" \\"), []))
        return [other] if other else []

    @property
    def commands(self):
        return tuple(command for command, _ in self.shown)


def logical_lines(lines):
    """Lines as a shell takes them: a quoted text and a line that ends with a backslash go on."""
    whole = ""
    for line in lines:
        whole += line
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        try:
            shlex.split(whole, comments=True)
        except ValueError:
            whole += "\n"
            continue
        yield whole
        whole = ""
    assert not whole, whole


def block(page, kind, lines):
    """The examples in a block: what follows `$ `, or each line of a block that begins with a command line."""
    example, others = Example(page), []
    if any(line.startswith("$ ") for line in lines):
        for line in lines:
            if line.startswith("$ "):
                others += example.add(line[2:])
            elif example.shown:
                example.shown[-1][1].append(line)
    else:
        every = kind in ("sh", "bash", "console") or BEGINS.match(lines[0])
        for line in logical_lines(lines) if every else filter(BEGINS.match, lines):
            others += example.add(line) if line else []
    yield example
    yield from (single(page, line) for line in others)


def single(page, line):
    example = Example(page)
    example.add(line)
    return example


def examples():
    """All that the texts show, in every place."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
    for path in PAGES:
        text = path.read_text()
        for kind, body in fence.findall(text):
            if kind in ("", "sh", "bash", "console"):
                yield from block(path.name, kind, body.splitlines())
        for span in SPAN.findall(fence.sub("", text)):
            yield single(path.name, span)
    for verb, operands in re.findall(r'^    {"([a-z]+)", "([^"]*)"', (ROOT / "scripts/tool/launch/main.c").read_text(), re.M):
        yield single("--help", f"gotrace {verb} {operands}")


EXAMPLES = [example for example in examples() if example.shown]


def elsewhere(page, command):
    return next((row for row in ELSEWHERE if row[0] in ("", page) and re.fullmatch(row[1], command, re.S)), None)


def left_out(command):
    return next((row for row in LEFT_OUT if re.fullmatch(row[0], command, re.S)), None)


def is_typed(page, command):
    return not elsewhere(page, command) and not left_out(command)


def as_typed(command):
    """The command line with all that it needs, and with things for words; `{pid}` is a process's number."""
    for table in COMPLETE, OPERANDS:
        for words, whole in table:
            if re.fullmatch(words, command):
                command = re.sub(words, whole, command, count=1)
                break
    for word, thing in SUBSTITUTES:
        command = re.sub(word, thing, command)
    return command


def once(all_examples):
    """Those with a command line to be typed, without those that would type the same and show nothing more."""
    seen = {}
    for example in sorted(all_examples, key=lambda it: not any(output for _, output in it.shown)):
        if any(is_typed(example.page, command) for command in example.commands):
            outputs = seen.setdefault(tuple(map(as_typed, example.commands)), [])
            its = [output for _, output in example.shown]
            if its not in outputs and (any(its) or not outputs):
                outputs.append(its)
                yield example


def test_tables():
    """Each row is about a command line that a text shows, and the test that it names is there."""
    shown = [(example.page, command) for example in EXAMPLES for command in example.commands]
    assert len(shown) > 200
    for row in ELSEWHERE:
        file, test = row[2].split("::")
        assert f"\ndef {test}(" in (ROOT / "test/integration" / file).read_text(), row
        assert row in [elsewhere(*it) for it in shown], f"no page shows {row}"
    for row in LEFT_OUT:
        assert row in [left_out(command) for _, command in shown], f"no page shows {row}"


def test_left_out():
    """What lines that no test types say to gotrace is known to it: the command, and its options."""
    said = [words for example in EXAMPLES for line in filter(left_out, example.commands) for words in re.findall(r"\bgotrace ([a-z]+)\b([^;|]*)", line)]
    assert len(said) >= 5, said
    for verb, rest in said:
        page = proc.run([ROOT / "scripts/gotrace", verb, "--help"]).ok().stdout
        assert set(re.findall(r"(?<!\S)-{1,2}[a-z][a-z-]*", rest)) <= set(re.findall(r"-{1,2}[a-z][a-z-]*", page)), f"gotrace {verb}{rest}"


# --- what they name


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """Files that each folder gets a copy of: programs, and the traces of two."""
    at = tmp_path_factory.mktemp("things")
    for name, program in {"incidents": "incidents", "app": "truth", "server": "attached"}.items():
        shutil.copy(PROGRAMS / program, at / name)
    proc.run(["strip", "--strip-debug", at / "app"]).ok()  # as the page of gotrace doctor shows it
    for name in "prog", "top", "4711":
        shutil.copy(at / "app", at / name)
    (at / "app.py").write_text("import threading\nthreading.Thread(target=print).start()\n")
    gotrace = ROOT / "scripts/gotrace"
    proc.run([gotrace, "-q", "-o", at / "t.out", "--sched", "--cpu-hz=1000", "--", at / "incidents", "convoy", "100"]).ok()
    proc.run([gotrace, "-q", "-o", at / "tasks.out", "--", PROGRAMS / "annotations"]).ok()
    return at


class Process:
    """A program that runs until its standard input ends."""

    def __init__(self, argv, folder, env=None):
        pipe = subprocess.PIPE
        self.child = proc.spawn(argv, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.child.pid
        self.socket = folder / "mc.sock" if "memcached" in str(argv) else None
        if self.socket:
            proc.until(self.socket.exists, child=self.child)
        else:
            assert self.child.stdout.readline() == "ready\n", argv

    def end(self):
        if self.socket:
            assert proc.stop(self.child) == 0
        elif self.child.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
            self.child.communicate(timeout=30)
            assert self.child.returncode == 0, self.child.args
        proc.kill_group(self.child)

    def kill(self):
        proc.kill_group(self.child)


class Folder:
    """A folder with what the example's commands name, in which they are typed one after another."""

    def __init__(self, path, things, example):
        self.path, self.things, self.page = path, things, example.page
        self.process = None
        text = "\n".join(map(as_typed, example.commands))
        made = re.findall(r"(?:-o |_OUTPUT=|snapshot \S+ )(\S+)", text)
        for thing in things.iterdir():
            shutil.copy(thing, path)
        for name in set(re.findall(r"(?<![%\w.])\w+\.out\b", text)) - {"tasks.out", *made}:
            shutil.copy(things / "t.out", path / name)
        for name in made:
            (path / name).unlink(missing_ok=True)
        (path / "libgotrace.so").symlink_to(LIBRARY)
        if "t.out.live" in text and "--live" not in text:
            Process(["gotrace", "--live=on", "-o", "t.out", "--", "./server", "locks"], path).kill()

    def pid(self, command):
        """The process that the command is about. It is started unless an earlier command has done so."""
        if not self.process:
            self.process = self.start(verb_of(command))
        return self.process.pid

    def start(self, verb):
        if verb == "stacks":
            process = Process(["sh", "-c", "echo ready; exec ./incidents deadlock"], self.path)
            proc.until(lambda: proc.run(["gotrace", "stacks", process.pid]).returncode == DEADLOCK, child=process.child)
            test_stacks.await_states(process.pid, "S")  # threads that the command stopped are back in their waits
            return process
        library = {"LD_PRELOAD": LIBRARY, "GOTRACE_OUTPUT": "process.out"}
        switch = {"start": {"GOTRACE_START": "manual"}, "snapshot": {"GOTRACE_RING": "30s"}}.get(verb, {})
        process = Process(["./server", "locks"], self.path, library | switch if verb in ("start", "stop", "snapshot") else None)
        if verb == "doctor":
            os.kill(process.pid, signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
        if verb == "detach":
            proc.run(["gotrace", "attach", process.pid], cwd=self.path).ok()
        return process

    def type(self, command, shown=()):
        """Runs it, and compares what it prints and makes with what is true."""
        assert re.match(HARMLESS, command), f"{command}: give it a row in ELSEWHERE or LEFT_OUT, or let HARMLESS allow it"
        command = as_typed(command)
        if shown == ["Killed"]:
            command = command.replace("./app", "./server locks")
        if "{pid}" in command:
            command = command.replace("{pid}", str(self.pid(command)))
        if verb_of(command) == "view":
            return test_readme.shows(command, self.path)
        if re.search(r"\./server|memcached", command):
            return self.serve(command, shown)
        result = proc.run(["bash", "-ec", command], cwd=ROOT if self.page == "CONTRIBUTING.md" else self.path)
        printed = result.stdout + result.stderr
        verb = verb_of(command)
        status = {"doctor": 1 if "\nmissing " in f"\n{printed}" else 0, "stacks": DEADLOCK if "DEADLOCK" in printed else 0}.get(verb, 0)
        assert result.returncode == status, str(result)
        assert re.search(TRUTH.get(verb, ""), printed, re.M), str(result)
        self.check_shown(verb, shown, printed)
        self.check_made(command)

    def serve(self, command, shown):
        """Runs a program that does not end by itself: until the next command, or with `&` until the example's end."""
        process = Process(["bash", "-ec", f"exec env {command.removesuffix('&')}"], self.path)
        if command.endswith("&"):
            self.process = process
        elif shown == ["Killed"]:
            process.kill()
        else:
            process.end()
            self.check_made(command)

    def check_shown(self, verb, shown, printed):
        """Heads of tables, names of fields and of checks, and lines in which nothing depends on this system."""
        text, lines = "\n".join(shown), printed.splitlines()
        if verb in ("top", "info"):
            assert test_reports.heads(text) <= set(lines), printed
        if verb in ("info", "doctor"):
            names = re.compile(r"^(?:  |(?:ok|limited|missing) +)(\w+)  ", re.M)
            assert set(names.findall(text)) <= set(names.findall(printed)), printed
        if verb == "report":
            assert set(shown) <= set(lines), printed
        if verb == "stacks":
            assert {line for line in shown if line.startswith("DEADLOCK")} <= set(lines), printed
        if verb == "doctor" and " tracing " in text:
            assert text.replace("4711", str(self.process and self.process.pid)).split() == printed.split()[: len(text.split())], printed

    def check_made(self, command):
        """The file that the command says it makes is a trace that can be read."""
        for name in re.findall(r"(?:-o |snapshot \d+ |GOTRACE_OUTPUT=)([^%\s]+\.out)", command):
            if verb_of(command) != "attach":
                proc.run(["gotrace", "info", "--check", name], cwd=self.path).ok()

    def end(self):
        if self.process:
            self.process.kill() if "incidents" in str(self.process.child.args) else self.process.end()


def verb_of(command):
    """The word after `gotrace`; help where --help ends the line, jq where that has the output."""
    found = re.match(r"(?:scripts/)?gotrace ([a-z]+)\b", command)
    return "help" if command.endswith("--help") else "jq" if "| jq" in command else found[1] if found else None


def needs(example):
    """The programs that its commands need and that may not be there."""
    return [word for word in ("jq", "memcached") if any(re.search(rf"\b{word}\b", command) for command in example.commands)]


@pytest.fixture
def typed(monkeypatch, things, tmp_path):
    """Makes the folder of an example; `gotrace` is the command that make has built."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{ROOT / 'scripts'}:{os.environ['PATH']}")
    folders = []

    def make(example):
        folders.append(Folder(tmp_path, things, example))
        return folders[-1]

    yield make
    for folder in folders:
        folder.end()


@pytest.mark.parametrize(
    "example",
    [pytest.param(it, marks=pytest.mark.needs(*needs(it)), id=f"{it.page.removesuffix('.md')}: {it.commands[0][:60]}") for it in once(EXAMPLES)],
)
def test_commands(typed, example):
    folder = typed(example)
    if any(verb_of(command) in ("attach", "detach") for command in example.commands):
        if platform.machine() != "x86_64" or LIBC < 34:
            pytest.skip("attaching is there for x86-64 and glibc 2.34 or later only")
    for command, shown in example.shown:
        if is_typed(example.page, command):
            folder.type(command, shown)


def test_what_reports_suggest(typed):
    """The exit line's next command, and the commands that `gotrace why` then says to type."""
    example = Example("gotrace why")
    example.add("gotrace -o t.out -- ./incidents convoy 100")
    folder = typed(example)
    said = proc.run(["bash", "-c", example.commands[0]], cwd=folder.path).ok().stderr
    page = proc.run(["bash", "-ec", re.search(r"; next: (.*)", said)[1]], cwd=folder.path).ok().stdout
    lines = [re.split(r" {2,}|: ", line)[0] for line in re.findall(r"^ +(gotrace .*)", page, re.M)]
    commands = {command.removesuffix(" again") for line in lines for command in re.split(r"; |, then ", line)}
    assert f"gotrace view {folder.path}/t.out" in commands and len(commands) >= 3, page
    for command in sorted(commands):
        folder.type(command.replace(" …", ""))
