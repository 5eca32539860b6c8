"""Names of threads, whichever thread gives them, and when."""

import json

import pytest

from lib import BUILD, SINGLE, gotools, proc


def told(result):
    """Thread → its name, as the program says."""
    return {int(tid): name for tid, name in (line.split(" ", 1) for line in result.stdout.splitlines())}


def shown(trace):
    report = json.loads(proc.run([BUILD / "gotrace", "info", "--json", trace]).ok().stdout)
    return {row["thread"]["tid"]: row["thread"]["name"] or "-" for row in report["by_thread"]}


@pytest.mark.parametrize("start", ["now", "manual"])
@pytest.mark.parametrize("format", gotools.some("go1.11"))
def test_names_that_other_threads_give(traced, format, start):
    """Before a thread's first wait, during it, later, at its end, before it begins, and before recording begins."""
    env = {"GOTRACE_FORMAT": format} | ({"GOTRACE_START": "manual"} if start == "manual" else {})
    result = traced([SINGLE / "thread_names/given"], env=env).ok()
    names = told(result)
    assert sorted(names.values()) == ["-", "at its end", "born", "early", "late", "mine", "newer", "self"]
    assert {tid: name for tid, name in shown(result.trace).items() if tid in names} == names
    for go in gotools.readers_of(format).values():
        gotools.check(result.trace, go=go)
    labels = {e.m: e.fields["Label"].strip('"') for e in gotools.parse(result.trace) if e.kind == "Label"}
    assert labels == {tid: name for tid, name in names.items() if name != "-"}


@pytest.mark.parametrize("format", gotools.some("go1.11"))
def test_names_written_to_files_of_the_kernels(traced, tmp_path, format):
    """By write(2) and by stdio, of the own thread and of another; a file that only has such a name gives none."""
    result = traced([SINGLE / "thread_names/comm", tmp_path], env={"GOTRACE_FORMAT": format}).ok()
    names = told(result)
    assert sorted(names.values()) == ["-", "again", "by another", "first", "itself", "longer than six", "printed", "printed by it", "with its line"]
    assert {tid: name for tid, name in shown(result.trace).items() if tid in names} == names
