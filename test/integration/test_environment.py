"""The program's environment is its own: its strings stay where they are, in their order, whatever switch is set."""

import re

import pytest

from lib import PROGRAMS, ROOT, proc

TITLES = PROGRAMS / "titles"
WAYS = re.findall(r'{"(\w+)", \w+}', (ROOT / "test/prog/titles.c").read_text())
SWITCHES = [{}, {"GOTRACE_CHILDREN": "all"}, {"GOTRACE_MAX_PROCESSES": "0"}, {"GOTRACE_RING": "1M"}, {"GOTRACE": "off"}]
CLEARED = {"clears", "has_none"}  # then children are not traced: LD_PRELOAD is gone, too


@pytest.fixture
def places(tmp_path):
    """Two directories to begin in, each with one to go to."""
    for name in "bare", "traced":
        (tmp_path / name / "elsewhere").mkdir(parents=True)
    return tmp_path / "bare", tmp_path / "traced"


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(f"{k[8:]}{v}" for k, v in s.items()) or "default")
@pytest.mark.parametrize("way", WAYS)
def test_as_bare(places, way, switches):
    """The way in which a program takes its environment for its title, or changes it, ends as without the library."""
    bare_in, traced_in = places
    bare = proc.run([TITLES, way], cwd=bare_in).ok()
    traced = proc.traced([TITLES, way], "t.out", env={"GOTRACE_QUIET": "1", **switches}, cwd=traced_in).ok()
    assert bare.stdout.startswith("as given: 1\n")
    assert traced.stdout == bare.stdout


@pytest.mark.parametrize("way", WAYS)
def test_children_have_names_of_their_own(places, way):
    """However it made them, and although it has changed its directory: their traces lie beside its own."""
    _, place = places
    result = proc.traced([TITLES, way], "t.out", cwd=place).ok()
    files = {path.name for path in place.iterdir()} - {"elsewhere"}
    assert not list((place / "elsewhere").iterdir())
    assert all(re.fullmatch(r"t\.out(\.\d+)?", name) for name in files), files
    assert len(files) == (1 if way in CLEARED else 5), (files, result.stderr)


def test_pattern_of_its_own(places):
    """A descendant that is given another relative pattern takes that from where it begins."""
    _, place = places
    command = f"cd elsewhere; GOTRACE_OUTPUT=own.out exec {TITLES} child"
    proc.traced(["sh", "-c", command], "t.out", cwd=place).ok()
    assert [path.name for path in place.glob("elsewhere/own.out*")]
    command = f"cd elsewhere; {TITLES} child; {TITLES} child"
    proc.traced(["sh", "-c", command], "u.out", cwd=place).ok()
    assert len(list(place.glob("u.out.*"))) == 2
