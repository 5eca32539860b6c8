"""Cgroups that tests make: a test is skipped where none can be made."""

import contextlib
import os
import pathlib

import pytest

from . import proc

MOUNTS = pathlib.Path("/sys/fs/cgroup")


@contextlib.contextmanager
def group(controller):
    """A cgroup of that controller, version 1, to whose files the test writes."""
    with below(MOUNTS / controller, 1) as path:
        yield path


@contextlib.contextmanager
def below(root, version):
    """A cgroup. What is left in it goes back to the one above."""
    path = root / f"gotrace-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as e:
        pytest.skip(f"no cgroup of version {version} can be made here: {e}")
    try:
        yield path
    finally:
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (root / "cgroup.procs").write_text(pid)
        path.rmdir()


UNIFIED = next((path for path in (MOUNTS / "unified", MOUNTS) if (path / "cgroup.procs").exists()), MOUNTS / "unified")
FREEZERS = {  # by version: where it is, how a group is frozen and thawed, and what then says so
    1: (MOUNTS / "freezer", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"),
    2: (UNIFIED, "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"),
}


@contextlib.contextmanager
def frozen(pid, version=1):
    """The process, all of whose threads stand still."""
    root, switch, freeze, thaw, state, is_frozen = FREEZERS[version]
    with below(root, version) as path:
        (path / "cgroup.procs").write_text(str(pid))
        (path / switch).write_text(freeze)
        try:
            proc.until(lambda: is_frozen in (path / state).read_text())
            yield
        finally:
            (path / switch).write_text(thaw)
