"""Names of functions, files and lines in a trace, however the program was built, stripped or unloaded."""

import os
import re
import shutil
import subprocess

import pytest

from lib import LIBRARY, PROGRAMS, ROOT, SINGLE, SOURCES, gotools, proc
from lib.reports import GOTRACE

SOURCE = SOURCES / "symbols/inlined.c"
INLINED = [("inner", 13), ("middle", 18), ("outer", 24)]


def frames(trace):
    """The frames above nanosleep in each wait, as (function, file, line)."""
    events = gotools.parse(trace)
    waits = [e for e in events if e.is_go("Running", "Waiting") and e.stack[0].func == "nanosleep"]
    return [[(f.func, f.file, f.line) for f in e.stack[1:]] for e in waits]


def functions_and_lines(stack):
    return [(func, line) for func, _, line in stack]


@pytest.mark.parametrize(
    "flags", [["-pie", "-fPIE"], ["-no-pie"], ["-gdwarf-4"], ["-gdwarf-5"], ["-gz"], ["-O2", "-fomit-frame-pointer"]]
)
def test_inlined_frames_with_debug_information(traced, tmp_path, flags):
    program = proc.compile(SOURCE, tmp_path / "prog", "-DROUNDS=1", *flags)
    (stack,) = frames(traced([program]).ok().trace)
    assert functions_and_lines(stack)[:3] == INLINED
    assert stack[0][1].endswith("inlined.c") and stack[3][0] == "main"


def test_function_within_a_function(traced):
    """GNU C: its code lies elsewhere than that of the one it stands in."""
    program = SINGLE / "symbols/nested"
    (stack,) = frames(traced([program]).ok().trace)
    assert functions_and_lines(stack)[:2] == [("nested", 8), ("main", 10)]


def test_debuglink(traced, tmp_path):
    program = proc.compile(SOURCE, tmp_path / "prog", "-DROUNDS=1")
    proc.run(["objcopy", "--only-keep-debug", program, tmp_path / "prog.debug"]).ok()
    proc.run(["strip", program]).ok()
    proc.run(["objcopy", f"--add-gnu-debuglink={tmp_path}/prog.debug", program]).ok()
    (stack,) = frames(traced([program]).ok().trace)
    assert functions_and_lines(stack)[:3] == INLINED


def test_mini_debug_information(traced, tmp_path):
    """.gnu_debugdata: a compressed symbol table."""
    program = proc.compile(SOURCE, tmp_path / "prog", "-DROUNDS=1")
    proc.run(["objcopy", "-S", "--keep-symbol=outer", "--keep-symbol=main", program, tmp_path / "mini"]).ok()
    proc.run(["xz", "-k", tmp_path / "mini"]).ok()
    proc.run(["strip", program]).ok()
    proc.run(["objcopy", f"--add-section=.gnu_debugdata={tmp_path}/mini.xz", program]).ok()
    (stack,) = frames(traced([program]).ok().trace)
    assert [func for func, _, _ in stack[:2]] == ["outer", "main"]


def test_stripped(traced, tmp_path):
    """Dynamic symbols where there are any, else module+offset; the file is the module."""
    program = proc.compile(SOURCE, tmp_path / "prog", "-DROUNDS=1", "-rdynamic")
    proc.run(["strip", program]).ok()
    (stack,) = frames(traced([program]).ok().trace)
    assert stack[0] == ("outer", str(program), 0)
    bare = proc.compile(SOURCE, tmp_path / "bare", "-DROUNDS=1")
    proc.run(["strip", bare]).ok()
    (stack,) = frames(traced([bare]).ok().trace)
    assert stack[0][0].startswith("bare+0x") and stack[0][1] == str(bare)


def test_libraries_unloaded_before_symbolization(traced, tmp_path):
    """Three libraries in turn, likely at one address, all gone when the trace is written."""
    libraries = []
    for i in range(3):
        libraries.append(proc.compile(SOURCE, tmp_path / f"lib{i}.so", f"-Dmiddle=middle{i}", "-shared", "-fPIC"))
    stacks = frames(traced([PROGRAMS / "loader", *libraries]).ok().trace)
    expected = [[(f.replace("middle", f"middle{i}"), line) for f, line in INLINED] for i in range(3)]
    assert [functions_and_lines(s)[:3] for s in stacks] == expected


def test_replaced_file_is_not_used(traced, tmp_path):
    """A library whose file became another one after it was loaded: no names rather than wrong ones."""
    library = proc.compile(SOURCE, tmp_path / "lib.so", "-shared", "-fPIC")
    proc.compile(SOURCE, tmp_path / "other.so", "-Douter=wrong", "-shared", "-fPIC")
    source = "#include <stdio.h>\n" + (ROOT / "test/prog/loader.c").read_text()
    source = source.replace("outer();", "outer(); rename(argv[2], argv[1]); return 0;")
    loader = proc.compile(source, tmp_path / "loader", "-ldl")
    (stack,) = frames(traced([loader, library, tmp_path / "other.so"]).ok().trace)
    assert stack[0][0].startswith("lib.so+0x"), stack


def test_deep_recursion_is_cut_at_128_frames(traced, tmp_path):
    source = (
        "#include <time.h>\nint down(int n) { struct timespec t = {0, 1000}; "
        "return n ? down(n - 1) + 1 : nanosleep(&t, 0); }\nint main(void) { return down(500) - 500; }\n"
    )
    program = proc.compile(source, tmp_path / "prog", "-fno-optimize-sibling-calls")
    (stack,) = frames(traced([program]).ok().trace)
    assert len(stack) == 127 and {func for func, _, _ in stack} == {"down"}


@pytest.mark.needs("rustc")
@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_rust_names(traced, tmp_path, mangling):
    letter = "C" if "symbol-mangling-version" in proc.run(["rustc", "-C", "help"]).stdout else "Z"  # up to Rust 1.58
    flags = ["-g", "-Zunstable-options", f"-{letter}symbol-mangling-version={mangling}"]
    # one of the two is always the unstable option of its compiler's version
    env = {"RUSTC_BOOTSTRAP": "1"}
    proc.run(["rustc", *flags, "-o", tmp_path / "prog", SOURCES / "symbols/p.rs"], env=env, timeout=50).ok()
    result = traced([tmp_path / "prog"]).ok()
    names = {f.func for e in gotools.parse(result.trace) for f in e.stack}
    assert any(n.startswith("p::app::inner::work") for n in names), sorted(names)
    assert not any(n.startswith(("_R", "_ZN")) for n in names)


def started(start, tmp_path):
    """How the program `file`, which has the links `dir/called`, is started; and what it is to be called."""
    file, link = tmp_path / "file", tmp_path / "dir" / "called"
    loader = re.search(r"interpreter: (\S+)\]", proc.run(["readelf", "-lW", file]).ok().stdout)[1]
    other, script = tmp_path / "other", tmp_path / "script"
    if start == "link to a link":
        other.symlink_to(link)
    if start == "script":
        script.write_text(f"#!{link}\n")
        script.chmod(0o755)
    return {
        "file": ([file], file),
        "link": ([link], link),
        "link to a link": ([other], other),
        "relative": (["./dir/called"], link),
        "script": ([script], file),
        "loader": ([loader, link], link),
        "descriptor": (["bash", "-c", f"exec 9<{file}; exec /proc/self/fd/9"], file),
    }[start]


STARTS = ["file", "link", "link to a link", "relative", "script", "loader", "descriptor"]


@pytest.mark.parametrize("start", STARTS)
def test_called_as_it_was_started(traced, tmp_path, start):
    """By the link's name, if that is how the program was started, and not by other names the kernel has for it."""
    file = proc.compile(SOURCE, tmp_path / "file", "-DROUNDS=1")
    proc.run(["strip", file]).ok()
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "called").symlink_to(file)
    argv, called = started(start, tmp_path)
    (stack,) = frames(traced(argv, cwd=tmp_path).ok().trace)
    assert stack[0][0].startswith(f"{called.name}+0x"), stack
    assert stack[0][1] == str(called)


@pytest.mark.parametrize("start", ["link", "loader"])
def test_link_that_leads_elsewhere_now(traced, tmp_path, start):
    """The file of which the names are is the one that runs, in the trace and when they are filled in later."""
    source = SOURCE.read_text().replace("nanosleep", 'if (rename("other", "dir/called")) nanosleep(&ms, 0); nanosleep')
    file = proc.compile("#include <stdio.h>\n" + source, tmp_path / "file", "-DROUNDS=1", "-Wl,--build-id=none")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "called").symlink_to(file)
    wrong = proc.compile(SOURCE, tmp_path / "wrong", "-DROUNDS=1", "-Douter=wrong", "-Wl,--build-id=none")
    (tmp_path / "other").symlink_to(wrong)
    proc.run(["strip", "--strip-debug", file]).ok()
    shutil.copy(file, tmp_path / "whole")
    argv, called = started(start, tmp_path)
    proc.run(["strip", file]).ok()
    result = traced(argv, cwd=tmp_path).ok()
    (stack,) = frames(result.trace)
    assert os.readlink(called) == str(wrong)
    assert stack[0][0].startswith("called+0x") and stack[0][1] == str(called), stack
    shutil.copy(tmp_path / "whole", file)
    proc.run([ROOT / "scripts/gotrace", "symbolize", result.trace]).ok()
    (stack,) = frames(result.trace)
    assert [(func, path) for func, path, _ in stack[:2]] == [("outer", str(called)), ("main", str(called))]


def test_libdw_that_gives_up(traced, tmp_path):
    """An assertion of libdw's costs names, no more: in a program's only thread, which ends the recording, it is no jump."""
    names = re.findall(r"^GT_DW\((\w+)\)", (ROOT / "symbolize/elf/elfutils.def").read_text(), re.M)
    stubs = {name: f"void *{name}(void) {{ abort(); }}" for name in names}
    stubs["elf_version"] = "int elf_version(void) { return 1; }"
    libdw = ["#include <stdlib.h>", *stubs.values(), 'int lzma_stream_buffer_decode(void) { return 1; }']
    proc.compile("\n".join(libdw), tmp_path / "libdw.so.1", "-shared", "-fPIC")
    program = proc.compile(SOURCE, tmp_path / "prog", "-DROUNDS=300")
    result = traced([program], env={"LD_LIBRARY_PATH": tmp_path, "GOTRACE_DURATION": "100ms"}).ok()
    assert "nothing lost" in result.stderr, result.stderr
    stacks = frames(result.trace)
    assert stacks
    for stack in stacks:
        assert [func for func, _, _ in stack[:2]] == ["outer", "main"], "no symbols, or libdw was another one"


def test_a_large_library_that_is_made_shorter(tmp_path):
    """Its debug information is mapped, not copied. Who strips the file in place must not end the program, which would go on without us."""
    large = proc.compile(SOURCES / "symbols/large.c", tmp_path / "liblarge.so", "-shared", "-fPIC", "-g0")
    argv = [proc.compile(SOURCES / "symbols/waits_in.c", tmp_path / "program", f"-L{tmp_path}", "-llarge", f"-Wl,-rpath,{tmp_path}")]
    env = {"LD_PRELOAD": LIBRARY, "GOTRACE_OUTPUT": tmp_path / "t.out", "GOTRACE_RING": "4M"}
    child = proc.spawn(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for n, name in enumerate(("first", "second")):
        assert child.stdout.readline() == "waited\n"
        proc.run([GOTRACE, "snapshot", child.pid, tmp_path / f"{n}.out"]).ok()
        sites = {frame.func for event in gotools.parse(tmp_path / f"{n}.out") for frame in event.stack}
        assert n or name in sites, sites
        os.truncate(large, 1 << 20)
        child.stdin.write("\n")
        child.stdin.flush()
    assert child.wait(30) == 0
