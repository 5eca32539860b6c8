"""`gotrace why` of programs that wait until another process has read what they write: single/why/backed_up.c."""

import re

import pytest

from lib import SINGLE, proc
from lib.reports import GOTRACE
from test_why import findings, page, why

pytestmark = pytest.mark.measured


@pytest.mark.parametrize("mode, work", [("blocks", "usleep <- make_block"), ("lines", "usleep <- do_work")])
def test_work_between_writes(traced, mode, work):
    """Done sooner it saves nothing: the other end of the pipe is the slow one. Nor do threads that work between them poll. The page says how to record that end."""
    trace = traced([SINGLE / "why/backed_up", mode]).ok().trace
    changes, found, shown = [change["name"] for change in why(trace)["what_if"]], list(findings(trace)), page(trace)
    assert changes and not any(change.startswith(work) for change in changes) and "polling" not in found, (changes, found, shown)
    hint = r"Nobody is known to end the \d+ waits in (write|fprintf|fflush) <- [^()]*\(backed_up.c:\d+\)[^()]* To know, record with gotrace -f -s all "
    assert re.search(hint, " ".join(shown.split())), (changes, found, shown)


@pytest.mark.long
def test_the_work_saves_nothing():
    """What the page no longer promises: as long, to a tenth of what the work takes, with half of the work."""
    took = [min(float(proc.run([SINGLE / "why/backed_up", mode]).ok().stdout) for _ in range(3)) for mode in ("blocks", "half")]
    assert took[0] - took[1] < 0.1 * 120, took


def test_the_other_end(tmp_path):
    """With it in the trace, what the child does is on the path, and comes first."""
    trace = tmp_path / "both.out"
    proc.run([GOTRACE, "-f", "-s", "all", "-o", trace, "--", SINGLE / "why/backed_up", "blocks"]).ok()
    row = why(trace)["path"]["rows"][0]
    assert (row["what"], row["function"]) == ("usleep", "read_slowly") and row["ns"] > 0.9 * 120 * 3e6, row
