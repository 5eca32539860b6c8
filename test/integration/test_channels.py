"""Who ends the waits of those that read from pipes, sockets and eventfds, as `gotrace merge` tells it with
GOTRACE_SYSCALLS=all, against what the programs know themselves (test/prog/channels.c)."""

import collections
import dataclasses

import pytest

from lib import PROGRAMS, ROOT, SINGLE, gotools, proc
from lib.spans import check_readers

pytestmark = pytest.mark.limit(300)

GOTRACE = ROOT / "build/gotrace"
PROGRAM = PROGRAMS / "channels"
ROUNDS = 200
READS, WRITES = {"read", "recv", "epoll_wait"}, {"write", "send"}  # of them one in each round can wait
FORMATS = gotools.some(of=["go1.21", "go1.23", "go1.26"])
SURE = 30_000  # ns from the program's look at its clock to when its call has begun, at most, mostly
BOTH = 1001  # what was read, when it was of both writers
KINDS = ["pipe", "fifo", "socketpair", "tcp", "eventfd"]
SURVIVING = ["pipe", "fifo", "tcp"]  # kinds of which a descriptor is known after exec, too


@dataclasses.dataclass
class Wait:
    call: str
    ender: str  # what it says it is: "writer"; None: no other one


def waits_of(events, who, calls=READS):
    """All waits of that one in such calls, in their order."""
    names = {e.g: e.fields["Message"] for e in events if e.kind == "Log" and e.fields["Category"] == "who"}
    (its,) = (g for g, name in names.items() if name == who)
    begun = next(i for i, e in enumerate(events) if e.kind == "Log" and e.fields["Message"] == who)
    found = []
    for e in events[begun:]:
        if e.goid != its:
            continue
        if e.is_go("Running", "Waiting"):
            leaf = e.stack or e.transition_stack
            found.append(Wait(leaf[0].func if leaf else "", None))
        elif e.is_go("Waiting", "Runnable") and found:
            found[-1].ender = names.get(e.g) if e.g != its else None
    return [wait for wait in found if wait.call in calls]


@pytest.fixture
def record(tmp_path):
    """Runs it, and puts together what its processes have left, but for those that are to be left out."""

    def run(kind, how, format, rounds=ROUNDS):
        env = {"GOTRACE_FORMAT": format, "GOTRACE_SYSCALLS": "all", "GOTRACE_CHILDREN": "all", "GOTRACE_QUIET": "1"}
        env = proc.traced_env(tmp_path / "%p.out", env)
        for old in tmp_path.glob("*.out"):
            old.unlink()
        said = proc.run([PROGRAM, kind, how, rounds], env=env, timeout=120).ok().stdout
        lines = [list(map(int, line.split()[1:])) for line in said.splitlines()]
        assert len(lines) == rounds
        left_out = {str(second) for _, _, second, *_ in lines} if "o" in how else {}
        traces = [trace for trace in tmp_path.glob("*.out") if trace.stem not in left_out]
        merged = tmp_path / "merged"
        proc.run([GOTRACE, "merge", *traces, "-o", merged]).ok()
        check_readers(format, merged)
        return [got for *_, got, _ in lines], [ns for *_, ns in lines], gotools.parse(merged)

    return run


def test_kinds():
    """The program lists the kinds that the tests here are for."""
    listed = proc.run([PROGRAM]).ok().stdout
    assert listed == "".join(f"{kind} {'survives' if kind in SURVIVING else '-'}\n" for kind in KINDS)


def enders(waits):
    return collections.Counter(wait.ender for wait in waits)


@pytest.mark.measured
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("how", ["-", "e", "t", "te"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_writes_when_the_reader_sleeps(record, kind, how, format):
    got, _, events = record(kind, how, format)
    waits = waits_of(events, "reader")
    polls = [wait for wait in waits if (wait.call == "epoll_wait") == ("e" in how)]
    assert got == [1] * ROUNDS and len(polls) == ROUNDS
    told = enders(waits)
    assert set(told) <= {"writer", None} and enders(polls)["writer"] >= 0.95 * ROUNDS, told
    assert told["writer"] <= ROUNDS, "not the call that reads, too"


@pytest.mark.measured
@pytest.mark.parametrize("kind", SURVIVING)
def test_another_program(record, kind):
    *_, events = record(kind, "x", "go1.23")
    told = enders(waits_of(events, "reader"))
    assert set(told) <= {"writer", None} and told["writer"] >= 0.95 * ROUNDS, told


@pytest.mark.measured
@pytest.mark.parametrize("kind", KINDS)
def test_answers(record, kind):
    """Whoever waits for the other one, it was that; where an answer was quick there may have been no wait."""
    _, leads, events = record(kind, "p", "go1.23")
    for who, other in (("reader", "writer"), ("writer", "reader")):
        told = enders(waits_of(events, who))
        assert sum(told.values()) == ROUNDS and set(told) <= {other, None}, (who, told)
    waited = [wait for wait, ns in zip(waits_of(events, "writer"), leads) if ns > SURE]
    assert waited and enders(waited)["reader"] >= 0.95 * len(waited), enders(waited)


def unclear(record, kind, how):
    """How often the reader found what both had written. A read of that may have waited for either; a poll ended before, and
    where the second wrote after that, it was the first."""
    got, _, events = record(kind, how, "go1.23")
    waits = iter(waits_of(events, "reader"))
    for value in got:
        wait = next(waits)
        polled = wait.call == "epoll_wait"
        if polled:
            next(waits)
        if value == BOTH:
            assert wait.ender in ((None, "writer", "second") if polled else (None,))
        else:
            assert wait.ender in (None, "second" if value == 1000 else "writer")
            next(waits)
    assert not list(waits)
    return got.count(BOTH)


two_writers = pytest.mark.parametrize("kind, how", [(kind, how) for kind in KINDS for how in ("2", "2e", "2t")])


@two_writers
def test_two_writers(record, kind, how):
    unclear(record, kind, how)


@pytest.mark.measured
@two_writers
def test_two_writers_at_once(record, kind, how):
    """The reader finds what both have written, at least once."""
    assert unclear(record, kind, how)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "eventfd"])  # of which a read leaves nothing
@pytest.mark.parametrize("how", ["l", "lt"])
def test_what_was_left(record, kind, how):
    """No read has to wait, though somebody writes just then."""
    *_, events = record(kind, how, "go1.23")
    assert enders(waits_of(events, "reader")) == {None: ROUNDS}
    assert enders(waits_of(events, "writer", WRITES)) == {None: ROUNDS + 1}, "there was room, too"


@pytest.mark.measured
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("how", ["f", "ft"])
@pytest.mark.parametrize("kind", ["pipe", "fifo"])
def test_who_makes_room(record, kind, how, format):
    *_, events = record(kind, how, format)
    told = enders(waits_of(events, "writer", WRITES))
    assert set(told) <= {"reader", None} and told["reader"] >= 0.95 * ROUNDS and told[None] >= 1, told
    assert set(enders(waits_of(events, "reader"))) <= {"writer", None}


@pytest.mark.parametrize("how", ["o", "oe"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_is_not_there(record, kind, how):
    got, _, events = record(kind, how, "go1.23")
    waits = [wait for wait in waits_of(events, "reader") if (wait.call == "epoll_wait") == ("e" in how)]
    assert len(waits) == ROUNDS and set(got) == {1, 1000}
    for wait, value in zip(waits, got):
        assert wait.ender in ((None,) if value == 1000 else (None, "writer"))


def test_what_a_child_of_vfork_does_with_its_descriptors_is_nothing_to_its_parent(tmp_path):
    program = SINGLE / "channels/vforks"
    result = proc.traced([program], tmp_path / "t.out", env={"GOTRACE_SYSCALLS": "all"}).ok()
    texts = [(e.fields["Category"], e.fields["Message"]) for e in gotools.parse(result.trace) if e.kind == "Log"]
    names = [category.split(":")[-1] for category, message in texts if message.startswith("wrote")]
    assert names[-5:] == [result.stdout.strip()] * 5, texts
