"""The way of gotrace-systems(7) into containers, under the default rules of container engines (test/lib/container.py), here made by unshare(1)."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, proc

GOTRACE = "/gotrace/bin/gotrace"
SEPARATE = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
RESTRICTED = ["--restricted"]
users = pytest.mark.parametrize("rules", [[], RESTRICTED], ids=["default", "restricted"])
filters = pytest.mark.parametrize("rules", [[], RESTRICTED, ["--service"]], ids=["default", "restricted", "service"])

pytestmark = pytest.mark.needs("unshare", "setpriv", "nsenter")


def why_not():
    if os.geteuid() != 0 or proc.run([*SEPARATE, "true"]).returncode:
        return "no namespaces here"
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return "libseccomp.so.2 is not here"


@pytest.fixture(autouse=True, scope="module")
def possible():
    if reason := why_not():
        pytest.skip(reason)


class Pod:
    """What containers share: the library on a volume that is read-only, and one for traces."""

    def __init__(self, directory):
        self.tools, self.traces = directory / "tools", directory / "traces"
        self.roots = [directory / "app", directory / "debugger"]
        for path in (self.tools, self.traces, *self.roots):
            path.mkdir()
        self.traces.chmod(0o1777)
        for file, place in ((LIBRARY, "lib"), (ROOT / "build/gotrace", "bin"), (PROGRAMS / "incidents", "app"), (PROGRAMS / "account", "app")):
            (self.tools / place).mkdir(exist_ok=True)
            pathlib.Path(shutil.copy(file, self.tools / place)).chmod(0o755)

    def argv(self, root, rules, program):
        """A container with these rules; without the variables of the tests' own environment."""
        volumes = [f"{self.tools}:/gotrace", f"{self.traces}:/traces:rw"]
        return ["/usr/bin/python3", ROOT / "test/lib/container.py", *rules, root, *volumes, "--", "env", "-i", "PATH=/usr/bin:/bin", *program]

    @contextlib.contextmanager
    def running(self, rules, *program, **env):
        """The application, with the variables of its pod; it is ready when it has a second thread."""
        env = {"LD_PRELOAD": "/gotrace/lib/libgotrace.so", "GOTRACE_OUTPUT": "/traces/%e.%p.out"} | env
        settings = [f"{name}={value}" for name, value in env.items()]
        argv = [*SEPARATE, *self.argv(self.roots[0], rules, [*settings, *program])]
        self.app = proc.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            self.pid = await_threads(self.app)
            yield
        finally:
            proc.kill_group(self.app)

    def debug(self, rules, *command):
        """In another container, which shares processes and network of the first, as by `kubectl debug --target`."""
        enter = ["nsenter", "--target", self.pid, "--pid", "--net", "--ipc", "--uts", "unshare", "--mount", "--fork"]
        return proc.run([*enter, *self.argv(self.roots[1], rules, [GOTRACE, *command])])

    def said(self):
        """All that the application's container has written to its standard error, a pipe, when it has ended."""
        return self.app.communicate(timeout=30)[1]


def await_threads(child):
    """The number of the container's first process when that has made threads."""
    children = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children")
    (pid,) = proc.until(lambda: [pid for pid in children.read_text().split() if len(os.listdir(f"/proc/{pid}/task")) > 2], child=child)
    return pid


def cpu_seconds(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def pod(tmp_path):
    for path in (tmp_path, *tmp_path.parents[:-2]):
        path.chmod(path.stat().st_mode | 0o055)  # for the other user
    return Pod(tmp_path)


def await_deadlock(pod, rules):
    def told():
        result = pod.debug(rules, "stacks", "1")
        assert result.returncode == (3 if "DEADLOCK" in result.stdout else 0), str(result)
        return result.returncode and result.stdout

    return proc.until(told)


@pytest.mark.foreign
@filters
def test_flight_recorder(pod, rules):
    """Stacks and a snapshot from a debug container; the application is process 1 in both."""
    with pod.running(rules, "/gotrace/app/incidents", "deadlock", GOTRACE_RING="30s"):
        text = await_deadlock(pod, rules)
        assert re.search(r"waits for mutex accounts\b.*held by thread \d+ \(worker\)\n(    .*\n)*?    transfer \(incidents.c:43\)", text)
        pod.debug(rules, "snapshot", "1", "/traces/slow.out").ok()
        assert "pthread_mutex_lock <- transfer (incidents.c:43), accounts, held by" in pod.debug(rules, "top", "/traces/slow.out").ok().stdout


@pytest.mark.measured
@users
def test_recording(pod, rules):
    """A file, with CPU samples: of a thread that computes until its input ends."""
    with pod.running(rules, "/gotrace/app/account", "spin=1", GOTRACE_CPU_HZ="100"):
        trace = pod.traces / "account.1.out"
        proc.until(lambda: cpu_seconds(pod.pid) >= 0.5)
        said = pod.said()
        assert pod.app.returncode == 0 and "nothing lost" in said and f"/traces/{trace.name}" in said, said
    assert int(re.search(r"(\d+) CPU samples", proc.run([ROOT / "build/gotrace", "top", "--cpu", trace]).ok().stdout)[1]) >= 20


@pytest.mark.foreign
@filters
def test_what_the_tracer_says(pod, rules):
    """Its thread has none of the program's descriptors, and may not get one by pidfd_getfd(2) here."""
    with pod.running(rules, "/gotrace/app/incidents", "deadlock", GOTRACE_HANG="100ms"):
        lines = iter(pod.app.stderr.readline, "")
        assert any(line.startswith("gotrace: DEADLOCK") for line in lines)


@users
def test_doctor(pod, rules):
    """It records where only a volume can be written, and what it finds wrong it mends by a setting of the container."""

    def checks_with(*settings):
        result = proc.run([*SEPARATE, *pod.argv(pod.roots[0], rules, ["TMPDIR=/traces", *settings, GOTRACE, "doctor", "--json"])])
        return {check["check"]: check for check in json.loads(result.stdout)["checks"]}, result.returncode

    checks, status = checks_with("GOTRACE_OUTPUT=/traces/%p.out")
    assert status == 0 and checks["folder"]["says"] == "traces can be written to /traces", checks
    checks, status = checks_with()
    assert status == 1, checks
    assert checks["recording"]["health"] == "ok" and not list(pod.traces.iterdir()), checks
    assert checks["folder"]["health"] == "missing" and "Read-only file system" in checks["folder"]["says"], checks
    assert checks["perf"]["health"] == "limited" and "docker run --cap-add=PERFMON" in checks["perf"]["mend"], checks
    assert checks["ptrace"]["health"] == "ok" and "this user's processes" in checks["ptrace"]["says"], checks


@pytest.mark.foreign
@pytest.mark.long
def test_cpu_state(pod):
    """The kernel watches threads only with CAP_PERFMON, which has its call in the profile, too."""
    for rules, refused in (([], True), (["--add=perfmon"], False)):
        with pod.running(rules, "/gotrace/app/incidents", "convoy", "5000", GOTRACE_SCHED="on"):
            said = pod.said()
        assert ("GOTRACE_SCHED: the kernel does not let this user watch threads" in said) == refused, said


@pytest.mark.foreign
def test_another_user(pod):
    """Who debugs has the application's user, or CAP_SYS_PTRACE; root alone is not enough, and the message says so."""
    with pod.running(RESTRICTED, "/gotrace/app/incidents", "deadlock", GOTRACE_RING="30s"):
        for command in ("stacks", "snapshot"):
            result = pod.debug([], command, "1")
            assert result.returncode == 1 and "without CAP_SYS_PTRACE, as in" in result.stderr, str(result)
        await_deadlock(pod, ["--add=sys_ptrace"])
        pod.debug(["--add=sys_ptrace"], "snapshot", "1", "/traces/root.out").ok()


@pytest.mark.foreign
@users
def test_attach(pod, rules):
    """To what was started without the library."""
    with pod.running(rules, "/gotrace/app/incidents", "deadlock", LD_PRELOAD=""):
        pod.debug(rules, "attach", "--ring=30s", "1").ok()
        pod.debug(rules, "snapshot", "1", "/traces/late.out").ok()
        pod.debug(rules, "detach", "1").ok()
