"""The environment switches, the exit line, and what happens when the trace cannot be written."""

import os
import re
import socket

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, gotools, proc

THREADS = [PROGRAMS / "threads", "4"]


def test_exit_line(traced):
    result = traced(THREADS).ok()
    line = result.stderr.strip()
    assert "\n" not in line and line.startswith(f"gotrace: {result.trace}: "), line
    assert "events in" in line and "nothing lost" in line and f"go tool trace {result.trace}" in line


def test_quiet(traced):
    assert traced(THREADS, env={"GOTRACE_QUIET": "1"}).ok().stderr == ""


def test_off(traced):
    result = traced(THREADS, env={"GOTRACE": "off"}).ok()
    assert result.stderr == "" and not result.trace.exists()


@pytest.mark.parametrize(
    "name, value", [("GOTRACE_FORMAT", "go1.99"), ("GOTRACE", "maybe"), ("GOTRACE_HEAP", "maybe"), ("GOTRACE_QUIET", "loud"), ("GOTRACE_OUTPUT", "")]
)
def test_bad_value_gets_one_line_and_the_default(traced, tmp_path, name, value):
    result = traced(THREADS, env={name: value}, cwd=tmp_path).ok()
    complaint, exit_line = result.stderr.strip().split("\n")
    assert complaint.startswith(f"gotrace: {name}={value} is not "), complaint
    gotools.check(tmp_path / "trace.out" if name == "GOTRACE_OUTPUT" else result.trace)


def test_default_output(tmp_path):
    env = proc.traced_env("unused")
    del env["GOTRACE_OUTPUT"]
    proc.run(THREADS, env=env, cwd=tmp_path).ok()
    gotools.check(tmp_path / "trace.out")


def test_output_pattern(tmp_path):
    result = proc.run(THREADS, env=proc.traced_env("%e-%h-%p-%t-100%%.trace"), cwd=tmp_path).ok()
    (name,) = os.listdir(tmp_path)
    program, host, pid, seconds = name.removesuffix("-100%.trace").replace(socket.gethostname(), "HOST").split("-")
    assert (program, host) == ("threads", "HOST") and int(pid) > 1 and int(seconds) > 1_700_000_000
    assert f"{tmp_path}/{name}" in result.stderr


def test_descendants_write_beside(tmp_path):
    proc.run(["sh", "-c", f"{THREADS[0]} 4; {THREADS[0]} 5"], env=proc.traced_env(tmp_path / "t.out")).ok()
    names = sorted(os.listdir(tmp_path))
    assert names[0] == "t.out" and len(names) == 3, names
    for name in names[1:]:
        assert name.removeprefix("t.out.").isdigit()
        gotools.check(tmp_path / name)


def test_wrapper_hands_the_name_on(traced):
    result = traced(["env", "A=b", "nice", *THREADS]).ok()
    assert len([e for e in gotools.parse(result.trace) if e.is_go("NotExist", "Runnable")]) == 4


@pytest.mark.parametrize("path", ["/nonexistent/t.out", "/dev/full", "/proc/t.out"])
def test_cannot_write(tmp_path, path):
    bare = proc.run(THREADS)
    result = proc.run(THREADS, env=proc.traced_env(path)).ok()
    assert result.stdout == bare.stdout
    (line,) = result.stderr.strip().split("\n")
    assert line.startswith(f"gotrace: cannot write {path}: "), line


def test_exported_symbols_are_the_hooks():
    """Whatever else became visible would take part in the program's symbol resolution."""
    tables = "".join(table.read_text() for table in (ROOT / "preload").glob("*.def"))
    hooks = set(re.findall(r"^GT_(?:HOOK|NEW|DELETE)\((\w+)", tables, re.M)) | {"prctl", "execl", "execlp", "execle"}
    hooks |= set(re.findall(r"^(?:GT_CALL|STDIO)\(.*?,\s*[\w *]+,\s*(\w+),\s*\(", tables, re.M))
    hooks |= set(re.findall(r"(gotrace_\w+)\(.*GOTRACE_WEAK;", (ROOT / "preload/gotrace.h").read_text()))
    nm = proc.run(["nm", "-D", "--defined-only", LIBRARY]).ok().stdout
    assert {line.split()[2] for line in nm.splitlines()} == hooks
