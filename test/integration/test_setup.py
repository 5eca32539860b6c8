"""With what a trace was recorded: the machine, the library and the switches, by what the system itself says of them."""

import csv
import io
import json
import os
import re
import subprocess

import pytest

from lib import AARCH64, BUILT, LIBRARY, PROGRAMS, gotools, proc

pytestmark = pytest.mark.skipif(AARCH64, reason="qemu has a kernel and a CPU of its own")

GOTRACE = BUILT / "gotrace"
SECRET = "name-of-a-secret"
SWITCHES = {"GOTRACE_CPU_HZ": "200", "GOTRACE_SYSCALLS": "all", "GOTRACE_HOLD_MIN": "2ms"}
NAMES = ["machine_cpus", "cpu_model", "machine", "kernel", "glibc", "libgotrace"]


def machine():
    """What the system says; the kernel writes one blank where a CPU's name has several."""
    with open("/proc/cpuinfo") as cpus:
        models = re.findall(r"^model name\s*: (.*)$", cpus.read(), re.M)
    uname = os.uname()
    return {
        "machine_cpus": os.sysconf("SC_NPROCESSORS_ONLN"),
        "cpu_model": " ".join(models[0].split()) if models else None,
        "machine": uname.machine,
        "kernel": uname.release,
        "glibc": os.confstr("CS_GNU_LIBC_VERSION").split()[1],
        "libgotrace": proc.run([GOTRACE, "--version"]).ok().stdout.split()[1],
    }


def facts(trace):
    document = json.loads(proc.run([GOTRACE, "info", "--json", trace]).ok().stdout)
    found = {name: document[name] for name in NAMES}
    found["cpu_model"] = found["cpu_model"] and " ".join(found["cpu_model"].split())
    switches = document["switches"]
    return found, switches if switches is None else dict(it.split("=", 1) for it in switches.split())


def told(env):
    return {name: value for name, value in env.items() if name.startswith("GOTRACE_") and name != "GOTRACE_OUTPUT"}


def record(path, **env):
    result = proc.traced([PROGRAMS / "waits", "mutex"], path, env=SWITCHES | env).ok()
    return result.trace, told(result.env)


def readers_take(trace, format):
    for go in gotools.readers_of(format).values():
        assert proc.run([gotools.read_all(go), trace], timeout=120).ok().stdout == ""


@pytest.mark.parametrize("format", gotools.some("go1.5", "go1.7", "go1.22", "go1.26"))
def test_what_is_said(tmp_path, format):
    trace, switches = record(tmp_path / "t.out", GOTRACE_FORMAT=format)
    assert facts(trace) == (machine(), switches) and switches.items() >= SWITCHES.items()
    readers_take(trace, format)
    text = proc.run([GOTRACE, "info", trace]).ok().stdout
    assert f"Linux {os.uname().release}, glibc " in text and "GOTRACE_CPU_HZ=200" in text, text
    (row,) = csv.DictReader(io.StringIO(proc.run([GOTRACE, "sql", "--csv", trace, "SELECT * FROM trace"]).ok().stdout))
    document = json.loads(proc.run([GOTRACE, "info", "--json", trace]).ok().stdout)
    assert {name: row[name] for name in [*NAMES, "switches"]} == {name: str(document[name]) for name in [*NAMES, "switches"]}


def test_no_names_of_files(tmp_path):
    """Neither the directory of the black box nor the trace's own name, and no value that the library did not take."""
    directory = tmp_path / SECRET
    directory.mkdir()
    env = {"GOTRACE_LIVE": str(directory), "GOTRACE_SIGNAL": f"NO-{SECRET}"}
    result = proc.traced([PROGRAMS / "waits", "mutex"], tmp_path / f"{SECRET}.out", env=env).ok()
    _, switches = facts(result.trace)
    assert switches["GOTRACE_LIVE"] == "..." and not {"GOTRACE_OUTPUT", "GOTRACE_SIGNAL"} & set(switches)
    assert SECRET.encode() not in result.trace.read_bytes()


@pytest.mark.parametrize("format", ["go1.5", "go1.21", "go1.26"])
def test_what_is_written_anew(tmp_path, format):
    """A part, another format, and a merge have it; a merge has only what is true of all its traces."""
    trace, switches = record(tmp_path / "t.out", GOTRACE_FORMAT=format)
    other, _ = record(tmp_path / "o.out", GOTRACE_FORMAT=format)
    different, _ = record(tmp_path / "d.out", GOTRACE_FORMAT=format, GOTRACE_CPU_HZ="100")
    output = tmp_path / "new.out"
    for command in ["cut", "--from=1us", trace], ["convert", "--format=go1.23", trace], ["convert", "--format=go1.11", trace], ["merge", trace, other]:
        proc.run([GOTRACE, command[0], "-o", output, *command[1:]]).ok()
        assert facts(output) == (machine(), switches), command
    proc.run([GOTRACE, "merge", "-o", output, trace, different]).ok()
    assert facts(output) == (machine(), None)
    assert "libgotrace" in (text := proc.run([GOTRACE, "info", output]).ok().stdout) and "no switch" not in text


def test_none_was_set(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("GOTRACE")}
    env |= {"LD_PRELOAD": str(LIBRARY), "GOTRACE_OUTPUT": str(tmp_path / "t.out")}
    subprocess.run([PROGRAMS / "waits", "mutex"], env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)
    assert facts(tmp_path / "t.out") == (machine(), {})
    assert "no switch was set" in proc.run([GOTRACE, "info", tmp_path / "t.out"]).ok().stdout


@pytest.mark.parametrize("ring", [{}, {"GOTRACE_RING": "64M"}], ids=["file", "recorder"])
@pytest.mark.parametrize("format", ["go1.5", "go1.21", "go1.26"])
def test_a_killed_process(tmp_path, format, ring):
    """The black box has it from the beginning on; what the CPU is called, `gotrace recover` adds."""
    env = proc.traced_env(tmp_path / "t.out", {"GOTRACE_LIVE": "on", "GOTRACE_FORMAT": format} | ring)
    child = proc.spawn([PROGRAMS / "killed", tmp_path / "journal", "wait"], env=env, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    proc.kill_group(child)
    proc.run([GOTRACE, "recover", tmp_path / "t.out.live", "-o", tmp_path / "all.out"]).ok()
    assert facts(tmp_path / "all.out") == (machine(), told(env))


def test_each_file_of_a_rotation(tmp_path):
    env = {"GOTRACE_ROTATE": "200ms"}
    result = proc.traced([PROGRAMS / "rotated", 500, tmp_path / "t.out.3"], tmp_path / "t.out", env=env)
    traces = [path for path in tmp_path.iterdir() if re.fullmatch(r"t\.out(\.\d+)?", path.name)]
    assert len(traces) >= 3, result
    for trace in traces:
        assert facts(trace) == (machine(), told(result.env)), trace

