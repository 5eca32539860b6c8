"""What the long runs have in common: how a program is recorded, and readers of all that it leaves."""

import pathlib
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST)]

from lib import BUILT, gotools, proc  # noqa: E402

# Name → settings. `everything` and the modes after it have all switches between them; each takes as many as go together.
MODES = {
    "default": {},
    "calls": {"GOTRACE_SYSCALLS": "all", "GOTRACE_CPU_HZ": "200"},
    "ring": {"GOTRACE_RING": "30s,4M"},
    "children": {"GOTRACE_CHILDREN": "all"},
    "everything": {
        "GOTRACE_CHILDREN": "all",
        "GOTRACE_SYSCALLS": "all",
        "GOTRACE_SYSCALL_MIN": "0",
        "GOTRACE_CPU_HZ": "200",
        "GOTRACE_SCHED": "on",
        "GOTRACE_HOLD_MIN": "0",
        "GOTRACE_HANG": "10s",
        "GOTRACE_LIVE": "on",
        "GOTRACE_NAMES": "later",
        "GOTRACE_ROTATE": "1s,16M",
        "GOTRACE_KEEP": "3",
        "GOTRACE_MAX_MEM": "16M",
    },
    "old": {
        "GOTRACE_FORMAT": "go1.11",
        "GOTRACE_CHILDREN": "all",
        "GOTRACE_HEAP": "off",
        "GOTRACE_DELAY": "1ms",
        "GOTRACE_DURATION": "20s",
        "GOTRACE_MAX_SIZE": "8M",
        "GOTRACE_MAX_PROCESSES": "500",
        "GOTRACE_SIGNAL": "RTMIN+9",
    },
    "manual": {"GOTRACE_START": "manual", "GOTRACE_CHILDREN": "all", "GOTRACE_SYSCALLS": "all"},
    "off": {"GOTRACE": "off", "GOTRACE_CHILDREN": "all", "GOTRACE_SYSCALLS": "all", "GOTRACE_SCHED": "on", "GOTRACE_LIVE": "on"},
}


def environment(mode, directory):
    """To be added to that of the program: traces go to the directory. Some suites look at standard error."""
    return proc.traced_env(directory / "%e.%p", {"GOTRACE_QUIET": "1", **MODES[mode]})


def formats(paths):
    """Format of a mode's files → those; the first 16 bytes say which Go reads them."""
    found = {}
    for path in paths:
        with open(path, "rb") as file:
            found.setdefault(file.read(16).split(b"\0")[0].decode().removesuffix(" trace").replace(" ", ""), []).append(path)
    return found


def refused(directory):
    return refused_of(sorted(p for p in directory.iterdir() if not p.name.endswith((".live", ".elf")) and p.stat().st_size))


def refused_of(paths):
    """How many traces these are, what a Go or `gotrace info --check` says against any of them, and which are only cut: the
    process was killed, and had not been recorded with GOTRACE_LIVE."""
    said, cut = [], set()
    for path in paths:
        info = subprocess.run([BUILT / "gotrace", "info", "--check", path], capture_output=True, text=True)
        if ": cut: " in info.stdout + info.stderr:
            cut.add(path)
        elif info.returncode:
            said.append(f"{path}: gotrace info: {info.stdout}{info.stderr}".strip())
    for format, some in formats(p for p in paths if p not in cut).items():
        for go in {max(gotools.readers_of(format)), min(gotools.readers_of(format))}:
            said += in_parts([gotools.read_all(gotools.versions()[go])], some)
    return len(paths), said, sorted(map(str, cut))


def in_parts(argv, paths, most=500):
    said = []
    for i in range(0, len(paths), most):
        result = subprocess.run([*argv, *paths[i : i + most]], capture_output=True, text=True)
        said += result.stdout.splitlines() + result.stderr.splitlines()
        if result.returncode:
            said.append(f"{argv[0]} ended with {result.returncode}")
    return said
