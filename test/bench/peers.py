"""What a program can be run under: nothing, libgotrace, and the tracers that `scripts/deps bench` brings."""

import contextlib
import dataclasses
import glob
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY, COMMAND = ROOT / "libgotrace.so", ROOT / "build/gotrace"
EMPTY = ROOT / "build/test/bench/empty.so"
RECORDS = ROOT / "build/test/bench/records.so"
ASYNC_PROFILER = ROOT / "build/async-profiler" / ("linux-arm64" if platform.machine() == "aarch64" else "linux-x64") / "libasyncProfiler.so"
CONTENDED = {f"lock{n}{section}" for n in (2, 4, 16) for section in ("", "-200", "-1000")}
LOCKS = {"lock", *CONTENDED, "hot", "cond", "create", "trivial", "herd", "spawn", "forks"}
HEAP = {"malloc", "malloc2"}
CALLS = {"read", "look", "pipe"}
SERVERS = {"redis", "redis-io4", "memcached", "nginx", "postgresql"}
TOOLS = {"pigz", "xz", "sysbench-mutex", "sysbench-threads", "python-pool"}


@dataclasses.dataclass
class Tracer:
    """`prefix` stands before the command, `env` is set for it; {out} is a path below an empty directory. `session`
    surrounds the run. `sees`: the cases in which it records what the case does; the others are left out. `by_kernel`: the kernel
    records, and may refuse to. `peer`: it is neither ours nor a part of what ours costs."""

    name: str
    needs: str  # a command or file without which it is missing
    version: list
    prefix: list = ()
    env: dict = dataclasses.field(default_factory=dict)
    session: object = contextlib.nullcontext
    sees: set = dataclasses.field(default_factory=set)
    by_kernel: bool = False
    peer: bool = True

    def missing(self):
        """Why it cannot be used here, or None."""
        if self.needs and not shutil.which(self.needs) and not glob.glob(self.needs):
            return f"no {self.needs}"
        if self.by_kernel and self._refused():
            return "not permitted"
        return None

    def _refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            return subprocess.run(self._argv(["true"], scratch), env=os.environ | self.env, capture_output=True, cwd=scratch).returncode != 0

    def _argv(self, argv, directory, case=""):
        kind = "memory" if case in HEAP else "posixio" if case in CALLS else "pthread"  # EZTrace hangs with all
        return [a.format(out=f"{directory}/trace", kind=kind) for a in self.prefix] + [str(a) for a in argv]

    def version_text(self):
        run = subprocess.run(self.version, capture_output=True, text=True, cwd=ROOT)
        return (run.stdout + run.stderr).strip().splitlines()[0] if self.version else ""

    @contextlib.contextmanager
    def around(self, case, argv, scratch):
        """The command and the environment to run it with, and after the block `size`, what it left in bytes."""
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            os.chmod(directory, 0o777)  # servers give up root
            env = {k: v.format(out=f"{directory}/trace") for k, v in self.env.items()}
            argv = self._argv(argv, directory, case)
            run = types.SimpleNamespace(argv=argv, env=env, size=0, directory=directory)
            with self.session(directory):
                yield run
            run.size = sum(p.stat().st_size for p in pathlib.Path(directory).rglob("*") if p.is_file())


def lttng(*argv):
    done = subprocess.run(["lttng", *argv], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lttng {' '.join(argv)}: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def lttng_session(directory):
    """Buffers that do not drop events here: 4 of 8 MiB for each CPU."""
    lttng("create", "gotrace-bench", f"--output={directory}/trace")
    try:
        lttng("enable-channel", "-u", "c", "--subbuf-size=8M", "--num-subbuf=4")
        lttng("enable-event", "-u", "-c", "c", "lttng_ust_pthread:*")
        lttng("enable-event", "-u", "-c", "c", "lttng_ust_libc:*")
        lttng("start")
        yield
        lttng("stop")
    finally:
        subprocess.run(["lttng", "destroy", "gotrace-bench"], capture_output=True)


@contextlib.contextmanager
def lttng_daemon():
    """A session daemon of our own, unless there is one."""
    if not shutil.which("lttng-sessiond") or subprocess.run(["lttng", "list"], capture_output=True).returncode == 0:
        yield
        return
    with tempfile.TemporaryDirectory() as home:
        os.environ["LTTNG_HOME"] = home
        daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while daemon.poll() is None and subprocess.run(["lttng", "list"], capture_output=True).returncode:
            time.sleep(0.05)
        try:
            yield
        finally:
            daemon.terminate()
            daemon.wait()


LTTNG = ":".join(f"liblttng-ust-{part}-wrapper.so.1" for part in ("pthread", "libc"))


def ours(name, version, **settings):
    env = {"LD_PRELOAD": str(LIBRARY), "GOTRACE_OUTPUT": "{out}", "GOTRACE_QUIET": "0", **settings}
    return Tracer(name, str(LIBRARY), version, env=env, sees=LOCKS | HEAP | CALLS | SERVERS | TOOLS, peer=False)


TRACERS = [
    Tracer("bare", "", [], peer=False),
    ours("libgotrace", ["git", "describe", "--always", "--dirty"]),
    ours("libgotrace, sched", ["echo", "the same with GOTRACE_SCHED=on"], GOTRACE_SCHED="on"),
    ours("libgotrace, box", ["echo", "the same with GOTRACE_LIVE=on"], GOTRACE_LIVE="on"),
    Tracer(
        "libgotrace -f",
        str(COMMAND),
        ["echo", "the same family of processes by gotrace -f"],
        [str(COMMAND), "-f", "-o", "{out}", "--"],
        sees={"forks"},
        peer=False,
    ),
    Tracer(
        "empty hooks",
        str(EMPTY),
        ["echo", "a preloaded library whose functions only call the original ones: what interposition costs alone"],
        env={"LD_PRELOAD": str(EMPTY)},
        sees=LOCKS | HEAP | CALLS,
        peer=False,
    ),
    Tracer(
        "kernel's records",
        str(RECORDS),
        ["echo", "the kernel records the threads' switches as for GOTRACE_SCHED=on, and nobody looks at the records"],
        env={"LD_PRELOAD": str(RECORDS)},
        sees={"create", "cond", "pipe", "lock4"},
        by_kernel=True,
        peer=False,
    ),
    Tracer(
        "LTTng-UST",
        "lttng",
        ["lttng", "--version"],
        env={"LD_PRELOAD": LTTNG},
        session=lttng_session,
        sees=LOCKS | HEAP | SERVERS | TOOLS,
    ),
    Tracer(
        "EZTrace",
        "eztrace",
        ["dpkg-query", "-Wf", "${Package} ${Version}", "eztrace"],
        ["eztrace", "-t", "{kind}", "-o", "{out}"],
        sees=LOCKS | HEAP | CALLS | SERVERS | TOOLS,
    ),
    Tracer(
        "async-profiler",  # by nativelock it samples the waits of pthread_mutex_lock, pthread_rwlock_rdlock and _wrlock
        str(ASYNC_PROFILER),
        ["sh", "-c", "basename build/async-profiler/*.jar .jar"],
        env={"LD_PRELOAD": str(ASYNC_PROFILER), "ASPROF_COMMAND": "start,nativelock,file={out}"},
        sees=CONTENDED | {"lock", "hot", "redis-io4", "memcached", "pigz", "sysbench-mutex", "sysbench-threads", "python-pool"},
    ),
    Tracer(
        "uftrace",
        "uftrace",
        ["uftrace", "--version"],
        ["uftrace", "record", "--no-pager", "--force", "-a", "-l", "-d", "{out}"],
        sees=LOCKS | HEAP | CALLS | SERVERS | TOOLS,
    ),
    Tracer(
        "heaptrack", "heaptrack", ["heaptrack", "--version"], ["heaptrack", "-o", "{out}"], sees=HEAP
    ),
    Tracer(
        "strace -f",
        "strace",
        ["strace", "--version"],
        ["strace", "-f", "-o", "{out}"],
        sees=LOCKS | CALLS | SERVERS,
    ),
    Tracer("perf trace", "perf", ["perf", "--version"], ["perf", "trace", "-o", "{out}"], sees=LOCKS | CALLS, by_kernel=True),
    Tracer(
        "perf sched",
        "perf",
        ["perf", "--version"],
        ["perf", "sched", "record", "-o", "{out}"],
        sees={"cond", "pipe", "create", "lock4", "forks"} | SERVERS,
        by_kernel=True,
    ),
]
