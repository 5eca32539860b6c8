"""The pictures of `gotrace report`, point by point, of a trace whose every moment is known; and its texts in each window and theme:
none lies on another one, and each is readable."""

import base64
import itertools
import json
import pathlib

import pytest

from lib import PROGRAMS, ROOT, SINGLE, proc, wire

pytestmark = [pytest.mark.needs("chromium-headless-shell|chromium"), pytest.mark.limit(240)]

HERE = pathlib.Path(__file__).parent
GOTRACE = ROOT / "build/gotrace"
LOOKS = ["wide-light", "wide-dark", "narrow-light", "narrow-dark"]
MS = 1_000_000

# --- the trace

MAIN, FIRST, SECOND = range(3)  # rows of the picture
END = 250  # ms

# What each thread does until that ms; and from whom to whom the critical path goes, and when.
DOES = {
    MAIN: [(0, "running", 10), (10, "sync", 200), (200, "running", END)],
    FIRST: [(10, "running", 40), (40, "sleep", 60), (60, "running", 100)],
    SECOND: [(10, "running", 20), (20, "sync", 90), (90, "running", 140), (140, "network", 170), (170, "running", 200)],
}
PATH = [(0, MAIN, 10), (10, FIRST, 90), (90, SECOND, 200), (200, MAIN, END)]
HOPS = [(10, MAIN, FIRST), (90, FIRST, SECOND), (200, SECOND, MAIN)]

STRINGS = {name: i for i, name in enumerate(["sync", "sleep", "network", "main", "first", "second", "join", "pause", "lock", "read", "t.c"], 1)}
STACKS = {name: i for i, name in enumerate(["main", "first", "second", "join", "pause", "lock", "read"], 1)}
RUNNING = 2  # status of a goroutine; of a P it is 1


def item(name, *args, data=b""):
    return wire.Item(wire.V2_TYPE[name], list(args), data)


def batch_of(thread, events):
    """(ms, name, arguments …): times become those since the event before."""
    items, before = [], 0
    for ms, name, *args in events:
        items.append(item(name, (ms - before) * MS, *args))
        before = ms
    return wire.Batch(1, thread, MS, "", items)


def block(ms, kind, at):
    return (ms, "GoBlock", STRINGS[kind], STACKS[at])


def events():
    """Threads 101 to 103 with goroutines 1 to 3 on Ps 0 to 2."""
    main = [
        (0, "ProcStatus", 0, 1), (0, "GoStatus", 1, 101, RUNNING),
        (10, "GoCreate", 2, STACKS["first"], STACKS["main"]), (10, "GoCreate", 3, STACKS["second"], STACKS["main"]),
        block(10, "sync", "join"), (200, "GoStart", 1, 2), (END, "GoDestroy"),
    ]
    first = [
        (10, "ProcStatus", 1, 1), (10, "GoStart", 2, 1), block(40, "sleep", "pause"), (60, "GoUnblock", 2, 2, 0), (60, "GoStart", 2, 3),
        (90, "GoUnblock", 3, 2, STACKS["first"]), (100, "GoDestroy"),
    ]
    second = [
        (10, "ProcStatus", 2, 1), (10, "GoStart", 3, 1), block(20, "sync", "lock"), (90, "GoStart", 3, 3),
        block(140, "network", "read"), (170, "GoUnblock", 3, 4, 0), (170, "GoStart", 3, 5),
        (200, "GoUnblock", 1, 1, STACKS["second"]), (200, "GoDestroy"),
    ]
    return {101: main, 102: first, 103: second}


def known_trace():
    batches = [batch_of(thread, its) for thread, its in events().items()]
    frames = {name: [4096 * i, STRINGS[name], STRINGS["t.c"], i] for name, i in STACKS.items()}
    stacks = [item("Stack", i, 1, *frames[name]) for name, i in STACKS.items()]
    strings = [item("String", i, data=name.encode()) for name, i in STRINGS.items()]
    batches += [wire.Batch(1, 0, MS, "Stacks", stacks), wire.Batch(1, 0, MS, "Strings", strings)]
    frequency = wire.Batch(1, 0, MS, "Frequency", [item("Frequency", 1000 * MS)])
    return wire.write_v2(b"go 1.23 trace\0\0\0", [*batches, frequency])


# --- the pictures

AXIS, ROW, BAR = 22, 22, 14  # of the canvas, in pixels
UNDER = (ROW + BAR) / 2 + 1.5  # the critical path is a line so far below the begin of a row


def drawn(trace, points=()):
    page, seen = trace.with_suffix(".html"), trace.with_suffix(".json")
    proc.run([GOTRACE, "report", "-o", page, trace], timeout=100).ok()
    proc.run(["node", "drawn.js", page, seen, json.dumps(list(points))], cwd=HERE, timeout=110).ok()
    return json.loads(seen.read_text())


def rgb(colour):
    digits = colour.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    return tuple(bytes.fromhex(digits))


class Picture:
    """The canvas. Its first column with a colour in the row of the main thread, which runs from the beginning on, is time 0."""

    def __init__(self, look):
        self.colours = {name: rgb(colour) for name, colour in look["colours"].items()}
        self.width, self.pixels = look["canvas"]["width"], base64.b64decode(look["canvas"]["pixels"])
        self.left = next(x for x in range(self.width) if self.at(x, AXIS + 5) == self.colours["running"])

    def at(self, x, y):
        """None: nothing is drawn there. A point where something is drawn in part is as it looks before the background."""
        i = 4 * (int(y) * self.width + int(x))
        *colour, alpha = self.pixels[i : i + 4]
        return None if not alpha else tuple(round((c * alpha + b * (255 - alpha)) / 255) for c, b in zip(colour, self.colours["back"]))

    def x(self, ms):
        return self.left + ms * (self.width - self.left) / END

    def bar(self, row, ms):
        """Near the bar's upper edge, where no letter reaches."""
        return self.at(self.x(ms), AXIS + ROW * row + 5)

    def is_line(self, x, y):
        """Whether a column at x has the text's colour. A line between two columns is half in each; the axis has paler ones."""
        near = [self.at(x + by, y) or self.colours["back"] for by in (-1, 0, 1)]
        distance = lambda one: sum(abs(a - b) for a, b in zip(one, self.colours["back"]))
        return any(distance(one) > 0.38 * distance(self.colours["fore"]) for one in near)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    trace = tmp_path_factory.mktemp("drawn") / "t.out"
    trace.write_bytes(known_trace())
    assert "takes all of it" in proc.run([GOTRACE, "info", "--check", trace]).ok().stdout
    # Three threads at most: half a thread, one and a half, and two and a half above the ground.
    return drawn(trace, [(ms / END, 1 - threads / 3) for ms in (15, 30, 120, 155, 225) for threads in (0.5, 1.5, 2.5)])


@pytest.mark.parametrize("look", LOOKS)
def test_each_bar_has_its_colour_at_its_time(known, look):
    picture = Picture(known[look])
    edge = 2.5 * END / (picture.width - picture.left)  # ms of so many pixels
    for row, spans in DOES.items():
        for begin, kind, end in spans:
            moments = [begin + edge, (begin + end) / 2, end - edge]
            assert [picture.bar(row, ms) for ms in moments] == 3 * [picture.colours[kind]], (row, begin, kind)
    assert picture.bar(FIRST, 5) is None and picture.bar(FIRST, 110) is None and picture.bar(SECOND, 210) is None


@pytest.mark.parametrize("look", LOOKS)
def test_the_path_and_its_arrows(known, look):
    picture = Picture(known[look])
    for begin, its, end in PATH:
        for row in DOES:
            lines = picture.is_line(picture.x((begin + end) / 2), AXIS + ROW * row + UNDER)
            assert lines == (row == its), (begin, row)
    gaps = {row: AXIS + ROW * row + 1.5 for row in (FIRST, SECOND)}  # above the bar of that row, and below the line before it
    for ms in (10, 50, 90, 150, 200):
        crossed = {row for at, one, other in HOPS if at == ms for row in range(min(one, other) + 1, max(one, other) + 1)}
        assert {row for row, y in gaps.items() if picture.is_line(picture.x(ms), y)} == crossed, ms


@pytest.mark.parametrize("look", LOOKS)
def test_how_many_did_what(known, look):
    """At 15 ms two threads run, at 30 ms one, at 120 ms one, at 155 ms none, at 225 ms only one is there."""
    found = [known[look]["bands"][i : i + 3] for i in range(0, 15, 3)]
    assert [sum(name == "on a CPU" for name in names) for names in found] == [2, 1, 1, 0, 1], found
    assert [sum(name != "" for name in names) for names in found] == [3, 3, 2, 2, 1], found


# --- its texts


def luminance(colour):
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (n / 255 for n in colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    less, more = sorted((luminance(one), luminance(other)))
    return (more + 0.05) / (less + 0.05)


def overlap(one, other):
    """Whether boxes have more in common than an edge."""
    across = min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"])
    down = min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"])
    return across > 1 and down > 3


def check_texts(look):
    texts = look["texts"]
    assert len(texts) > 50 and all(text["selectable"] for text in texts)
    pale = [text for text in texts if contrast(text["colour"], text["behind"]) < 4.5]
    assert not pale
    boxes = sorted(((box["y"], i, box) for i, text in enumerate(texts) for box in text["boxes"]), key=lambda it: it[:2])
    for n, (_, i, one) in enumerate(boxes):
        for y, j, other in itertools.islice(boxes, n + 1, None):
            if y >= one["y"] + one["height"]:
                break
            assert i == j or not overlap(one, other), (texts[i], texts[j])


def check_labels(look):
    """Those in the canvas: each is inside, on no other one, and readable on the bar under it."""
    picture, labels = Picture(look), look["labels"]
    assert len(labels) > 5
    for label in labels:
        assert 0 <= label["x"] and label["x"] + label["width"] <= picture.width + 0.5, label
        middle = label["y"] + label["height"] / 2
        on_bar = middle > AXIS and label["x"] >= picture.left
        behind = picture.at(label["x"], AXIS + ROW * int((middle - AXIS) / ROW) + 5) if on_bar else picture.colours["back"]
        assert contrast(rgb(label["colour"]), behind) >= 4.5, (label, behind)
    for one, other in itertools.combinations(labels, 2):
        assert not overlap(one, other), (one, other)


@pytest.mark.parametrize("look", LOOKS)
def test_texts_of_a_known_trace(known, look):
    check_texts(known[look])
    check_labels(known[look])


@pytest.mark.parametrize("argv", [[PROGRAMS / "incidents", "fsync"], [SINGLE / "report/crowd", 60]], ids=["locks", "threads"])
def test_texts_of_programs(tmp_path, argv):
    seen = drawn(proc.traced(argv, tmp_path / "t.out", env={"GOTRACE_CPU_HZ": "200"}).ok().trace)
    for look in LOOKS:
        check_texts(seen[look])
