"""Reports speak of the program's own code: places, names, idle threads; and of the wanted part of a trace."""

import collections
import json
import re
import signal

import pytest

from lib import PROGRAMS, ROOT, SANITIZER, SINGLE, SOURCES, gotools, proc
from lib.reports import ns_of, table

GOTRACE = ROOT / "build/gotrace"
IDLE = re.compile(r"^idle: (\d+) waits, (\S+), where threads come back to wait for work: (.*) \(--idle=none", re.M)
HOME = {"XDG_CONFIG_HOME": "/nonexistent"}


def report(*argv, env=None):
    return proc.run([GOTRACE, *argv], env=HOME | (env or {})).ok().stdout


def top(trace, *options, env=None):
    """(ns, count, kind, place) of each row."""
    document = json.loads(report("top", "--json", "--kind=all", "-n", "100000", *options, trace, env=env))
    tables = [document] if "waits" in document else document["by_thread"]
    return [(row["total_ns"], row["count"], row["kind"], row["place"]) for its in tables for row in its["waits"]]


def places(trace, *options, env=None):
    return {place for _, _, kind, place in top(trace, "--idle=none", *options, env=env) if kind != "sched"}


# --- places


@pytest.mark.parametrize("flags", [["-g", "-O1"], ["-g0", "-O1"]], ids=["lines", "symbols"])
@pytest.mark.long
@pytest.mark.alone
def test_the_library_of_cxx_is_no_place(traced, tmp_path, flags):
    """Whoever waits by std::future, std::call_once and the like is who called that."""
    program = proc.compile(SOURCES / "places/library.cc", tmp_path / "prog", "-std=c++17", *flags, compiler="g++")
    trace = traced([program]).ok().trace
    found = {re.sub(r" \((prog|library).*\)$", "", place) for place in places(trace)}
    assert "pthread_join <- asynchronous()" in found, found
    assert found >= {"futex wait <- promised()", "futex wait <- packaged()", "pthread_cond_wait <- await()"}, found
    assert {place for place in found if place.startswith("pthread_once")} <= {"pthread_once <- only_once()"}
    callers = {place.split(" <- ")[-1] for place in found}
    assert not {c for c in callers if re.match(r"std::|__|start_thread|libstdc|libc", c)}, found
    assert all("std::" not in place for place in found), found


def test_ends_of_threads(traced, tmp_path):
    """The waker of a join is the ended thread, not the destructor in which that is noticed."""
    program = proc.compile(SOURCES / "places/library.cc", tmp_path / "prog", "-std=c++17", compiler="g++")
    text = report("top", "--wakers", "--kind=sync", traced([program]).ok().trace)
    ends = re.findall(r"pthread_join <- .*, ended by (.*)", text)
    assert ends and all(re.match(r"the end of thread \d+ \(.+\)|the ends of threads", end) for end in ends), text


@pytest.mark.needs("rustc")
@pytest.mark.parametrize("flags", [[], ["-g"]], ids=["symbols", "lines"])
@pytest.mark.long
@pytest.mark.alone
def test_the_library_of_rust_is_no_place(traced, tmp_path, flags):
    proc.run(["rustc", "-O", *flags, "-o", tmp_path / "prog", SOURCES / "places/places.rs"], timeout=60).ok()
    found = places(traced([tmp_path / "prog"]).ok().trace)
    assert any(re.match(r"futex wait <- places::consume ", place) for place in found), found
    # up to Rust 1.61 its Mutex is libc's
    assert any(re.match(r"(futex wait|pthread_mutex_lock) <- places::locked ", place) for place in found), found
    assert any(re.match(r"pthread_join <- places::main ", place) for place in found), found
    assert not [place for place in found if re.search(r"<- (start_thread|clone|core::|alloc::)", place)], found


@pytest.mark.parametrize("level", [2, 3])
def test_the_headers_of_libc_are_no_place(traced, tmp_path, level):
    """As distributions build: what calls the headers' inline function is the place, at its own line."""
    flags = ["-O2", "-U_FORTIFY_SOURCE", f"-D_FORTIFY_SOURCE={level}"]
    program = proc.compile(SOURCES / "places/fortified.c", tmp_path / "prog", *flags)
    result = traced([program], env={"GOTRACE_SYSCALLS": "all"}).ok()
    made = dict(line.split() for line in result.stdout.splitlines())
    found = re.findall(r"^(\S+) <- (\w+) \((.*):(\d+)\)$", "\n".join(places(result.trace)), re.M)
    assert not [where for where in found if where[2] != "fortified.c"], found
    assert {function: line for _, function, _, line in found if function != "main"} == made
    wrapped = {function for call, function, *_ in found if call.startswith("__")}
    assert len(wrapped) >= 15, found  # the headers did wrap them


def test_functions_named_like_those_of_runtimes_are_places(traced, tmp_path):
    """Also where the program is stripped, and has only the names of what it exports."""
    flags = ["-O1", "-fno-optimize-sibling-calls", "-rdynamic", "-s"]
    program = proc.compile(SOURCES / "places/like_runtimes.cc", tmp_path / "prog", *flags, compiler="g++")
    found = [place for place in places(traced([program]).ok().trace) if place.startswith("usleep <- ")]
    named = {place.split()[2] for place in found if "+0x" not in place}
    assert named == {"Monitor::wait_for_change()", "Pyre_step"} and len(found) == 4, found


@pytest.fixture(scope="module")
def like_libcxx(tmp_path_factory):
    """The waits and the threads' routines of a program that waits as libc++ does."""
    directory, source = tmp_path_factory.mktemp("libcxx"), SOURCES / "places/like_libcxx.cc"
    library = proc.compile(source, directory / "libc++.so.1", "-shared", "-fPIC", "-DLIBRARY", "-Wl,-soname,libc++.so.1", compiler="g++")
    flags = ["-std=c++17", "-fno-optimize-sibling-calls", library, f"-Wl,-rpath,{directory}"]
    trace = proc.traced([proc.compile(source, directory / "prog", *flags, compiler="g++")], directory / "t.out").ok().trace
    routines = [row["routine"] for row in table(report("info", trace), "routine", "unseen")]
    return [row for row in top(trace, "--idle=none") if row[2] != "sched"], routines


@pytest.mark.measured
def test_a_wait_of_libcxx_is_one_wait(like_libcxx):
    """The library wakes the thread every 2 s to look at the variable."""
    ((ns, count, kind, _),) = [row for row in like_libcxx[0] if re.match(r"futex wait <- until_woken\(\) ", row[3])]
    assert count == 1 and ns > 2.1e9 and kind == "sync"


@pytest.mark.measured
def test_a_wait_of_libcxx_that_nobody_ends(like_libcxx):
    """The thread finds the variable changed after 2 s. What it does then is no part of the wait."""
    rows = {row[3].split(" (")[0]: row for row in like_libcxx[0] if "until_changed" in row[3]}
    assert rows["futex wait <- until_changed()"][:2] > (1.9e9, 0)
    assert rows["usleep <- until_changed()"][1:3] == (1, "sleep")


@pytest.mark.measured
def test_polling_of_libcxx_is_no_sleep(like_libcxx):
    """At a barrier it sleeps until all are there, four times here: for the program one wait for other threads, at its own line."""
    assert [row[1:3] for row in like_libcxx[0] if row[3].startswith("nanosleep <- Functor::operator()")] == [(1, "sync")]


@pytest.fixture(scope="module")
def libcxx(tmp_path_factory):
    """Flags for the libc++ of clang's version, unpacked: its package does not go with libunwind-dev, which we are built with."""
    root = tmp_path_factory.mktemp("libcxx")
    version = proc.run(["clang++", "-dumpversion"]).ok().stdout.split(".")[0]
    names = [name.format(version) for name in ("libc++-{}-dev", "libc++1-{}", "libc++abi-{}-dev", "libc++abi1-{}", "libunwind-{}")]
    proc.run(["apt-get", "-o", "APT::Sandbox::User=root", "download", *names], cwd=root, timeout=120).ok()
    for package in root.glob("*.deb"):
        proc.run(["dpkg-deb", "-x", package, root]).ok()
    llvm = root / f"usr/lib/llvm-{version}"
    return ["-nostdinc++", "-isystem", llvm / "include/c++/v1", "-nostdlib++", f"-L{llvm}/lib", "-Wl,--disable-new-dtags", f"-Wl,-rpath,{llvm}/lib", "-lc++", "-lc++abi"]


@pytest.mark.foreign
@pytest.mark.needs("clang++", "apt-get")
def test_each_wait_at_a_barrier_of_libcxx_is_one_wait(libcxx, traced, tmp_path):
    """Two threads wait in eight rounds for a third one, once in each round, however often the library sleeps."""
    program = proc.compile(SOURCES / "places/barrier.cc", tmp_path / "prog", "-std=c++20", *libcxx, compiler="clang++")
    rows = [row for row in top(traced([program]).ok().trace, "--idle=none") if "meet_others" in row[3] and row[2] != "sched"]
    assert [row[1:3] for row in rows] == [(16, "sync")], rows


def test_threads_of_libcxx_have_the_name_of_what_they_run(like_libcxx):
    assert sorted(like_libcxx[1]) == ["Functor", "main", "main::{lambda#1}", "until_changed()", "until_woken()"]


@pytest.fixture
def wrapped(traced, tmp_path):
    """A trace of a program that waits in a library of its own."""
    library = proc.compile(SOURCES / "places/wraps.c", tmp_path / "libwrap.so", "-shared", "-fPIC", "-fno-optimize-sibling-calls")
    program = proc.compile(SOURCES / "places/wrapped.c", tmp_path / "prog", library, f"-Wl,-rpath,{tmp_path}", "-fno-optimize-sibling-calls")
    return traced([program]).ok().trace


def test_the_programs_own_libraries(wrapped):
    (place,) = places(wrapped)
    assert place == "usleep <- wrap_sleep (wraps.c:6)"
    (place,) = places(wrapped, "--frames=2")
    assert place == "usleep <- wrap_sleep (wraps.c:6) < outer_sleep (wraps.c:11)"
    (place,) = places(wrapped, "--frames=9")
    assert place.endswith(" < outer_sleep (wraps.c:11) < request (wrapped.c:6) < main (wrapped.c:11)")


def test_skipped(wrapped):
    for skip, site in [("libwrap.so", "request (wrapped.c:6)"), ("^wrap_", "outer_sleep (wraps.c:11)"), ("wrap_|outer_", "request (wrapped.c:6)")]:
        assert places(wrapped, f"--skip={skip}") == {f"usleep <- {site}"}
    # Nothing of the program's is left: the best there is.
    (place,) = places(wrapped, "--skip=.")
    assert re.match(r"usleep <- \w+ \(", place)


def test_rules_of_the_user(wrapped, tmp_path):
    """In a file that is named, or in the user's configuration. A bad line is reported once."""
    rules = tmp_path / "rules"
    rules.write_text("# ours\n\nskip module /libwrap[.]so$\nbusy  function  ^x y$\n")
    assert places(wrapped, env={"GOTRACE_FRAMES": rules}) == {"usleep <- request (wrapped.c:6)"}
    config = tmp_path / "config/gotrace/frames"
    config.parent.mkdir(parents=True)
    config.write_text("library,skip source wraps".replace("source", "file"))
    assert places(wrapped, env={"XDG_CONFIG_HOME": tmp_path / "config"}) == {"usleep <- request (wrapped.c:6)"}
    config.write_text("skip function wrap_\nown file wraps")
    assert places(wrapped, env={"XDG_CONFIG_HOME": tmp_path / "config"}) == {"usleep <- wrap_sleep (wraps.c:6)"}
    for bad in "skip it", "hop function x", "skip function (", "skip module", "skip":
        rules.write_text(f"skip function fine\n{bad}\n")
        result = proc.run([GOTRACE, "top", wrapped], env={"GOTRACE_FRAMES": rules})
        assert result.returncode == 2 and result.stdout == "", (bad, result)
        assert result.stderr.startswith(f"gotrace: {rules}:2: ") and result.stderr.count("\n") == 1, (bad, result)
    result = proc.run([GOTRACE, "top", wrapped], env={"GOTRACE_FRAMES": tmp_path / "none"})
    assert result.returncode == 2 and f"{tmp_path / 'none'}: No such file" in result.stderr


@pytest.mark.parametrize("option", ["--skip=(", "--focus=[", "--thread=*", "--idle=(", "--frames=0", "--frames=x", "--from=soon", "--to=1x"])
def test_options_that_say_nothing(wrapped, option):
    result = proc.run([GOTRACE, "top", option, wrapped])
    assert result.returncode == 2 and result.stderr.startswith(f"gotrace: {option}: ") and not result.stdout, result


@pytest.mark.parametrize("format", gotools.some("go1.7", of=["go1.7", "go1.21", "go1.23", "go1.26"]))
def test_which_module_is_the_program(traced, tmp_path, format):
    """Where it lies among the system's libraries, too, also by another name, and its own directory's libraries with it."""
    (tmp_path / "lib").mkdir()
    program = proc.compile(SOURCES / "places/wrapped.c", tmp_path / "prog", "-Douter_sleep=usleep")
    (tmp_path / "other").symlink_to("prog")
    rules = tmp_path / "rules"
    rules.write_text(f"library module ^{tmp_path}/")
    for name in "prog", "other":
        trace = traced([tmp_path / name], env={"GOTRACE_FORMAT": format}).ok().trace
        assert f"{program}/{tmp_path / name}".encode() in trace.read_bytes()
        assert places(trace, env={"GOTRACE_FRAMES": rules}) == {"usleep <- request (wrapped.c:6)"}


# --- names


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def trace_of(*names):
    """A trace in which functions of those names, outermost last, end a wait."""
    texts = [b"x", b"f.c", *(name.encode() for name in names)]
    events = [25, 0, 1, 7, 2, 25, 0, 2, (1 << 64) - 1, 4, 21, 0, 2, 1, 1]
    strings = [4, *[part for i, text in enumerate(texts, 1) for part in (5, i, len(text), text)]]
    frames = [part for i in range(len(names)) for part in (8192 + i, 3 + i, 2, 7)]
    stacks = [2, 3, 1, 1 + len(names), 4096, 1, 2, 1, *frames]
    trace = b"go 1.25 trace".ljust(16, b"\0")
    for batch in (events, strings, stacks, [50, 8, 1_000_000, 51, 0, 0, 1000, 0]):
        data = b"".join(item if isinstance(item, bytes) else varint(item) for item in batch)
        trace += varint(1) + varint(1) + varint(7) + varint(1000) + varint(len(data)) + data
    return trace


def place_of(path, *names, env=None):
    """The function that ended the wait, for reports."""
    path.write_bytes(trace_of(*names))
    text = report("top", "--wakers", "--kind=all", path, env=env)
    return re.search(r"ended by x <- (.*) \(f\.c:7\)$", text, re.M)[1]


NAMES = {
    "main": "main",
    "f(int, char const*)": "f(int, char const*)",
    "f(unsigned long, unsigned long, unsigned long)": "f(…)",
    "ns::insert(std::vector<int, std::allocator<int> >&)": "ns::insert(…)",
    "Pool<std::vector<int>, 3>::run()": "Pool<…>::run()",
    "Pool::Pool(int)::{lambda(int)#1}": "Pool::Pool::{lambda#1}",
    "(anonymous namespace)::work()::{lambda()#2}::operator()() const": "(anon)::work::{lambda#2}() const",
    "(anonymous namespace)::f": "(anon)::f",
    "Scheduler::Start()::{lambda(void*)#1}::_FUN(void*)": "Scheduler::Start::{lambda#1}",
    "f[abi:cxx11](std::__cxx11::basic_string<char>)": "f(…)",
    "std::__1::find[abi:ne210000]<int*, int>(int*)": "std::find<…>(int*)",
    "operator<(A const&, B const&)": "operator<(A const&, B const&)",
    "S::operator<< <int>(T<int>)": "S::operator<< <…>(T<int>)",
    "S::operator()(int)": "S::operator()(int)",
    "S::operator->()": "S::operator->()",
    "std::unique_ptr<S, std::default_delete<S> >::operator->() const": "std::unique_ptr<…>::operator->() const",
    "std::__1::thread::join()": "std::thread::join()",
    "compute.isra.0": "compute",
    "main._omp_fn.0": "main._omp_fn.0",
    "app::serve::h0123456789abcdef": "app::serve",
    "app::serve::hello": "app::serve::hello",
    "app::main::{{closure}}": "app::main::{closure}",
    "<app::Server as core::ops::Drop>::drop": "app::Server::drop",
    "<app::Pool<T> as app::Run<u8>>::run": "app::Pool<…>::run",
    "<app::Worker>::run": "app::Worker::run",
    "app::map::<alloc::vec::Vec<u8>, u32>": "app::map<…>",
    "core::ops::function::FnOnce::call_once{{vtable.shim}}": "core::ops::function::FnOnce::call_once",
    "std::_Function_handler<void (), go(int)::{lambda()#1}>::_M_invoke(std::_Any_data const&)": "go::{lambda#1}",
    "std::__1::__thread_proxy<std::__1::tuple<std::__1::unique_ptr<A, D<A> >, main::$_0> >(void*)": "main::$_0",
    "std::__1::__thread_proxy<std::__1::tuple<std::__1::unique_ptr<A>, std::__1::function<void (int)>, int> >(void*)": "std::function<…>",
    "std::__1::__thread_proxy<std::__1::tuple<std::__1::unique_ptr<A>, void (S::*)(), S*, std::__1::__async_func<Job, int> > >(void*)": "Job",
    "std::__1::__thread_proxy<": "std::__thread_proxy<…>",
    "sync.(*Mutex).Lock": "sync.(*Mutex).Lock",
    "x<y": "x<…>",
    "": "",
}


def test_names_fit_a_line(tmp_path):
    assert {name: place_of(tmp_path / "t.out", name) for name in NAMES} == NAMES


# Functions that are never the place: what starts threads, under each name that a symbol table has for it, and runtimes' own.
NO_PLACES = [
    *["start_thread", "clone", "__clone", "__GI___clone", "clone3", "__clone3", "__GI___clone3", "__clone_internal"],
    *["__GI___clone_internal", "__clone3_internal", "__clone_internal_fallback", "__libc_start_call_main", "__libc_start_main@@GLIBC_2.34", "__libc_start_main_alias_2"],
    *["__libc_start_main_impl", "_start", "__start_context", "execute_native_thread_routine"],
    "std::this_thread::sleep_for<long, std::ratio<1l, 1l> >(std::chrono::duration<long, std::ratio<1l, 1l> > const&)",
    "std::__1::__libcpp_thread_poll_with_backoff[abi:ne210000]<F, std::__1::__libcpp_timed_backoff_policy>(F&&)",
    "std::__1::__thread_proxy[abi:v15000]<std::__1::tuple<std::__1::unique_ptr<T>, main::$_0> >(void*)",
    *["tbb::detail::r1::wait(tbb::detail::d1::wait_context&, tbb::detail::d1::task_group_context&)", "tbb::internal::x()"],
    "tbb::detail::d1::start_for<R, B, P>::run(R const&)",
    "_ZNSt3__116__thread_executeB8ne210108INS_10unique_ptrIiEEPFvvEJETpTnmJEEEvRNS_5tupleIJT_T0_DpT1_EEE",
    *["core::sync::atomic::AtomicUsize::load", "std::sys::sync::mutex::futex::Mutex::lock_contended"],
    *["_PySemaphore_Wait", "_PyParkingLot_Park", "pthread_cond_wait", "gomp_team_barrier_wait_end"],
]


@pytest.mark.parametrize("name", NO_PLACES)
def test_names_that_are_no_place(tmp_path, name):
    (tmp_path / "rules").write_text("library function ^of_a_library$")
    for function in "work", "of_a_library":
        env = {"GOTRACE_FRAMES": tmp_path / "rules"}
        assert place_of(tmp_path / "t.out", name, function, name, env=env) == function


@pytest.mark.parametrize("stack, place", [
    (["of_a_library", "prog+0x2904", "main"], "of_a_library"),
    (["within_a_library", "of_a_library", "prog+0x2904", "prog+0x1000"], "of_a_library"),
    (["pthread_cond_wait", "prog+0x2904"], "prog+0x2904"),
    (["of_a_library", "work", "prog+0x2904"], "work"),
])
def test_a_librarys_name_says_more_than_an_address(tmp_path, stack, place):
    """In a stripped program, the place is the library's function that the program calls."""
    (tmp_path / "rules").write_text("library function _a_library$")
    assert place_of(tmp_path / "t.out", *stack, env={"GOTRACE_FRAMES": tmp_path / "rules"}) == place


@pytest.mark.parametrize("part", ["namespace", "нэйм_спэйс"])
def test_long_names_keep_their_end(tmp_path, part):
    """As many parts as fit, whatever bytes their characters take."""
    name = "::".join(f"{part}_{i}" for i in range(20)) + "::Class::method()"
    (tmp_path / "t.out").write_bytes(trace_of(name))
    short = re.search(r"ended by x <- (.*) \(f", report("top", "--wakers", "--kind=all", tmp_path / "t.out"))[1]
    assert short.startswith(f"…::{part}_") and short.endswith("::Class::method()") and 72 - len(f"::{part}_10") < len(short) <= 72
    assert f"x <- {name} (f.c:7)" in report("top", "--wide", "--wakers", "--kind=all", tmp_path / "t.out")


@pytest.mark.parametrize("name", ["<" * 300, "a<b" * 200, "f((((", "std::__thread_proxy<unique_ptr<", "std::__thread_proxy::__async_func<", "x::<", "<a as ", "{lambda(", "{{closure", "std::f<{lambda(", "operator" * 90])
def test_odd_names(tmp_path, name):
    (tmp_path / "t.out").write_bytes(trace_of(name))
    proc.run([ROOT / "build/asan/gotrace", "top", "--wakers", "--kind=all", tmp_path / "t.out"], env=SANITIZER).ok()


# --- a part of the trace


def totals(rows):
    total = collections.Counter()
    for ns, _, kind, place in rows:
        total[kind, place] += ns
    return total


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.21", "go1.23"])
def test_times_are_cut_exactly(traced, format):
    """What is before a time and what is after it make the whole; a row is what programs say it is."""
    trace = traced([PROGRAMS / "truth"], env={"GOTRACE_FORMAT": format}).ok().trace
    cuts = ["0.03", "70ms", "123456us", "0.2"]
    whole = totals(top(trace, "--idle=none"))
    parts = collections.Counter()
    for start, end in zip([None, *cuts], [*cuts, None]):
        options = [f"--from={start}"] * (start is not None) + [f"--to={end}"] * (end is not None)
        parts += totals(top(trace, "--idle=none", *options))
    assert parts.keys() == whole.keys()
    for key, ns in whole.items():
        assert abs(parts[key] - ns) <= 0.002 * ns + 10, (key, parts[key], ns)
    assert max(ns for ns, *_ in top(trace, "--idle=none", "--from=30ms", "--to=31ms", "--by-thread")) <= 1e6
    for command in ["top", "why"]:
        past = proc.run([GOTRACE, command, "--from=1000", trace])
        assert past.returncode == 1 and not past.stdout and past.stderr.endswith(", and 1000 is 1000.0s\n")
        assert f"{trace}: --from=1000 is after its end: it lasts " in past.stderr


@pytest.mark.measured
def test_threads_and_focus(traced):
    trace = traced([PROGRAMS / "truth"]).ok().trace
    lock = [row for row in top(trace, "--idle=none", "--kind=sync") if " <- lock_waiter " in row[3]]
    assert top(trace, "--idle=none", "--kind=sync", "--focus=^lock_waiter$") == lock
    assert lock and all(row[3].startswith("pthread_") for row in lock)
    assert {row[3] for row in top(trace, "--idle=none", "--thread=^lock_waiter$", "--kind=sync")} == {row[3] for row in lock}
    assert top(trace, "--thread=nobody") == []
    named = [row["thread"] for row in json.loads(report("info", "--json", "--thread=^lock_waiter$", trace))["by_thread"]]
    assert {thread["routine"] for thread in named} == {"lock_waiter"}
    assert "lock_waiter" in report("top", f"--thread={named[0]['tid']}", "--kind=all", trace)


@pytest.mark.measured
@pytest.mark.parametrize("format", gotools.some(of=["go1.11", "go1.21", "go1.23"]))
def test_tasks(traced, tmp_path, format):
    """What a thread does in a region of that name, and from the first to the last that it says of a task."""
    program = SINGLE / "places/tasks"
    trace = traced([program], env={"GOTRACE_FORMAT": format}).ok().trace
    rows = {place.split(" <- ")[1].split()[0]: (ns, count) for ns, count, kind, place in top(trace, "--idle=none", "--task=wanted") if kind != "sched"}
    assert set(rows) == {"inside", "main"}, rows  # main's join, which is inside of its task
    assert rows["inside"][1] == 2 and 40e6 <= rows["inside"][0] < 80e6
    assert {r[3].split(" <- ")[1].split()[0] for r in top(trace, "--task=part") if r[2] == "sleep"} == {"inside"}
    result = proc.run([GOTRACE, "top", "--task=nothing", trace]).ok()
    assert "there is no task and no region called nothing" in result.stderr and "; 0 waits" in result.stdout
    result = proc.run([GOTRACE, "top", "--thread=nobody", trace]).ok()
    assert result.stderr == f"gotrace: {trace}: no thread has the name, routine or number nobody; gotrace info {trace} lists them\n"
    empty = tmp_path / "empty.out"
    empty.write_bytes(b"go 1.23 trace".ljust(16, b"\0"))
    assert proc.run([GOTRACE, "top", "--task=nothing", empty]).ok().stderr == f"gotrace: {empty}: there is no task and no region called nothing\n"
    assert "0 CPU samples; gotrace --cpu-hz=100 … records them\n" in proc.run([GOTRACE, "top", "--cpu", trace]).ok().stdout


# --- idle


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A trace of a pool of workers, and what its threads spent where: name → ns."""
    directory = tmp_path_factory.mktemp("pool")
    program = proc.compile(SOURCES / "places/pool.c", directory / "prog", "-fno-inline")
    result = proc.traced([program], directory / "t.out").ok()
    return result.trace, {name: int(ns) for name, ns in map(str.split, result.stdout.splitlines())}


@pytest.mark.measured
def test_idle_workers_are_no_rows(pool):
    """What they wait for at their loop is one line; locks, answers and room in a queue stay."""
    trace, spent = pool
    rows = totals(top(trace))
    sites = {place.split(" <- ")[1].split()[0] for kind, place in rows if kind == "sync"}
    assert sites >= {"put", "write_down", "fetch", "main"}, sites
    assert not [key for key in rows if key[0] == "sync" and re.match("pthread_cond_wait <- (take|backend) ", key[1])], rows
    count, ns, where = IDLE.search(report("top", trace)).groups()
    assert "pthread_cond_wait <- take (pool.c:" in where and "backend (pool.c:" in where, where
    measured = spent["take"] + spent["answer"]
    # The program's clock also counts until it has a CPU, and the mutex, again.
    besides = sum(row[0] for row in top(trace) if row[2] == "sched" or re.search(r"_lock <- (take|backend) ", row[3]))
    assert 0.9 * measured - besides - 20e6 <= ns_of(ns) <= measured + 20e6, (ns, besides, spent)
    everything = report("top", "--idle=none", trace)
    assert not IDLE.search(everything) and "pthread_cond_wait <- take (" in everything
    assert int(count) == sum(row[1] for row in top(trace, "--idle=none", "--kind=sync") if re.search(r"pthread_cond_wait <- (take|backend) ", row[3]))


def columns(trace, *options):
    """thread's routine → [{column: percent}]"""
    kinds = ["sync", "network", "syscall", "sleep", "other"] if "--wide" in options else ["blocked", "calls"]
    names, found = ["on CPU", "runnable", "idle", *kinds, "unseen"], collections.defaultdict(list)
    for row in table(report("info", *options, trace), "routine", *names):
        found[row["routine"]].append({name: float(row[name].rstrip("%")) for name in names})
    return found


@pytest.mark.measured
def test_the_columns_are_the_time(pool):
    trace, _ = pool
    for options in [], ["--wide"], ["--idle=none"], ["--idle=^put$"]:
        found = columns(trace, *options)
        assert sum(map(len, found.values())) == 6
        for row in (row for rows in found.values() for row in rows):
            assert abs(sum(row.values()) - 100) <= 0.06 * len(row), (options, row)
    assert list(columns(trace)["main"][0]) == ["on CPU", "runnable", "idle", "blocked", "calls", "unseen"]
    assert all(row["idle"] > 10 and row["blocked"] > 10 for row in columns(trace)["worker"]), columns(trace)
    assert all(row["idle"] == 0 for rows in columns(trace, "--idle=none").values() for row in rows)
    main = columns(trace)["main"][0]
    assert main["idle"] == 0 and main["blocked"] > 10  # it waits for threads


@pytest.mark.measured
def test_who_is_idle_can_be_told(pool):
    trace, _ = pool
    assert "write_down" not in IDLE.search(report("top", "--idle=fetch|write_down", trace))[3]  # a lock
    assert re.search("<- fetch ", IDLE.search(report("top", "--idle=fetch|write_down", trace))[3])
    assert not [row for row in top(trace, "--kind=sync", "--idle=fetch") if "cond_wait <- fetch" in row[3]]


def test_workers_below_many_layers_are_idle(traced):
    """A thread that waits at one place only, for another one, is idle there, however deep that is."""
    trace = traced([SINGLE / "places/layers", "pool"]).ok().trace
    assert not [row for row in top(trace, "--kind=sync") if "cond_wait" in row[3]], report("top", trace)
    assert "pthread_cond_wait <- take (layers.c:" in IDLE.search(report("top", trace))[3]


def test_a_sleep_in_a_request_is_not_idle(traced):
    trace = traced([SINGLE / "places/layers", "sleeper"]).ok().trace
    assert [row for row in top(trace) if row[3].startswith("usleep <- nap ")], report("top", trace)


@pytest.mark.measured
@pytest.mark.parametrize(
    "mode, where",
    [(["dispatcher"], "sem_wait <- await "), (["dispatcher", "ended"], "sem_wait <- await "), (["launcher"], "pthread_join <- main ")],
)
def test_a_thread_that_waits_from_beginning_to_end_is_idle(traced, mode, where):
    trace = traced([SINGLE / "places/layers", *mode]).ok().trace
    assert where in IDLE.search(report("top", trace))[3], report("top", trace)


def test_a_joined_thread_that_waits_once_for_a_late_event_is_not_idle(traced):
    trace = traced([SINGLE / "places/layers", "late"]).ok().trace
    assert [row for row in top(trace, "--kind=sync") if row[3].startswith("sem_wait <- await ")], report("top", trace)


@pytest.mark.measured
@pytest.mark.parametrize("where, awaited", [("thread", "joined"), ("thread", "request"), ("process", "reaped")])
def test_a_thread_or_process_that_only_its_timer_wakes_is_idle(tmp_path, where, awaited):
    """Unless another thread waits for the end of the thread or process, or nothing tells timeouts from those of a request."""
    trace = tmp_path / "t.out"
    for mode in where, awaited:
        proc.run([GOTRACE, "-f", "-o", trace, "--", SINGLE / "places/timers", mode]).ok()
        rows = [row[3] for row in top(trace, "--kind=sync,network") if re.search(r"<- (wait|poll)_", row[3])]
        assert any("_with_timeout " in row for row in rows) if mode == awaited else not rows, (mode, report("top", trace))


@pytest.mark.measured
@pytest.mark.parametrize("mode", ["serves", "ready", "asks"])
def test_requests_from_outside_are_work_however_deep_they_are_read(traced, mode):
    """A program that makes no connection only reads requests; a program that makes one reads answers."""
    trace = traced([SINGLE / "places/connections", mode], env={"LD_BIND_NOW": "1"}).ok().trace  # so that accepts are short
    read = [row for row in top(trace, "--kind=network") if row[3].startswith("read <- read_one ")]
    taken = [row for row in top(trace, "--kind=sync") if row[3].startswith("pthread_cond_wait <- take ")]
    assert bool(read) == (mode == "asks") and not taken, report("top", trace)


def test_input_below_other_input_is_an_answer(traced):
    """Though the program makes no connection: it asks over a pair of sockets."""
    trace = traced([SINGLE / "places/connections", "relays"]).ok().trace
    read = {row[3].split(" <- ")[1].split()[0] for row in top(trace, "--kind=network")}
    assert "read_answer" in read and "read_one" not in read, report("top", trace)


@pytest.mark.measured
def test_input_is_no_request_where_the_trace_begins_later(traced, tmp_path):
    """The program may have made connections before."""
    trace = traced([SINGLE / "places/connections", "serves"]).ok().trace
    proc.run([GOTRACE, "cut", "--from=10ms", trace, "-o", tmp_path / "later.out"]).ok()
    assert [row for row in top(tmp_path / "later.out", "--kind=network") if row[3].startswith("read <- read_one ")], report("top", trace)


@pytest.mark.measured
def test_reads_of_what_events_announce_are_no_rest(traced):
    """They do not wait; the wait for events does, farther from the loop."""
    trace = traced([SINGLE / "places/connections", "events"], env={"GOTRACE_SYSCALLS": "all"}).ok().trace
    assert "epoll_wait <- wait_below (connections.c:" in IDLE.search(report("top", trace))[3], report("top", trace)


@pytest.mark.measured
def test_a_process_that_only_waits_for_its_children_to_do_the_work_is_idle(tmp_path):
    """It waits for events and signals from its beginning to its end, though it is the first process."""
    trace = tmp_path / "t.out"
    proc.run([GOTRACE, "-f", "-o", trace, "--", SINGLE / "places/master", "events"]).ok()
    assert "ppoll <- main (master.c:" in IDLE.search(report("top", trace))[3], report("top", trace)


def test_a_process_that_waits_for_another_program_is_not_idle(traced):
    """Its only thread does nothing but wait: it is not what does the work."""
    trace = traced([SINGLE / "places/master", "batch"]).ok().trace
    assert [row for row in top(trace, "--kind=network") if row[3].startswith("poll <- run_batch ")], report("top", trace)


@pytest.mark.measured
@pytest.mark.parametrize("how", ["family", "alone", "stopped"])
def test_a_process_that_only_waits_for_signals_is_idle(tmp_path, how):
    """The work of its children takes the time: `why` says so, or where their traces are. It is idle for `why` if no child ended its wait."""
    trace, program = tmp_path / "t.out", SINGLE / "places/master"
    if how == "family":
        proc.run([GOTRACE, "-f", "-o", trace, "--", program]).ok()
    else:
        result = proc.traced([program, *["stopped"] * (how == "stopped")], trace, env={"GOTRACE_CHILDREN": "all"})
        assert result.returncode == (-signal.SIGALRM if how == "stopped" else 0), result
    assert "sigsuspend <- main (master" in IDLE.search(report("top", trace))[3], report("top", trace)
    assert not [row for row in top(trace) if row[3].startswith("sigsuspend")]
    why = json.loads(report("why", "--json", trace))
    if how == "family":
        assert why["path"]["rows"][0]["function"] == "work", why["path"]
    else:
        begin = "Idle" if how == "stopped" else "Limited by the sender of a signal"
        assert why["answer"].startswith(f"{begin}: main waited for a signal in"), why["answer"]
        assert f"gotrace why {trace}.PID" in why["answer"]


@pytest.mark.measured
@pytest.mark.parametrize("lock", [[], ["semaphore"]], ids=["mutex", "semaphore"])
def test_a_sleep_with_a_lock_is_not_idle(traced, lock):
    """A thread whose lock another one waits for is not idle; one that sleeps without a lock is."""
    trace = traced([SINGLE / "places/sleeper", *lock]).ok().trace
    asleep = {place.split(" <- ")[1].split()[0]: ns for ns, _, kind, place in top(trace) if kind == "sleep"}
    assert asleep["holder"] > 90e6, top(trace)
    assert "usleep <- periodic " in IDLE.search(report("top", "--kind=sleep", trace))[3]


@pytest.mark.measured
def test_who_waits_for_results_is_not_idle(traced):
    trace = traced([SINGLE / "places/batches"]).ok().trace
    (main,) = [row for row in top(trace, "--kind=sync") if row[3].startswith("pthread_cond_wait <- main ")]
    assert main[0] > 40e6
    assert "pthread_cond_wait <- worker " in IDLE.search(report("top", trace))[3]


@pytest.mark.measured
def test_answers_are_not_idle(traced):
    """Clients of a slow thread wait just as it does, from their loops; but they ask, and have woken it first."""
    trace = traced([SINGLE / "places/answers"]).ok().trace
    waits = {row[3].split(" <- ")[1].split()[0]: row for row in top(trace, "--kind=sync") if "cond_wait" in row[3]}
    assert waits["call"][0] > 100e6, waits
    assert "server" not in waits or waits["server"][1] < 3, waits  # who is always asked comes back to no place
    assert not IDLE.search(report("top", trace)) or "call" not in IDLE.search(report("top", trace))[3]


@pytest.mark.measured
@pytest.mark.parametrize(
    "scenario, where",
    [
        ("counter", "pthread_cond_wait <- take_ticket "),
        ("pooled", "pthread_cond_wait <- get_connection "),
        ("binary", "sem_wait <- keeper "),
    ],
)
def test_waits_for_a_slot_are_not_idle(traced, scenario, where):
    """Those who wait for one wake each other, from their loops, and it is no work."""
    trace = traced([PROGRAMS / "whys", scenario]).ok().trace
    assert any(row[3].startswith(where) for row in top(trace, "--kind=sync")), report("top", trace)


@pytest.mark.measured
def test_who_passes_work_on_is_idle(traced):
    """Workers that give each other work wait for work; who finds a queue full does not, whoever was woken first."""
    trace = traced([SINGLE / "places/passed"]).ok().trace
    passed = IDLE.search(report("top", trace))
    assert passed and "pthread_cond_wait <- take " in passed[3], report("top", trace)
    assert [row for row in top(trace, "--kind=sync") if row[3].startswith("pthread_cond_wait <- add ")], report("top", trace)


def built_without_symbols(directory, scenario):
    """`purposes` as a library without symbols, called by a program; and rules that say that it is a library."""
    library = proc.compile(SOURCES / "places/purposes.c", directory / "libpurposes.so", "-shared", "-fPIC", "-fvisibility=hidden", "-DLIBRARY", "-s")
    (directory / "rules").write_text("library module /libpurposes\\.so$\n")
    text = "void purposes_run(const char *); int main(int n, char **argv) { purposes_run(argv[n - 1]); return 0; }\n"
    program = proc.compile(text, directory / "prog", library, f"-Wl,-rpath,{directory}")
    return [program, scenario], {"GOTRACE_FRAMES": directory / "rules"}


@pytest.mark.parametrize("symbols", [True, False])
def test_purposes_of_one_place_are_judged_apart(tmp_path, symbols):
    """A worker waits for work, for answers and for a time through one function each, or one library: only the first is idle."""
    if symbols:
        argv, env = [proc.compile(SOURCES / "places/purposes.c", tmp_path / "prog"), "wrapper"], None
    else:
        argv, env = built_without_symbols(tmp_path, "wrapper")
    trace = proc.traced(argv, tmp_path / "t.out").ok().trace
    everything = report("top", trace, env=env)
    rows = {place.split(" <- ")[0]: count for _, count, _, place in top(trace, "--kind=sync", env=env) if "pthread_cond_" in place}
    assert rows.keys() == {"pthread_cond_wait", "pthread_cond_timedwait"}, everything
    assert all(40 <= count < 80 for count in rows.values()), everything  # 40 each, but for spurious wake-ups
    assert "pthread_cond_wait <- " in IDLE.search(everything)[3], everything


def waits_of(directory, *flags, scenario="", source="purposes.c", compiler="gcc"):
    """Count of each call that is not idle, of each that is; and all of `gotrace top`."""
    program = proc.compile(SOURCES / "places" / source, directory / "prog", *flags, compiler=compiler)
    trace = proc.traced([program, scenario], directory / "t.out").ok().trace
    rests = [collections.Counter() for _ in range(2)]
    for waits, options in (rests[0], []), (rests[1], ["--idle=none"]):
        for _, count, kind, place in top(trace, *options):
            waits[place.split(" <- ")[0]] += count if kind != "sched" else 0
    return rests[0], rests[1] - rests[0], report("top", "--kind=all", trace)


@pytest.mark.parametrize("flags", [["-O0"], ["-O2", "-s"]], ids=["symbols", "stripped"])
def test_threads_that_ask_each_other_through_one_function_are_not_alike(tmp_path, flags):
    """The first wake-up tells who asks whom, before the routines are known: requests are idle, answers and sleeps are not."""
    busy, idle, everything = waits_of(tmp_path, *flags, scenario="wrapper")
    assert busy["usleep"] == 40 and 40 <= busy["pthread_cond_wait"] < 60 <= idle["pthread_cond_wait"], everything


def test_threads_of_two_templates_are_not_alike(tmp_path):
    """std::thread starts both pools, and one function waits for jobs and answers. Routines have names of their own."""
    busy, idle, everything = waits_of(tmp_path, "-O0", source="pools.cc", compiler="g++")
    assert busy["usleep"] == 80 and 40 <= busy["pthread_cond_wait"] < 60 <= idle["pthread_cond_wait"], everything


def test_a_wait_that_times_out_is_no_rest_beside_a_wait_for_work(tmp_path):
    busy, idle, everything = waits_of(tmp_path, scenario="limits")
    assert busy["pthread_cond_timedwait"] >= 40 <= idle["pthread_cond_wait"] and not idle["pthread_cond_timedwait"], everything


def test_the_sleeps_of_a_thread_that_rarely_gets_work_are_not_idle(tmp_path):
    busy, _, everything = waits_of(tmp_path, scenario="rare")
    assert busy["usleep"] == 80, everything


def test_commands_agree_on_what_is_idle(tmp_path):
    """When the trace ends, of two workers at one place one waits for a mutex that has an owner."""
    program = proc.compile(SOURCES / "places/purposes.c", tmp_path / "prog")
    trace = proc.traced([program, "held"], tmp_path / "t.out").ok().trace
    still = re.findall(r"^ +[\d.]+.?s  sync +thread .*$", report("top", trace), re.M)
    assert len(still) == 2 and ["(idle)" in line for line in still].count(True) == 1, report("top", trace)
    sums = [json.loads(report(*argv, "--json", trace))["idle"] for argv in (["top", "--kind=all"], ["info"])]
    (found,) = json.loads(report("sql", "--json", trace, "SELECT count(*) AS count, sum(ns) AS total_ns FROM idle_waits"))
    assert found["count"] >= 40 and [(its["count"], its["total_ns"]) for its in sums] == 2 * [(found["count"], found["total_ns"])]


def test_threads_of_a_trampoline_are_not_alike(tmp_path):
    """A reader that waits for room, and workers, begin in one routine without a name: the reader's waits are not idle."""
    program = proc.compile(SOURCES / "places/purposes.c", tmp_path / "prog", "-s")
    trace = proc.traced([program, "trampoline"], tmp_path / "t.out").ok().trace
    everything = report("top", trace)
    assert any(place.startswith("pthread_cond_timedwait <- prog+0x") for _, _, _, place in top(trace, "--kind=sync")), everything


@pytest.mark.measured
@pytest.mark.parametrize("mode, why", [("deadlock", "mutex"), ("missed", "cond")])
def test_what_hangs_is_not_idle(traced, mode, why):
    """Neither who waits for a lock when the trace ends, nor who waits for a signal that was sent to nobody."""
    trace = traced([SINGLE / "places/hangs", mode]).ok().trace
    text = report("top", trace)
    still = re.findall(r"^ +[\d.]+m?s  sync +thread .*$", text, re.M)
    assert len([line for line in still if why in line]) >= (2 if mode == "deadlock" else 1), text
    assert "(idle)" not in text and not IDLE.search(text), text
    assert all(row["idle"] == 0 for rows in columns(trace).values() for row in rows), columns(trace)
