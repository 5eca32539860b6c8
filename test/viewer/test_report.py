"""`gotrace report` in a real browser: what it shows is what the program did, and nothing of the trace becomes code."""

import html
import json
import os
import pathlib
import re
import shutil
import struct

import pytest

from lib import PROGRAMS, ROOT, SINGLE, proc
from lib.exported import keep_picture

pytestmark = [pytest.mark.needs("chromium-headless-shell|chromium"), pytest.mark.limit(240)]

HERE = pathlib.Path(__file__).parent
GOTRACE = ROOT / "build/gotrace"
MOST = 2 << 20  # bytes of a report


def report(trace, *options):
    page = trace.parent / "report.html"
    result = proc.run([GOTRACE, "report", *options, "-o", page, trace], timeout=100).ok()
    assert page.stat().st_size <= MOST, "too large to hand on"
    return page, result


def size_of(picture):
    return struct.unpack(">II", picture.read_bytes()[16:24])


def look(page):
    """What the browser shows; it must not complain, load anything, or be wider than its window."""
    prefix = page.with_suffix("")
    shown = proc.run(["node", "report.js", page, prefix], cwd=HERE, timeout=110).ok()
    seen = json.loads(shown.stdout)
    assert not seen["errors"] and not seen["network"], seen
    assert max(seen["overflow"], seen["middle"], seen["narrow"]) <= 0, "the page scrolls sideways"
    assert not {"img", "iframe", "object"} & set(seen["elements"]), seen["elements"]
    sizes = {"middle": (900, 860), "narrow": (390, 800)}
    for kind in "light", "dark", "print", "middle", "narrow":
        picture = pathlib.Path(f"{prefix}-{kind}.png")
        assert size_of(picture) == sizes.get(kind, (1400, 700))
        keep_picture(picture, f"report-{kind}.png")
    assert seen["dark"] != "rgb(255, 255, 255)"
    return seen


@pytest.fixture(scope="module")
def incident(tmp_path_factory, slow_disk):
    """A server that holds a lock during fsync."""
    trace = tmp_path_factory.mktemp("report") / "t.out"
    return proc.traced([PROGRAMS / "incidents", "fsync"], trace, env=slow_disk | {"GOTRACE_CPU_HZ": "200"}).ok().trace


def test_what_a_program_did(incident):
    seen = look(report(incident)[0])
    text = seen["text"]
    assert "journal_lock" in seen["answer"] and "fsync" in seen["answer"], seen["answer"]
    assert {"answer", "whatif", "bands", "lanes", "path", "locks", "waits", "threads"} <= set(seen["sections"])
    assert seen["rows"]["threads"] == 5 and seen["rows"]["locks"] >= 1
    assert "fsync <- append (incidents.c:" in text
    assert seen["flames"] >= 1 and "block" in seen["zoomed"], "a click zooms, and All is there to go back"
    assert all(re.match(r".*, \d+\.\d{6} s\n", told) for told in seen["told"]), seen["told"]
    assert re.fullmatch(r"\d+\.\d{6} s", seen["marked"])
    assert len(seen["colours"]) >= 2, "bars of several states"


def test_the_picture_in_the_readme(tmp_path):
    """demo.png is build/report-middle.png after this test: the answer about the demo's server, with names and a prediction."""
    shop, trace = tmp_path / "shop", tmp_path / "shop.trace"
    proc.run(["cc", "-std=gnu11", "-g", "-O2", "-pthread", ROOT / "scripts/example/shop.c", "-o", shop]).ok()
    proc.run([GOTRACE, "-q", "-o", trace, "--", shop], timeout=60).ok()
    seen = look(report(trace)[0])
    for name in "cache_lock", "price_of", "ask_for_price (shop.c:":
        assert name in seen["answer"], seen["answer"]
    assert "cache_lock" in seen["text"].split("What would help")[1].split("Each change")[0]
    assert size_of(HERE / "demo.png") == (900, 860)


def test_its_figures_are_those_of_the_other_commands(incident, tmp_path):
    page, _ = report(incident)
    data = dict(re.findall(r'<script type="application/json" id="data-(\w+)">(.*?)</script>', page.read_text(), re.S))

    def of(*command):
        return json.loads(proc.run([GOTRACE, *command, "--json", incident]).ok().stdout)

    assert json.loads(data["why"])["path"] == of("why")["path"]
    assert json.loads(data["locks"])["locks"] == of("top", "--by-lock", "-n", "60")["locks"]
    assert json.loads(data["info"])["by_thread"] == of("info")["by_thread"]
    about = json.loads(data["about"])
    assert about["trace"] == str(incident) and not about["part"]
    (words,) = re.findall(r"<h2>The page of gotrace why</h2>\n<pre>(.*?)</pre>", page.read_text(), re.S)
    assert html.unescape(words) == proc.run([GOTRACE, "why", incident]).ok().stdout


def test_the_page_beside_the_json(incident, tmp_path):
    """One run of `gotrace why` writes both, as two would."""
    json_and_page = proc.run([GOTRACE, "why", "--json", f"--page={tmp_path}/page", incident]).ok()
    assert json_and_page.stdout == proc.run([GOTRACE, "why", "--json", incident]).ok().stdout
    assert (tmp_path / "page").read_text() == proc.run([GOTRACE, "why", incident]).ok().stdout
    assert proc.run([GOTRACE, "why", f"--page={tmp_path}/page", incident]).returncode == 2
    refused = proc.run([GOTRACE, "why", "--json", f"--page={tmp_path}/none/page", incident])
    assert refused.returncode == 1 and "No such file" in refused.stderr, refused


def test_with_what_it_was_recorded(incident):
    """The machine and the switches are on the page, as the system says them."""
    text = look(report(incident)[0])["text"]
    assert f"Linux {os.uname().release}" in text and f"glibc {os.confstr('CS_GNU_LIBC_VERSION').split()[1]}" in text
    assert re.search(r"recorded by libgotrace \S+ with GOTRACE_CPU_HZ=200\.", text), text[:500]


def test_keys_in_the_flame_graph(incident):
    """Arrows choose a function, Enter zooms into it, Escape shows all; the page's own search stays."""
    keys = look(report(incident)[0])["keys"]
    assert keys["focus"] and keys["up"] and keys["up"] != "all" and keys["zoomed"] == "block" and keys["reset"] == "none" and not keys["prevented"], keys


def unpacked(why):
    """(thread, from, to, place, count) of each span of a timeline."""
    for thread in why["timeline"]["threads"]:
        at, numbers = why["from_ns"], thread["spans"]
        for gap, ns, place, count in zip(*(iter(numbers),) * 4):
            yield thread["thread"], at + gap, at + gap + ns, why["timeline"]["places"][place], count
            at += gap + ns


def test_the_timeline_is_what_each_thread_did(incident):
    """Its spans follow each other, are as long in all as the threads lived, and the path has no gap."""
    why = json.loads(proc.run([GOTRACE, "why", "--json", "--timeline", incident]).ok().stdout)
    total = {}
    for thread, begin, end, place, count in unpacked(why):
        assert begin <= end and count >= 1
        total.setdefault(thread, []).append(end - begin)
    lived = {one["thread"]: one["end_ns"] - one["begin_ns"] for one in why["timeline"]["threads"]}
    assert len(lived) == 5 and {thread: sum(parts) for thread, parts in total.items()} == pytest.approx(lived, rel=0.01)
    fsync = sum(end - begin for _, begin, end, place, _ in unpacked(why) if "fsync" in place["name"])
    row = next(row for row in why["path"]["rows"] if row["what"] == "fsync")
    assert fsync >= 0.9 * row["ns"], "what the path waited for is there to be seen"
    parts = list(zip(*(iter(why["timeline"]["path"]),) * 3))
    assert parts[0][0] == why["from_ns"] and sum(ns for _, ns, _ in parts) == why["path"]["ns"]
    assert all(a + ns == b for (a, ns, _), (b, _, _) in zip(parts, parts[1:]))


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'"


def test_texts_of_the_trace_stay_texts(tmp_path):
    """Names of threads, tasks, locks and of the file itself."""
    trace = tmp_path / (HOSTILE.replace("/", "\u2215") + ".out")
    result = proc.traced([SINGLE / "report/hostile", HOSTILE], tmp_path / "t.out").ok()
    result.trace.rename(trace)
    seen = look(report(trace)[0])
    assert HOSTILE[:15] in seen["text"] and trace.name in seen["text"], "the thread's name, as far as the kernel has it"


@pytest.mark.parametrize("format", ["go1.11", "go1.21", "go1.26"])
def test_formats(tmp_path, format):
    trace = proc.traced([PROGRAMS / "incidents", "fsync"], tmp_path / "t.out", env={"GOTRACE_FORMAT": format}).ok().trace
    seen = look(report(trace)[0])
    assert "journal_lock" in seen["text"] and format in seen["text"]


def test_a_program_without_threads(tmp_path):
    trace = proc.traced(["true"], tmp_path / "t.out", env={"GOTRACE_CHILDREN": "all"}).ok().trace
    seen = look(report(trace)[0])
    assert seen["rows"]["threads"] == 1 and "locks" not in seen["sections"]


def test_no_trace(tmp_path):
    """What other commands refuse, it refuses, and leaves no file."""
    for name, contents, says in ("empty", b"", "it is empty"), ("other", b"hello" * 100, "it is not a Go execution trace"):
        trace = tmp_path / name
        trace.write_bytes(contents)
        result = proc.run([GOTRACE, "report", trace])
        assert result.returncode == 1 and says in result.stderr, result
    assert not list(tmp_path.glob("*.html"))


def test_3000_threads(tmp_path):
    trace = proc.traced([SINGLE / "report/crowd", 3000], tmp_path / "t.out", timeout=100).ok().trace
    seen = look(report(trace)[0])
    assert seen["rows"]["threads"] == 300 and "2,961 threads that did less are left out" in seen["text"]


def test_a_merge_and_a_killed_process(tmp_path):
    """A family of processes, of which one is killed."""
    trace = tmp_path / "t.out"
    script = 'sleep 0.05 & "$0" fsync & wait; kill -KILL $$'
    proc.run([GOTRACE, "-f", "-o", trace, "--", "sh", "-c", script, PROGRAMS / "incidents"], timeout=60)
    seen = look(report(trace)[0])
    assert re.search(r"incidents\.\d+/worker", seen["text"]), seen["text"]


def test_a_part(incident):
    """Its times are those of the trace."""
    lasts = json.loads(proc.run([GOTRACE, "info", "--json", incident]).ok().stdout)["duration_ns"]
    third = lasts // 3
    page, _ = report(incident, f"--from={third}ns", f"--to={2 * third}ns")
    seen = look(page)
    begin, end = map(float, re.search(r"This is a part of the trace: (\S+) s to (\S+) s", seen["text"]).groups())
    assert begin == round(third / 1e9, 6) and begin < end <= 2 * third / 1e9 + 0.0001
    assert f"gotrace view {incident}" in seen["text"], "no command is about a file that is gone"
    page, _ = report(incident, f"--from=-{third}ns")
    about = json.loads(re.search(r'id="data-about">(.*?)</script>', page.read_text(), re.S)[1])
    assert about["offset_ns"] == about["whole_ns"] - third


def test_standard_output_and_names(incident, tmp_path):
    trace = tmp_path / "x.out"
    shutil.copy(incident, trace)
    proc.run([GOTRACE, "report", trace], cwd=tmp_path).ok()
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "x.html").stat().st_mode & 0o777 == os.stat(trace).st_mode & 0o777
    written = proc.run([GOTRACE, "report", "-o", "-", trace]).ok().stdout
    assert written.endswith("</html>\n")
    result = proc.run([GOTRACE, "report", "-o", trace, trace])
    assert result.returncode == 2 and "is the trace" in result.stderr
