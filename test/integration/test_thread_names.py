"""Names of threads, whichever thread gives them, and when; the empty one, too."""

import json

import pytest

from lib import BUILD, SINGLE, gotools, proc, wire

GOTRACE = BUILD / "gotrace"
FORMATS = gotools.some("go1.11", of=[f for f in gotools.FORMATS if gotools.FORMATS[f][1] is None])
NUMBER = 1 << 40  # of no string


def convert(trace, output, format):
    proc.run([GOTRACE, "convert", f"--format={format}", "-o", output, trace]).ok()
    return output


def with_numbered_empty_string(data):
    """A v2 trace whose empty labels have a number other than 0: the empty string is in the table of each generation."""
    header, batches = wire.read_v2(data)
    for item in (item for batch in batches for item in batch.items):
        if item.name == "GoLabel" and item.args[1] == 0:
            item.args[1] = NUMBER
    for table in {batch.gen: batch for batch in batches if batch.kind == "Strings"}.values():
        table.items.append(wire.Item(wire.V2_TYPE["String"], [NUMBER]))
    return wire.write_v2(header, batches)


def told(result):
    """Thread → its name, as the program says."""
    return {int(tid): name for tid, name in (line.split(" ", 1) for line in result.stdout.splitlines())}


def shown(trace):
    report = json.loads(proc.run([GOTRACE, "info", "--json", trace]).ok().stdout)
    return {row["thread"]["tid"]: row["thread"]["name"] or "-" for row in report["by_thread"]}


def check(trace, names, format):
    """Our reader and Go's give each of these threads the name that it has at its end. "-" and "": it has none."""
    assert proc.run([GOTRACE, "info", "--check", trace]).ok()
    for go in {gotools.find("1.26"), *gotools.readers_of(format).values()}:
        gotools.check(trace, go=go)
    labels = {e.m: e.fields["Label"].strip('"') for e in gotools.parse(trace) if e.kind == "Label"}
    found = shown(trace)
    for by in found, labels:
        assert {tid: by.get(tid) or "-" for tid in names} == {tid: name or "-" for tid, name in names.items()}
    assert labels.keys() <= names.keys()


@pytest.mark.parametrize("start", ["now", "manual"])
@pytest.mark.parametrize("format", FORMATS)
def test_names_that_other_threads_give(traced, format, start):
    """Before a thread's first wait, during it, later, at its end, before it begins, and before recording begins."""
    env = {"GOTRACE_FORMAT": format} | ({"GOTRACE_START": "manual"} if start == "manual" else {})
    result = traced([SINGLE / "thread_names/given"], env=env).ok()
    names = told(result)
    assert sorted(names.values()) == ["", "", "", "-", "at its end", "born", "early", "late", "mine", "newer", "self"]
    check(result.trace, names, format)


@pytest.mark.parametrize("format", FORMATS)
def test_names_written_to_files_of_the_kernels(traced, tmp_path, format):
    """By write(2) and by stdio, of the own thread and of another; a file that only has such a name gives none."""
    result = traced([SINGLE / "thread_names/comm", tmp_path], env={"GOTRACE_FORMAT": format}).ok()
    names = told(result)
    assert sorted(names.values()) == ["", "", "-", "again", "by another", "first", "itself", "longer than six", "printed", "printed by it", "with its line"]
    check(result.trace, names, format)


@pytest.mark.parametrize("format", FORMATS)
def test_no_name_in_what_commands_make(traced, tmp_path, format):
    """Of a trace in which threads lost their names, and of one whose writer gives the empty string a number."""
    result = traced([SINGLE / "thread_names/given"], env={"GOTRACE_FORMAT": format}).ok()
    names = told(result)
    old = convert(result.trace, tmp_path / "v2.out", "go1.23").read_bytes()
    (tmp_path / "numbered.out").write_bytes(with_numbered_empty_string(old))
    for trace in result.trace, tmp_path / "numbered.out":
        check(convert(trace, tmp_path / "new.out", format), names, format)
        proc.run([GOTRACE, "symbolize", "-o", tmp_path / "named.out", trace]).ok()
        check(tmp_path / "named.out", names, "go1.23" if trace != result.trace else format)
