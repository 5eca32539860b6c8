"""Which room of the tree may need which: by the includes of their files, and by the symbols of their objects."""

import collections
import pathlib
import re

import pytest

from lib import BUILD, LIBRARY, ROOT, proc

FORMATS = {"encoder/base", "encoder/format"}
THREADS = {*FORMATS, "encoder/thread"}
CPUS = {*THREADS, "encoder/cpu"}
FILES = {*CPUS, "encoder/file", "encoder/file/v1"}
ENCODER = {*FILES, "encoder/drain"}
SYMBOLIZE = {f"symbolize{room}" for room in ("", "/elf", "/dwarf", "/made", "/python")}
HEADERS = {"preload", "preload/tables"}  # have no objects
# From the lowest to the highest: a room may need those before it.
PRELOAD = ["preload", *(f"preload/{room}" for room in (
    "tables shared bind stacks process registry thread control heap waits life hooks commands top".split()))]
UPWARD = "gt_upward"  # the table of the calls that go up: preload/upward.h
# What commands share, and what they share with the library: options, and the names of hooks.
TOOL = {"encoder/base", "encoder/format", "encoder/read", "scripts/tool", *SYMBOLIZE, "preload/shared"}
REPORT = {*TOOL, "scripts/tool/report"}
COMMANDS = {f"scripts/tool/{name}" for name in "report why html sql export rewrite names doctor recover stacks attach".split()}
ROOMS = {  # folder: the folders that it may need, besides itself
    "encoder/base": set(),
    "encoder/format": {"encoder/base"},
    "encoder/thread": FORMATS,
    "encoder/cpu": THREADS,
    "encoder/file": CPUS,
    "encoder/file/v1": FILES,
    "encoder/drain": FILES,
    "encoder/read": FORMATS,
    "symbolize/elf": {"encoder/base"},
    "symbolize/dwarf": {"encoder/base", "symbolize/elf"},
    "symbolize": {"encoder/base", "symbolize/elf", "symbolize/dwarf"},
    "symbolize/made": {"encoder/base", "symbolize", "symbolize/elf", "symbolize/dwarf"},
    "symbolize/python": {"encoder/base", "symbolize"},
    **{room: {*ENCODER, *SYMBOLIZE, *PRELOAD[:below]} for below, room in enumerate(PRELOAD) if room not in HEADERS},
    "scripts/tool": {"encoder/base", "encoder/drain", "encoder/read", "preload/shared"},
    "scripts/tool/launch": {*TOOL, *ENCODER, *COMMANDS},  # the table of commands
    "scripts/tool/recover": {*TOOL, *ENCODER},
    "scripts/tool/names": {*TOOL, "encoder/file/v1", "scripts/tool/recover"},
    "scripts/tool/report": {*TOOL, "scripts/tool/names", "scripts/tool/recover"},
    "scripts/tool/rewrite": {*REPORT, *ENCODER},
    **{f"scripts/tool/{name}": REPORT for name in ("why", "sql", "export")},
    "scripts/tool/html": {*REPORT, "scripts/tool/rewrite"},  # what it contains, other processes print
    "scripts/tool/doctor": {*TOOL, "scripts/tool/attach"},  # whether attaching works
    "scripts/tool/stacks": {*REPORT, "scripts/tool/names", "scripts/tool/recover"},
    "scripts/tool/attach": {*TOOL, "scripts/tool/stacks"},
}
# How a writer is handed on in encoder/thread: a file needs only floors below its own. What is not named stands below all.
FLOORS = (
    {"events", "call"},  # say an event
    {"room"},  # have room in this generation: pin, buffers
    {"switch"},  # move to the next generation: the drain side, for all writers
    {"move"},  # and one writer, by its owner or by the drain side
    {"states"},  # what is written there: a generation's last events, and the statuses of the next one
    {"put"},  # how an event is written
)
SOURCES = {".c", ".h", ".def"}
PRODUCT = ("encoder", "preload", "symbolize", "scripts/tool")


def room(path):
    """The innermost room that the file or object is in."""
    return max((r for r in [*ROOMS, *HEADERS] if path.is_relative_to(r)), key=len)


@pytest.fixture(scope="module")
def includes():
    """File → files that it includes."""
    files = {p.relative_to(ROOT) for top in PRODUCT for p in (ROOT / top).rglob("*") if p.suffix in SOURCES}
    found = {}
    for path in files:
        names = re.findall(r'^\s*#\s*include "([^"]+)"', (ROOT / path).read_text(), re.M)
        beside = {path.parent / name for name in names}
        found[path] = (beside | {type(path)(name) for name in names}) & files
    return found


def circles(needs):
    """Strongly connected components of more than one node."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in needs[node]:
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            at = stack.index(node)
            found.append(set(stack[at:]))
            del stack[at:]

    for node in list(needs):
        if node not in order:
            visit(node)
    return [circle for circle in found if len(circle) > 1]


def modules(includes):
    """NAME.c and NAME.h, as one, → those that they include."""
    def name(path):
        return re.sub(r"\.[ch]$", "", path.as_posix())

    needs = collections.defaultdict(set)
    for path, others in includes.items():
        needs[name(path)] |= {name(other) for other in others} - {name(path)}
    return needs


@pytest.mark.parametrize("where", ROOMS)
def test_includes(includes, where):
    for path, others in includes.items():
        if room(path) == where:
            wrong = {str(other) for other in others if room(other) not in {where, *ROOMS[where]}}
            assert not wrong, f"{path} includes {wrong}"


def test_no_circle(includes):
    assert not [circle for circle in circles(modules(includes)) if len(circle) > 3]


def test_circles_are_found():
    needs = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "e"}}
    assert sorted(map(sorted, circles(needs))) == [["a", "b", "c"], ["d", "e"]]


def climbs(needs):
    """(file, a file that it needs although that is not on a lower floor)"""
    def floor(path):
        return next((i for i, names in enumerate(FLOORS) if path.stem in names), len(FLOORS))

    def may(path, other):
        return path.stem == other.stem or floor(path) < floor(other) or floor(path) == floor(other) == len(FLOORS)

    inside = {path: {other for other in others if room(other) == "encoder/thread"}
              for path, others in needs.items() if room(path) == "encoder/thread"}
    return {(path.name, other.name) for path, others in inside.items() for other in others if not may(path, other)}


def test_a_writer_is_handed_down(includes):
    assert set().union(*FLOORS) <= {path.stem for path in includes if room(path) == "encoder/thread"}
    assert not climbs(includes)


def test_climbs_are_found():
    up, down, below, beside = (pathlib.Path(f"encoder/thread/{name}.h") for name in ("room", "move", "writer", "buffers"))
    needs = {up: {up, down, below}, down: {up, below}, below: {beside, down}, beside: {below}}
    assert climbs(needs) == {("move.h", "room.h"), ("writer.h", "move.h")}


def test_glibc_is_known_in_one_place(includes):
    """What it keeps inside its locks: `__data` in its headers."""
    files = {str(path) for path in includes if re.search(r"\b__data\b", (ROOT / path).read_text())}
    assert files == {"encoder/base/glibc.h", "encoder/base/glibc.c"}


def test_names_do_not_lead_back_to_reports(includes):
    """Reports have names looked up, and boxes recovered. What does that must not need a report, by any way."""
    needs = modules(includes)
    reached = {name for name in needs if name.startswith(("scripts/tool/names/", "scripts/tool/recover/"))}
    todo = list(reached)
    while todo:
        more = needs[todo.pop()] - reached
        reached |= more
        todo += more
    assert len(reached) > 100
    assert not [name for name in reached if name.startswith("scripts/tool/report/")]


@pytest.fixture(scope="module")
def table():
    """Object → (name, kind) of each of its symbols, by one nm for all: a process each takes twenty times as long."""
    paths = [path for top in PRODUCT for path in (BUILD / top).rglob("*.o")]
    found = {path.relative_to(BUILD): [] for path in paths}
    for line in proc.run(["nm", "-A", "--format=posix", *paths]).ok().stdout.splitlines():
        path, name, kind = re.match(r"(.*): (\S+) (\S)", line).groups()
        found[pathlib.Path(path).relative_to(BUILD)].append((name, kind))
    return found


def of_the_library(table):
    return {path: symbols for path, symbols in table.items() if not path.is_relative_to("scripts")}


@pytest.fixture(scope="module")
def objects(table):
    """(object → symbols that it needs, symbol → objects that define it)"""
    needs, defines = {}, collections.defaultdict(set)
    for path, symbols in table.items():
        ours = [(name, kind) for name, kind in symbols if name.startswith("gt_")]  # not libc's, which preload/ defines, too
        needs[path] = {name for name, kind in ours if kind == "U"}
        for name, kind in ours:
            if kind.isupper() and kind != "U":
                defines[name].add(path)
    return needs, defines


@pytest.fixture(scope="module")
def symbols(objects):
    """(room → symbols that its objects need, symbol → rooms that define it)"""
    needs = collections.defaultdict(set)
    for path, names in objects[0].items():
        needs[room(path)] |= names
    return needs, collections.defaultdict(set, {name: set(map(room, paths)) for name, paths in objects[1].items()})


@pytest.fixture(scope="module")
def calls(objects):
    """Object → objects whose symbols it needs."""
    return {path: {other for name in names for other in objects[1][name]} - {path} for path, names in objects[0].items()}


def test_no_large_circle_of_calls(objects, calls):
    """As files above. The table of the calls that go up (preload/upward.h) is left out."""
    needs = {path: others - objects[1][UPWARD] for path, others in calls.items()}
    assert not [sorted(map(str, circle)) for circle in circles(needs) if len(circle) > 3]


def test_a_writer_is_handed_down_by_calls(calls):
    assert not climbs(calls)


@pytest.mark.parametrize("where", ROOMS)
def test_symbols(symbols, where):
    needs, defines = symbols
    assert needs[where], "nothing was built"
    for name in needs[where] - {UPWARD}:
        assert not defines[name] or defines[name] & {where, *ROOMS[where]}, f"{name} is in {defines[name]}"


def test_our_code_calls_no_hook(table):
    """Not by name; what libc calls for us is for test_debug.py."""
    lines = proc.run(["nm", "-D", "--defined-only", "--format=posix", LIBRARY]).ok().stdout.splitlines()
    hooks, called = {line.split()[0] for line in lines}, {}
    for path, symbols in of_the_library(table).items():
        if room(path) != "encoder/read":  # which is not in the library
            called |= {name: path.stem for name, kind in symbols if kind in "Uwv" and name in hooks}
    assert "pthread_mutex_lock" in hooks
    assert called == {"longjmp": "elfutils"}  # where gt_symbolize_jump points until libc's own is known


def test_readers_neither_print_nor_end_the_program(table):
    """Without memory they call gt_reader_no_memory, which is abort until a program says otherwise."""
    needs = {(path.name, name) for path, symbols in table.items() if room(path) == "encoder/read" for name, kind in symbols if kind == "U"}
    ends = r"_?_?exit|_Exit|quick_exit|abort|raise|__assert_fail"
    prints = r"std(out|err)|(__)?v?d?printf(_chk)?|f?put(s|c|char)|perror|write|v?(err|warn)[cx]?"
    assert "malloc" in {name for _, name in needs}
    assert {(file, name) for file, name in needs if re.fullmatch(f"{ends}|{prints}", name)} <= {("need.o", "abort")}


def test_static_thread_local_storage():
    """glibc has about 1,700 bytes of it for the library and all plugins that need it."""
    headers = proc.run(["readelf", "-lW", LIBRARY]).ok().stdout
    assert int(re.search(r"^ *TLS +(?:\w+ +){4}(\w+)", headers, re.M)[1], 16) <= 192


def test_a_forked_child_starts_anew(table):
    """What says how its state is reset stands in one of the two tables."""
    objects = of_the_library(table)
    resets = {name for symbols in objects.values() for name, kind in symbols if kind == "T" and "_after_fork" in name}
    called = {name for path, symbols in objects.items() if path.stem in ("inherit", "child") for name, _ in symbols}
    assert len(resets) > 20 and resets <= called, resets - called


def test_names_stand_for_one_thing(includes):
    """A search for a tag or a file's name finds one place. Tags without our prefix are a file's own."""
    places = collections.defaultdict(list)
    for path in includes:
        if path.suffix != ".def":
            places[path.name].append(path)
        text = re.sub(r"/\*.*?\*/|__attribute__\s*\(\(.*?\)\)", "", (ROOT / path).read_text(), flags=re.S)
        for tag in re.findall(r"\b(?:struct|enum|union)\s+(gt_\w+)[^;(){}=]*\{", text):
            places[tag].append(path)
    assert len(places) > 1000
    assert not {name: sorted(map(str, paths)) for name, paths in places.items() if len(paths) > 1}


def test_folders_are_rooms():
    """A new folder has to say what it may need."""
    sources = [p for top in PRODUCT for p in (ROOT / top).rglob("*.c")]
    sources = {p.parent.relative_to(ROOT).as_posix() for p in sources}
    assert sources == set(ROOMS)


def test_arrows_go_one_way():
    """No two rooms need each other."""
    assert not [(a, b) for a, others in ROOMS.items() for b in others - {a} if a in ROOMS.get(b, set())]
