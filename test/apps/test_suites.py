"""Test suites that others ship, bare and under the library: each of their tests ends the same.

PYTHON_SUITES=1 runs all of Python's (ten minutes). REDIS_SUITE is a directory with the sources of the installed Redis,
as `apt-get source redis` unpacks them: its suite takes a quarter of an hour.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import xml.etree.ElementTree as xml

import pytest

from lib import gotools, proc

pytestmark = pytest.mark.foreign

PYTHON = ["/usr/bin/python3", "-m", "test"]
SHORT = ["test_threading", pytest.param("test_fork1", marks=pytest.mark.long)]
LONG = ["test_subprocess", "test_signal", "test_socket", "test_asyncio", "test_concurrent_futures"]
SUITES = SHORT + (LONG if os.environ.get("PYTHON_SUITES") else [])
REDIS = os.environ.get("REDIS_SUITE")
REDIS_PROGRAMS = ["server", "cli", "benchmark", "sentinel", "check-aof", "check-rdb"]


def check_traces(directory):
    """All that the suite's processes left, also those that it killed; those may have left nothing."""
    traces = [path for path in directory.iterdir() if path.stat().st_size]
    result = proc.run([gotools.read_all(gotools.find()), *traces], timeout=300).ok()
    # A reader says this of a process killed while it wrote a generation.
    broken = [line for line in result.stdout.splitlines() if not line.endswith("unexpected EOF")]
    assert not broken, "\n".join(broken[:10])
    return traces


def python_outcomes(suite, cwd, env):
    """Test → how it ended. Virtual machines' sockets (VSOCK) hang on some hosts, also without us."""
    cwd.mkdir()
    argv = [*PYTHON, suite, "-i", "*VSOCK*", "--junit-xml", cwd / "junit.xml"]
    result = proc.run(argv, cwd=cwd, env=env, timeout=400)
    cases = xml.parse(cwd / "junit.xml").getroot().iter("testcase")
    ends = {case.get("name"): sorted(end.tag for end in case if not end.tag.startswith("system-")) for case in cases}
    return result.returncode, ends


@pytest.mark.alone
@pytest.mark.limit(900)
@pytest.mark.parametrize("suite", SUITES)
def test_python(tmp_path, suite):
    if proc.run(["/usr/bin/python3", "-c", f"import test.{suite}"]).returncode:
        pytest.skip("Python's tests are not installed (libpython3-testsuite)")
    traces = tmp_path / "traces"
    traces.mkdir()
    runs = {"bare": {}, "traced": proc.traced_env(traces / "%p", {"GOTRACE_QUIET": "1"})}  # some of its tests look at standard error
    with concurrent.futures.ThreadPoolExecutor() as pool:  # at the same time: its tests mostly wait
        bare, traced = pool.map(lambda name: python_outcomes(suite, tmp_path / name, runs[name]), runs)
    assert traced == bare
    assert len(bare[1]) > 1 and check_traces(traces)


def redis_outcomes(source, port, env):
    """How many tests of each name ended how. What PSYNC2's are, and how many, is decided by chance and time."""
    argv = ["tclsh", "tests/test_helper.tcl", "--clients", "3", "--baseport", port, "--portcount", "3000"]
    result = proc.run(argv, cwd=source, env=env, timeout=1800)
    ends = re.findall(r"\[(ok|err|exception|skip|ignore)\]: (.*?)(?: \(\d+ ms\))?$", re.sub(r"\x1b\[[\d;]*m", "", result.stdout), re.M)
    by_chance = {end for end, name in ends if name.startswith("PSYNC2")}
    return result.returncode, by_chance, collections.Counter(e for e in ends if not e[1].startswith("PSYNC2"))


@pytest.mark.alone
@pytest.mark.limit(3600)
@pytest.mark.skipif(not REDIS, reason="REDIS_SUITE is not set")
def test_redis(tmp_path):
    source = pathlib.Path(shutil.copytree(REDIS, tmp_path / "redis", symlinks=True))
    for name in REDIS_PROGRAMS:
        (source / "src" / f"redis-{name}").unlink(missing_ok=True)
        (source / "src" / f"redis-{name}").symlink_to(shutil.which(f"redis-{name}") or shutil.which("redis-server"))  # which goes by its name
    traces = tmp_path / "traces"
    traces.mkdir()
    bare = redis_outcomes(source, 21000, {})
    traced = redis_outcomes(source, 24500, proc.traced_env(traces / "%e.%p", {"GOTRACE_QUIET": "1"}))
    assert traced == bare, f"more: {traced[2] - bare[2]}\nfewer: {bare[2] - traced[2]}"
    assert len(bare[2]) > 1000 and check_traces(traces)
