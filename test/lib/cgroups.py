"""Cgroups that tests make, of version 1: a test is skipped where none can be made."""

import contextlib
import os
import pathlib

import pytest

from . import proc


@contextlib.contextmanager
def group(controller):
    """A cgroup of that controller, to whose files the test writes. What is left in it goes back to the one above."""
    path = pathlib.Path(f"/sys/fs/cgroup/{controller}/gotrace-test-{os.getpid()}")
    try:
        path.mkdir()
    except OSError as e:
        pytest.skip(f"no cgroup of version 1 can be made here: {e}")
    try:
        yield path
    finally:
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (path.parent / "cgroup.procs").write_text(pid)
        path.rmdir()


@contextlib.contextmanager
def frozen(pid):
    """The process, all of whose threads stand still."""
    with group("freezer") as path:
        (path / "cgroup.procs").write_text(str(pid))
        (path / "freezer.state").write_text("FROZEN")
        try:
            proc.until(lambda: "FROZEN" in (path / "freezer.state").read_text())
            yield
        finally:
            (path / "freezer.state").write_text("THAWED")
