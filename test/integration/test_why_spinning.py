"""`gotrace why` of threads that wait on a CPU: single/why/spins.c says how long they did, and what that cost."""

import platform
import re
import shutil

import pytest

from lib import SINGLE
from test_why import findings, page, why

pytestmark = pytest.mark.measured

CHEAP_MS = 30  # on a busy machine a wait may cost less than it takes to tell


def spun(traced, mode, least_ms=0, **env):
    """The trace, and how long threads waited and used a CPU for that, in ms, as they saw it."""
    result = traced([SINGLE / "why/spins", mode], env=env, timeout=100).ok()
    waited, used, looks = map(float, result.stdout.split())
    assert used >= least_ms, (waited, used, looks)
    return result.trace, waited, used


def cost_ms(text):
    """How long threads spun, as a finding says."""
    number, unit = re.search(r": ([\d.]+)(ms|s) on a CPU, \d+ % of what all threads ran\.\n  A mutex or a condition variable ", text).groups()
    return float(number) * {"ms": 1, "s": 1000}[unit]


@pytest.mark.urgent
@pytest.mark.limit(600)
def test_short_yields(traced):
    """A thread that yields until another is ready: no yield takes long, and the page tells where, and what it costs."""
    trace, _, used = spun(traced, "yields", CHEAP_MS)
    text = findings(trace)["busy_waiting"]["text"]
    assert re.match(r"Busy waiting: main calls sched_yield again and again in\n  yield_until \(spins.c:\d+\): ", text), text
    assert 0.5 * used < cost_ms(text) < 1.1 * used, (text, used)
    assert any(re.search(r" spins   yield_until \(spins.c:\d+\)", line) for line in page(trace).splitlines())
    assert not any(c["change"] == "half" and "yield_until" in c["name"] for c in why(trace)["what_if"])


@pytest.mark.urgent
@pytest.mark.limit(600)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="spin_loop.h knows the code of x86-64 only")
@pytest.mark.parametrize(
    "mode, says",
    [
        ("flag", r"Busy waiting: main reads memory again and again in\n  spin_until_set \(spins.c\): "),
        ("exchange", r"Busy waiting: 2 threads read memory again and again in\n  spin_lock \(spins.c\): "),
    ],
)
def test_loops_in_memory(traced, mode, says):
    """CPU samples tell where a thread is, and the program's code that it can only wait there. Without samples nothing is said."""
    trace, _, used = spun(traced, mode, CHEAP_MS, GOTRACE_CPU_HZ="1000")
    text = findings(trace)["busy_waiting"]["text"]
    assert re.match(says, text), text
    assert 0.7 * used < cost_ms(text) < 1.3 * used, (text, used)
    assert "It does not know what threads spin for" in page(trace)
    assert "busy_waiting" not in findings(spun(traced, mode)[0])


@pytest.mark.limit(600)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="spin_loop.h knows the code of x86-64 only")
def test_another_build(traced, tmp_path):
    """Code is read from the file only if that is what ran."""
    program = shutil.copy(SINGLE / "why/spins", tmp_path / "spins")
    trace = traced([program, "flag"], env={"GOTRACE_CPU_HZ": "1000"}, timeout=100).ok().trace
    assert "busy_waiting" in findings(trace)
    shutil.copy(SINGLE / "why/hang", program)
    assert "busy_waiting" not in findings(trace)


@pytest.mark.limit(600)
@pytest.mark.parametrize("mode", ["computes", "gives_way"])
@pytest.mark.parametrize("hz", ["0", "100"])
def test_no_spinning(traced, mode, hz):
    """Threads that compute, also with a yield now and then, do not spin."""
    trace, *_ = spun(traced, mode, **({"GOTRACE_CPU_HZ": hz} if hz != "0" else {}))
    assert "busy_waiting" not in findings(trace) and " spins " not in page(trace)


@pytest.mark.urgent
@pytest.mark.limit(600)
def test_a_look_with_a_short_sleep(traced):
    """A thread that sleeps 50 us between two looks polls. No other thread ever waits for it, and the page does not count such waits."""
    trace, *_ = spun(traced, "backs_off")
    found = findings(trace)
    assert "busy_waiting" not in found and "Other threads waited" not in page(trace)
    assert "in\n  usleep <- back_off_until (spins.c:" in found.get("polling", {"text": ""})["text"], found
