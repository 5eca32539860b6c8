"""Which room of the tree may need which: by the symbols of their objects, as the linker sees them."""

import collections
import pathlib

import pytest

from lib import BUILD, LIBRARY, ROOT, proc

pytestmark = pytest.mark.beside

# What commands share, and what they share with the library: its options' names are in preload/.
TOOL = {"scripts", "scripts/tool/report", "scripts/tool/names", "encoder/base", "encoder", "encoder/read", "symbolize", "preload"}
ROOMS = {  # folder: the folders that it may need, besides itself
    "encoder/base": set(),
    "encoder/read": {"encoder/base", "encoder"},
    "symbolize": {"encoder/base"},
    "encoder/v1": {"encoder/base", "encoder"},
    "encoder": {"encoder/base", "encoder/v1"},
    **{f"scripts/tool/{name}": TOOL for name in ("why", "sql", "export")},
    "scripts/tool/stacks": TOOL | {"scripts/tool/recover"},
    "scripts/tool/report": TOOL | {"scripts/tool/recover"},
    "scripts/tool/names": TOOL - {"scripts/tool/report"} | {"scripts/tool/recover"},
    "scripts/tool/attach": {*TOOL, "scripts/tool/stacks"},
    "scripts/tool/recover": {*TOOL, "encoder/v1"} - {"scripts/tool/names", "scripts/tool/report"},
    "scripts/tool/rewrite": {*TOOL, "encoder/v1"},
}


def room(path):
    """The innermost room that the object is in."""
    return max((r for r in [*ROOMS, "preload", "scripts"] if path.is_relative_to(r)), key=len)


@pytest.fixture(scope="module")
def symbols():
    """(room → symbols that its objects need, symbol → rooms that define it)"""
    needs, defines = collections.defaultdict(set), collections.defaultdict(set)
    for top in ("preload", "encoder", "symbolize", "scripts"):
        for path in (BUILD / top).rglob("*.o"):
            where = room(path.relative_to(BUILD))
            for line in proc.run(["nm", "--format=posix", path]).ok().stdout.splitlines():
                name, kind = line.split()[:2]
                if not name.startswith("gt_"):
                    continue  # libc's, which preload/ defines, too
                if kind == "U":
                    needs[where].add(name)
                elif kind.isupper():
                    defines[name].add(where)
    return needs, defines


@pytest.mark.parametrize("where", ROOMS)
def test_needs(symbols, where):
    needs, defines = symbols
    assert needs[where], "nothing was built"
    for name in needs[where]:
        assert not defines[name] or defines[name] & {where, *ROOMS[where]}, f"{name} is in {defines[name]}"


def test_our_code_calls_no_hook(symbols):
    """Not by name; what libc calls for us is for test_debug.py."""
    lines = proc.run(["nm", "-D", "--defined-only", "--format=posix", LIBRARY]).ok().stdout.splitlines()
    hooks, called = {line.split()[0] for line in lines}, {}
    for top in ("preload", "encoder", "symbolize"):
        for path in (BUILD / top).rglob("*.o"):
            if room(path.relative_to(BUILD)) != "encoder/read":  # which is not in the library
                lines = proc.run(["nm", "-u", "--format=posix", path]).ok().stdout.splitlines()
                called |= {name: path.stem for name in (line.split()[0] for line in lines) if name in hooks}
    assert "pthread_mutex_lock" in hooks
    # Where gt_syscall, gt_symbolize_jump, gt_stat, gt_lstat and gt_fstat point until the real ones are known.
    assert called == {"syscall": "futex", "longjmp": "elfutils", "stat": "libc", "lstat": "libc", "fstat": "libc"}


def test_a_forked_child_starts_anew():
    """What says how its state is reset stands in one of the two tables."""
    objects = [path for top in ("preload", "encoder", "symbolize") for path in (BUILD / top).rglob("*.o")]
    lines = {path: proc.run(["nm", "--format=posix", path]).ok().stdout.splitlines() for path in objects}
    resets = {line.split()[0] for its in lines.values() for line in its if " T " in line and "_after_fork" in line}
    called = {line.split()[0] for path, its in lines.items() if path.stem == "fork" for line in its}
    assert len(resets) > 20 and resets <= called, resets - called


def test_folders_are_rooms():
    """A new folder has to say what it may need."""
    sources = [p for top in ("encoder", "symbolize", "scripts/tool") for p in (ROOT / top).rglob("*.c")]
    sources = {p.parent.relative_to(ROOT).as_posix() for p in sources}
    assert sources - {"scripts/tool"} == set(ROOMS)
