"""A wait that is over while its thread has no CPU ends when its time was over, whatever generation ends meanwhile."""

import re

import pytest

from lib import PROGRAMS, ROOT, gotools

STARVED = PROGRAMS / "starved"
WAYS = re.findall(r'{"(\w+)", by_\w+}', (ROOT / "test/prog/starved.c").read_text())
WAIT_MS, SLACK_MS = 5, 1


MORE = [{"GOTRACE_FORMAT": "go1.11"}, {"GOTRACE_SCHED": "on"}, {"GOTRACE_RING": "30s"}]


def waits_ms(events):
    """How long the waits of the thread were that has begun in `starve`."""
    (starved,) = [
        e.goid for e in events if e.is_go("NotExist", "Runnable") and e.transition_stack and e.transition_stack[-1].func == "starve"
    ]
    since, waits = None, []
    for e in events:
        if e.goid == starved and e.new == "Waiting":
            since = e.time
        elif e.goid == starved and e.old == "Waiting" and since:
            waits.append((e.time - since) / 1e6)
            since = None
    return waits


@pytest.mark.beside
@pytest.mark.parametrize(
    "way, env",
    [*((way, {}) for way in WAYS), *((way, env) for way in ("nanosleep", "poll") for env in MORE)],  # a wait and a call
    ids=str,
)
def test_a_wait_is_no_longer_than_its_time(traced, way, env):
    result = traced([STARVED, way], env=env).ok()
    gotools.check_all(result.trace)
    waits = waits_ms(gotools.parse(result.trace))
    assert len(waits) >= int(result.stdout) - 1 >= 3
    assert max(waits) <= WAIT_MS + SLACK_MS, sorted(waits)[-5:]
