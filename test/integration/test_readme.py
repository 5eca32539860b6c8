"""What the README tells people to type, and what it shows of that."""

import pathlib
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from lib import PROGRAMS, ROOT, gotools, proc

TEXT = (ROOT / "README.md").read_text()
FIRST, OWN = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
INSTALL = dict(re.findall(r"^\| (.+?)(?:,.*?)? \| `(\./scripts/deps [^`]*)`", TEXT, re.M))  # each way, and its line
PYTHON = re.findall(r"`([^`]*app\.py)`", TEXT)
GOTRACE = ROOT / "scripts/gotrace"
SHOWN = [ROOT / "README.md", *(ROOT / f"scripts/man/gotrace-{name}.md" for name in ("why.1", "top.1", "tutorial.7"))]


@pytest.fixture
def checkout(tmp_path):
    """The checkout, with a program of the user's in it."""
    for path in ROOT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    shutil.copy(PROGRAMS / "truth", tmp_path / "app")
    return tmp_path


def commands(block):
    return [line.split("#")[0].strip() for line in block.splitlines()]


def shows(view, cwd):
    """The command `gotrace view` serves the trace until it is interrupted."""
    viewer = proc.spawn(shlex.split(view) + ["--no-browser"], cwd=cwd, stdout=subprocess.PIPE, text=True)
    try:
        assert viewer.stdout.readline().startswith("http://")
    finally:
        assert proc.stop(viewer, sig=signal.SIGINT) == 0


def check_demo(shown):
    """It names the fault's function and line, predicts what mending gives, and measures it. Returns these times in ms."""
    assert "* Lock held across I/O: cache_lock, taken in price_of, is held during" in shown and "read <- ask_for_price (shop.c:" in shown, shown
    assert "<- ask_service (pages.py:" in shown, shown
    times = re.search(r"^ +(\d+) ms +before\n +(\d+) ms +predicted.*: if .*cache_lock.*\n +(\d+) ms +measured", shown, re.M)
    return map(int, times.groups())


def next_commands(shown):
    """What the demo says to type next."""
    return [re.split(r" {2,}", line.strip())[0] for line in shown.split("\nNext:\n")[1].splitlines()]


@pytest.mark.measured
@pytest.mark.long
def test_the_first_screen():
    """scripts/test is what runs this; the other one installs, builds, traces and shows, also when all is there."""
    assert commands(FIRST) == ["./scripts/demo", "./scripts/test"]
    shown = proc.run([ROOT / "scripts/demo"], cwd=ROOT, timeout=120).ok().stdout
    before, predicted, measured = check_demo(shown)
    assert before > 2 * measured and predicted < 0.6 * before, shown  # four workers: a quarter at best
    why, holders, view = next_commands(shown)
    assert "\nCritical path" in proc.run(["bash", "-ec", why], cwd=ROOT).ok().stdout
    assert "cache_lock" in proc.run(["bash", "-ec", holders], cwd=ROOT).ok().stdout
    shows(view, ROOT)
    page = re.search(r"to open in a browser: (.*)", shown)[1]
    assert "cache_lock" in pathlib.Path(page).read_text()


def test_on_your_own_program(checkout):
    make, record, why, view = commands(OWN)
    for command in (make, record):
        proc.run(["bash", "-ec", command], cwd=checkout, timeout=100).ok()
    gotools.check(checkout / "t.out")
    assert "\nCritical path" in proc.run(["bash", "-ec", why], cwd=checkout).ok().stdout
    shows(view, checkout)


def test_its_other_way_to_record(checkout):
    (command,) = re.findall(r"# or: (LD_PRELOAD=.*)", OWN)
    proc.run(["bash", "-ec", command], cwd=checkout).ok()
    gotools.check(checkout / "t.out")


def test_it_is_short():
    """A newcomer reads it in five minutes; long texts have a page."""
    assert len((ROOT / "README.md").read_bytes()) <= 15 * 1024


@pytest.mark.alone
@pytest.mark.measured  # under load a replay may be too inexact to print the table
def test_the_page_of_why(tmp_path):
    """What it shows of `gotrace why` has the parts of a page, in their order, under the heads that these have."""
    (shown,) = re.findall(r"^\$ scripts/gotrace why t\.out\n(.*?)^```", TEXT, re.M | re.S)
    proc.run(["cc", "-std=gnu11", "-g", "-O2", "-pthread", ROOT / "scripts/example/shop.c", "-o", tmp_path / "shop"]).ok()
    proc.run([GOTRACE, "-q", "-o", tmp_path / "t.out", tmp_path / "shop"], cwd=tmp_path).ok()
    page = proc.run([GOTRACE, "why", "t.out"], cwd=tmp_path).ok().stdout
    page = re.sub(r"(^What if: .*) takes (?:only )?(.*?),?$", r"\1 takes \2", page, flags=re.M)  # as of a replay that is exact
    heads = [line for line in shown.splitlines() if re.match(r"(Critical path|What if)\b| +time ", line)]
    assert len(heads) == 4, shown
    at = [re.sub(r"\d[\w.]*", "N", page).index(re.sub(r"\d[\w.]*", "N", head) + "\n") for head in heads if not head.startswith(" ")]
    assert at == sorted(at)
    assert all(f"\n{head}\n" in page for head in heads if head.startswith(" ")), page


@pytest.mark.parametrize("path", SHOWN, ids=[path.name for path in SHOWN])
def test_lines_of_the_server_with_a_fault(path):
    """A call that a report shows is in that line of test/prog/incidents.c or example/shop.c, and in that function."""
    calls = re.findall(r"(\w+) <- (\w+) \((incidents|shop)\.c:(\d+)\)", path.read_text())
    assert calls
    for call, function, program, line in calls:
        (file,) = (ROOT / place / f"{program}.c" for place in ("test/prog", "scripts/example") if (ROOT / place / f"{program}.c").exists())
        source = file.read_text().splitlines()
        assert f"{call}(" in source[int(line) - 1], (call, program, line)
        begin = max(i for i, text in enumerate(source[: int(line)]) if re.match(r"\w.*\(.*\)$", text))
        assert f"{function}(" in source[begin], (function, program, line)
