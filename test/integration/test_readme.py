"""What the README tells people to type."""

import re
import shlex
import shutil
import signal
import subprocess

import pytest

from lib import PROGRAMS, ROOT, gotools, proc

pytestmark = pytest.mark.beside

TEXT = (ROOT / "README.md").read_text()
FIRST, OWN = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
GOTRACE = ROOT / "scripts/gotrace"
# PID, FILE and the names of traces stand for what there is then; test_control.py and test_apps do it.
COMMANDS = sorted({command for command in re.findall(r"`gotrace ([^`]*)`", TEXT)})


@pytest.fixture
def checkout(tmp_path):
    """The checkout, with a program of the user's in it."""
    for path in ROOT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    shutil.copy(PROGRAMS / "truth", tmp_path / "app")
    return tmp_path


def commands(block):
    return [line.split("#")[0].strip() for line in block.splitlines()]


def test_the_first_screen():
    """scripts/test is what runs this; the other one installs, builds, traces and shows, also when all is there."""
    assert commands(FIRST) == ["./scripts/demo", "./scripts/test"]
    shown = proc.run([ROOT / "scripts/demo"], cwd=ROOT, timeout=120).ok().stdout
    assert re.search(r"sync +pthread_\w+ <- ", shown) and "scripts/gotrace view" in shown, shown


def test_on_your_own_program(checkout):
    make, record, top, view = commands(OWN)
    for command in (make, record):
        proc.run(["bash", "-ec", command], cwd=checkout, timeout=100).ok()
    gotools.check(checkout / "t.out")
    assert "lock_waiter" in proc.run(["bash", "-ec", top], cwd=checkout).ok().stdout
    viewer = proc.spawn(shlex.split(view) + ["--no-browser"], cwd=checkout, stdout=subprocess.PIPE, text=True)
    try:
        assert viewer.stdout.readline().startswith("http://")
    finally:
        assert proc.stop(viewer, sig=signal.SIGINT) == 0


def test_its_other_way_to_record(checkout):
    (command,) = re.findall(r"# or: (LD_PRELOAD=.*)", OWN)
    proc.run(["bash", "-ec", command], cwd=checkout).ok()
    gotools.check(checkout / "t.out")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_there_is(command):
    """Each word with a dash is in the help of its command."""
    words = shlex.split(command.replace("[", "").replace("]", ""))
    subs = ["view", "info", "top", "sql", "why", "export", "recover", "cut", "convert", "merge", "symbolize", "stacks", "start", "stop", "snapshot"]
    help_of = [words[0], "--help"] if words and words[0] in subs else ["--help"]
    text = proc.run([GOTRACE, *help_of]).ok().stdout
    ours = words[: words.index("--")] if "--" in words else words
    for option in (word.split("=")[0] for word in ours if word.startswith("-")):
        assert re.search(rf"(^|[\s,\[|]){re.escape(option)}\b", text, re.M), (option, text)


def test_the_options_of_the_table():
    """Every switch has a row, in the table of the README and in that of the library, with the same default."""
    rows = dict(re.findall(r"^\| `(GOTRACE\w*)` \| [^|]+ \| ([^|]+) \|", TEXT, re.M))
    options, formats = ((ROOT / name).read_text() for name in ("preload/options.c", "encoder/format.h"))
    options = options.replace("GT_FORMAT_DEFAULT", re.search(r'GT_FORMAT_DEFAULT (".*")', formats)[1])
    known = re.findall(r'^    \{"(GOTRACE\w*)", (?:NULL|"[^"]*"), "([^"]*)"', options, re.M)
    assert rows == {name: f"`{default}`" if default else "none" for name, default in known}


def test_the_table_of_formats():
    """Every format that there is, read by the versions that test_formats.py reads it with."""
    rows = re.findall(r"^\| (`go1\..*?) \| that Go version (to 1\.22|and all newer ones)", TEXT, re.M)
    read = {name: 22 if upto == "to 1.22" else None for names, upto in rows for name in re.findall(r"`(go1\.\d+)`", names)}
    assert read == {name: last for name, (_, last) in gotools.FORMATS.items()}
    known = re.findall(r'^    \{"(go1\.\d+)", ', (ROOT / "encoder/format.c").read_text(), re.M)
    assert list(read) == known


def test_the_signals_that_save_the_flight_recorder():
    (said,) = re.findall(r"- when a signal ends it: (.*?), where", TEXT, re.S)
    assert re.findall(r"SIG\w+", said) == re.findall(r"\{(SIG\w+), (?:true|false)\}", (ROOT / "preload/fatal.c").read_text())
