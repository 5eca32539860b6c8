"""Reports speak of the program's own code: places, names, who is idle; and of what part of a trace they do."""

import collections
import re

import pytest

from lib import PROGRAMS, ROOT, proc
from lib.reports import ns_of

GOTRACE = ROOT / "build/gotrace"
ROW = re.compile(r"^ *([\d.]+[mun]?s) +[\d.]+% +[\d.]+% +(\d+) +\S+ +\S+ +(\w+) +(.+)$", re.M)
IDLE = re.compile(r"^idle: (\d+) waits, (\S+), where threads come back to wait for work: (.*) \(--idle=none", re.M)
HOME = {"XDG_CONFIG_HOME": "/nonexistent"}


def report(*argv, env=None):
    return proc.run([GOTRACE, *argv], env=HOME | (env or {})).ok().stdout


def top(trace, *options, env=None):
    """(ns, count, kind, place) of each row."""
    text = report("top", "--kind=all", "-n", "100000", *options, trace, env=env)
    return [(ns_of(ns), int(count), kind, place) for ns, count, kind, place in ROW.findall(text)]


def places(trace, *options, env=None):
    return {place for _, _, kind, place in top(trace, "--idle=none", *options, env=env) if kind != "sched"}


# --- places


CXX = r"""
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
static std::once_flag once;
static std::mutex mutex;
static std::condition_variable changed;
static bool done;
static void slowly() { std::this_thread::sleep_for(20ms); }
__attribute__((noinline)) int asynchronous() { auto f = std::async(std::launch::async, [] { slowly(); return 1; }); return f.get(); }
__attribute__((noinline)) int promised()
{
    std::promise<int> p;
    auto f = p.get_future();
    std::thread t([&] { slowly(); p.set_value(1); });
    int r = f.get();
    t.join();
    return r;
}
__attribute__((noinline)) void packaged()
{
    std::packaged_task<int()> p([] { slowly(); return 1; });
    auto f = p.get_future();
    std::thread t(std::move(p));
    f.wait();
    t.join();
}
__attribute__((noinline)) void only_once() { std::call_once(once, slowly); }
__attribute__((noinline)) void await() { std::unique_lock<std::mutex> l(mutex); changed.wait(l, [] { return done; }); }
int main()
{
    asynchronous();
    promised();
    packaged();
    std::thread first(only_once), second(only_once), waiter(await);
    slowly();
    slowly();
    { std::lock_guard<std::mutex> l(mutex); done = true; }
    changed.notify_all();
    first.join();
    second.join();
    waiter.join();
}
"""


@pytest.mark.parametrize("flags", [["-g", "-O1"], ["-g0", "-O1"]], ids=["lines", "symbols"])
def test_the_library_of_cxx_is_no_place(traced, tmp_path, flags):
    """Whoever waits by std::future, std::call_once and the like is who called that."""
    program = proc.compile(CXX, tmp_path / "prog", "-std=c++17", *flags, compiler="g++")
    trace = traced([program]).ok().trace
    found = {re.sub(r" \(prog.*\)$", "", place) for place in places(trace)}
    assert "pthread_join <- asynchronous()" in found, found
    assert found >= {"futex wait <- promised()", "futex wait <- packaged()", "pthread_cond_wait <- await()"}, found
    assert {place for place in found if place.startswith("pthread_once")} <= {"pthread_once <- only_once()"}
    callers = {place.split(" <- ")[-1] for place in found}
    assert not {c for c in callers if re.match(r"std::|__|start_thread|libstdc|libc", c)}, found
    assert all("std::" not in place for place in found), found


def test_ends_of_threads(traced, tmp_path):
    """Who ends a join is told, not the destructor in which that is noticed."""
    program = proc.compile(CXX, tmp_path / "prog", "-std=c++17", compiler="g++")
    text = report("top", "--wakers", "--kind=sync", traced([program]).ok().trace)
    ends = re.findall(r"pthread_join <- .*, ended by (.*)", text)
    assert ends and all(re.match(r"the end of thread \d+ \(.+\)|the ends of threads", end) for end in ends), text


RUST = r"""
use std::sync::{mpsc, Arc, Mutex};
use std::{thread, time::Duration};
#[inline(never)]
fn consume(queue: mpsc::Receiver<u32>) -> u32 {
    let sum = queue.iter().sum();
    thread::sleep(Duration::from_millis(100)); // so that its end is waited for
    sum
}
#[inline(never)]
fn locked(m: &Mutex<u32>) { *m.lock().unwrap() += 1; }
fn main() {
    let (tx, rx) = mpsc::channel();
    let consumer = thread::spawn(move || consume(rx));
    let m = Arc::new(Mutex::new(0));
    let other = m.clone();
    let guard = m.lock().unwrap();
    let waiter = thread::spawn(move || locked(&other));
    thread::sleep(Duration::from_millis(30));
    drop(guard);
    tx.send(1).unwrap();
    drop(tx);
    println!("{}", consumer.join().unwrap());
    waiter.join().unwrap();
}
"""


@pytest.mark.needs("rustc")
@pytest.mark.parametrize("flags", [[], ["-g"]], ids=["symbols", "lines"])
def test_the_library_of_rust_is_no_place(traced, tmp_path, flags):
    (tmp_path / "prog.rs").write_text(RUST)
    proc.run(["rustc", "-O", *flags, "-o", tmp_path / "prog", tmp_path / "prog.rs"], timeout=60).ok()
    found = places(traced([tmp_path / "prog"]).ok().trace)
    assert any(re.match(r"futex wait <- prog::consume ", place) for place in found), found
    # up to Rust 1.61 its Mutex is libc's
    assert any(re.match(r"(futex wait|pthread_mutex_lock) <- prog::locked ", place) for place in found), found
    assert any(re.match(r"pthread_join <- prog::main ", place) for place in found), found
    assert not [place for place in found if re.search(r"<- (start_thread|clone|core::|alloc::)", place)], found


LIBRARY = """
#include <unistd.h>
void wrap_sleep(int us) { usleep(us); }
void outer_sleep(int us) { wrap_sleep(us); }
"""
USER = """
void outer_sleep(int us);
__attribute__((noinline)) void request(void) { outer_sleep(30000); }
int main(void) { request(); return 0; }
"""


@pytest.fixture
def wrapped(traced, tmp_path):
    """A trace of a program that waits in a library of its own."""
    library = proc.compile(LIBRARY, tmp_path / "libwrap.so", "-shared", "-fPIC", "-fno-optimize-sibling-calls")
    program = proc.compile(USER, tmp_path / "prog", library, f"-Wl,-rpath,{tmp_path}", "-fno-optimize-sibling-calls")
    return traced([program]).ok().trace


def test_the_programs_own_libraries(wrapped):
    (place,) = places(wrapped)
    assert place == "usleep <- wrap_sleep (libwrap.so.c:3)"
    (place,) = places(wrapped, "--frames=2")
    assert place == "usleep <- wrap_sleep (libwrap.so.c:3) < outer_sleep (libwrap.so.c:4)"
    (place,) = places(wrapped, "--frames=9")
    assert place.endswith(" < outer_sleep (libwrap.so.c:4) < request (prog.c:3) < main (prog.c:4)")


def test_skipped(wrapped):
    for skip, site in [("libwrap.so", "request (prog.c:3)"), ("^wrap_", "outer_sleep (libwrap.so.c:4)"), ("wrap_|outer_", "request (prog.c:3)")]:
        assert places(wrapped, f"--skip={skip}") == {f"usleep <- {site}"}
    # Nothing of the program's is left: the best there is.
    (place,) = places(wrapped, "--skip=.")
    assert re.match(r"usleep <- \w+ \(", place)


def test_rules_of_the_user(wrapped, tmp_path):
    """In a file that is named, or in the user's configuration; of which a bad line is told once."""
    rules = tmp_path / "rules"
    rules.write_text("# ours\n\nskip module /libwrap[.]so$\nbusy  function  ^x y$\n")
    assert places(wrapped, env={"GOTRACE_FRAMES": rules}) == {"usleep <- request (prog.c:3)"}
    config = tmp_path / "config/gotrace/frames"
    config.parent.mkdir(parents=True)
    config.write_text("library,skip source libwrap".replace("source", "file"))
    assert places(wrapped, env={"XDG_CONFIG_HOME": tmp_path / "config"}) == {"usleep <- request (prog.c:3)"}
    config.write_text("skip function wrap_\nown file libwrap")
    assert places(wrapped, env={"XDG_CONFIG_HOME": tmp_path / "config"}) == {"usleep <- wrap_sleep (libwrap.so.c:3)"}
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


@pytest.mark.parametrize("format", ["go1.7", "go1.21", "go1.23", "go1.26"])
def test_which_module_is_the_program(traced, tmp_path, format):
    """Where it lies among the system's libraries, too, also by another name, and its own directory's libraries with it."""
    (tmp_path / "lib").mkdir()
    source = USER.replace("outer_sleep(30000)", "usleep(30000)").replace("void outer_sleep(int us);", "#include <unistd.h>")
    program = proc.compile(source, tmp_path / "prog")
    (tmp_path / "other").symlink_to("prog")
    rules = tmp_path / "rules"
    rules.write_text(f"library module ^{tmp_path}/")
    for name in "prog", "other":
        trace = traced([tmp_path / name], env={"GOTRACE_FORMAT": format}).ok().trace
        assert f"{program}/{tmp_path / name}".encode() in trace.read_bytes()
        assert places(trace, env={"GOTRACE_FRAMES": rules}) == {"usleep <- request (prog.c:3)"}


# --- names


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def trace_of(name):
    """A trace in which a function of that name ends a wait."""
    names = [b"x", name.encode(), b"f.c"]
    events = [25, 0, 1, 7, 2, 25, 0, 2, (1 << 64) - 1, 4, 21, 0, 2, 1, 1]
    strings = [4, *[part for i, text in enumerate(names, 1) for part in (5, i, len(text), text)]]
    stacks = [2, 3, 1, 2, 4096, 1, 3, 1, 8192, 2, 3, 7]
    trace = b"go 1.25 trace".ljust(16, b"\0")
    for batch in (events, strings, stacks, [50, 8, 1_000_000, 51, 0, 0, 1000, 0]):
        data = b"".join(item if isinstance(item, bytes) else varint(item) for item in batch)
        trace += varint(1) + varint(1) + varint(7) + varint(1000) + varint(len(data)) + data
    return trace


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
    "sync.(*Mutex).Lock": "sync.(*Mutex).Lock",
    "x<y": "x<…>",
    "": "",
}


def test_names_fit_a_line(tmp_path):
    shown = {}
    for name in NAMES:
        (tmp_path / "t.out").write_bytes(trace_of(name))
        text = report("top", "--wakers", "--kind=all", tmp_path / "t.out")
        shown[name] = re.search(r"ended by x <- (.*) \(f\.c:7\)$", text, re.M)[1]
    assert shown == NAMES


def test_long_names_keep_their_end(tmp_path):
    name = "::".join(f"namespace_{i}" for i in range(20)) + "::Class::method()"
    (tmp_path / "t.out").write_bytes(trace_of(name))
    short = re.search(r"ended by x <- (.*) \(f", report("top", "--wakers", "--kind=all", tmp_path / "t.out"))[1]
    assert short.startswith("…::namespace_") and short.endswith("::Class::method()") and len(short) <= 72
    assert f"x <- {name} (f.c:7)" in report("top", "--wide", "--wakers", "--kind=all", tmp_path / "t.out")


@pytest.mark.parametrize("name", ["<" * 300, "a<b" * 200, "f((((", "x::<", "<a as ", "{lambda(", "{{closure", "std::f<{lambda(", "operator" * 90])
def test_odd_names(tmp_path, name):
    (tmp_path / "t.out").write_bytes(trace_of(name))
    env = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=66"}
    proc.run([ROOT / "build/asan/gotrace", "top", "--wakers", "--kind=all", tmp_path / "t.out"], env=env).ok()


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
        assert past.returncode == 1 and not past.stdout and "nothing is recorded of that time" in past.stderr


def test_threads_and_focus(traced):
    trace = traced([PROGRAMS / "truth"]).ok().trace
    lock = [row for row in top(trace, "--idle=none", "--kind=sync") if " <- lock_waiter " in row[3]]
    assert top(trace, "--idle=none", "--kind=sync", "--focus=^lock_waiter$") == lock
    assert lock and all(row[3].startswith("pthread_") for row in lock)
    assert {row[3] for row in top(trace, "--idle=none", "--thread=^lock_waiter$", "--kind=sync")} == {row[3] for row in lock}
    assert top(trace, "--thread=nobody") == []
    named = re.findall(r"^ +(\d+) .* (lock_waiter) ", report("info", "--thread=^lock_waiter$", trace), re.M)
    assert named and len(named) == len(re.findall(r"^ +\d+ .*[\d.]+%$", report("info", "--thread=^lock_waiter$", trace), re.M))
    assert "lock_waiter" in report("top", f"--thread={named[0][0]}", "--kind=all", trace)


TASKS = r"""
#include "gotrace.h"
#include <pthread.h>
#include <unistd.h>

static gotrace_task handed;
__attribute__((noinline)) static void inside(void) { usleep(20000); }
__attribute__((noinline)) static void outside(void) { usleep(10000); }
__attribute__((noinline)) static void elsewhere(void) { usleep(15000); }
static void *worker(void *arg)
{
    elsewhere();
    gotrace_region part = gotrace_region_begin(handed, "part");
    inside();
    gotrace_region_end(part);
    outside();
    return arg;
}
int main(void)
{
    pthread_t t;
    gotrace_region wanted = gotrace_region_begin(0, "wanted");
    inside();
    gotrace_region_end(wanted);
    outside();
    handed = gotrace_task_begin(0, "wanted");
    pthread_create(&t, 0, worker, 0);
    pthread_join(t, 0);
    gotrace_task_end(handed);
    elsewhere();
    return 0;
}
"""


@pytest.mark.measured
@pytest.mark.parametrize("format", ["go1.11", "go1.21", "go1.23"])
def test_tasks(traced, tmp_path, format):
    """What a thread does in a region of that name, and from the first to the last that it says of a task."""
    program = proc.compile(TASKS, tmp_path / "prog", f"-I{ROOT}/preload")
    trace = traced([program], env={"GOTRACE_FORMAT": format}).ok().trace
    rows = {place.split(" <- ")[1].split()[0]: (ns, count) for ns, count, kind, place in top(trace, "--idle=none", "--task=wanted") if kind != "sched"}
    assert set(rows) == {"inside", "main"}, rows  # main's join, which is inside of its task
    assert rows["inside"][1] == 2 and 40e6 <= rows["inside"][0] < 80e6
    assert {r[3].split(" <- ")[1].split()[0] for r in top(trace, "--task=part") if r[2] == "sleep"} == {"inside"}
    result = proc.run([GOTRACE, "top", "--task=nothing", trace]).ok()
    assert "there is no task and no region called nothing" in result.stderr and not ROW.search(result.stdout)


# --- idle


POOL = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 3, JOBS = 60, ROOM = 4 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int jobs, made, questions, answers, over;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of all threads, in ns. */
static struct { const char *name; uint64_t ns; } spent[] = {{"take", 0}, {"put", 0}, {"journal", 0}, {"ask", 0}, {"answer", 0}};
static void spend(int what, uint64_t from) { __atomic_fetch_add(&spent[what].ns, now() - from, __ATOMIC_RELAXED); }

__attribute__((noinline)) static int take(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&mutex);
    while (!jobs && !over)
        pthread_cond_wait(&some, &mutex);
    int it = jobs ? jobs-- : 0;
    pthread_cond_signal(&room);
    pthread_mutex_unlock(&mutex);
    spend(0, from);
    return it;
}

__attribute__((noinline)) static void put(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&mutex);
    while (jobs >= ROOM)
        pthread_cond_wait(&room, &mutex);
    jobs++;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&mutex);
    spend(1, from);
}

__attribute__((noinline)) static void write_down(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&journal);
    spend(2, from);
    usleep(2000);
    pthread_mutex_unlock(&journal);
}

/* A question to another thread, deep inside of a request. */
__attribute__((noinline)) static void fetch(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&mutex);
    int mine = ++questions;
    pthread_cond_signal(&asked);
    while (answers < mine)
        pthread_cond_wait(&answered, &mutex);
    pthread_mutex_unlock(&mutex);
    spend(3, from);
}
__attribute__((noinline)) static void handle(void) { fetch(); write_down(); __asm__(""); }
__attribute__((noinline)) static void serve(void) { handle(); __asm__(""); }

static void *worker(void *arg)
{
    while (take())
        serve();
    return arg;
}

static void *backend(void *arg)
{
    pthread_mutex_lock(&mutex);
    while (!over || answers < questions) {
        uint64_t from = now();
        if (answers == questions)
            pthread_cond_wait(&asked, &mutex);
        spend(4, from);
        pthread_mutex_unlock(&mutex);
        usleep(1000);
        pthread_mutex_lock(&mutex);
        answers = questions;
        pthread_cond_broadcast(&answered);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

/* Makes all at once, and then none for a while. */
static void *producer(void *arg)
{
    for (made = 0; made < JOBS; made++) {
        if (made % 20 == 0)
            usleep(50000);
        put();
    }
    return arg;
}

int main(void)
{
    pthread_t t[WORKERS], b, p;
    pthread_create(&b, NULL, backend, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, worker, NULL);
    pthread_create(&p, NULL, producer, NULL);
    pthread_join(p, NULL);
    pthread_mutex_lock(&mutex);
    while (jobs) {
        pthread_mutex_unlock(&mutex);
        sched_yield();
        pthread_mutex_lock(&mutex);
    }
    over = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    pthread_cond_signal(&asked);
    pthread_join(b, NULL);
    for (unsigned i = 0; i < sizeof spent / sizeof *spent; i++)
        printf("%s %llu\n", spent[i].name, (unsigned long long)spent[i].ns);
    return 0;
}
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """A trace of a pool of workers, and what its threads spent where: name → ns."""
    directory = tmp_path_factory.mktemp("pool")
    program = proc.compile(POOL.replace("#include <pthread.h>", "#include <pthread.h>\n#include <sched.h>", 1), directory / "prog", "-fno-inline")
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
    assert "pthread_cond_wait <- take (prog.c:" in where and "backend (prog.c:" in where, where
    measured = spent["take"] + spent["answer"]
    # The program's clock also counts until it has a CPU, and the mutex, again.
    besides = sum(row[0] for row in top(trace) if row[2] == "sched" or re.search(r"_lock <- (take|backend) ", row[3]))
    assert 0.9 * measured - besides - 20e6 <= ns_of(ns) <= measured + 20e6, (ns, besides, spent)
    everything = report("top", "--idle=none", trace)
    assert not IDLE.search(everything) and "pthread_cond_wait <- take (" in everything
    assert int(count) == sum(row[1] for row in top(trace, "--idle=none", "--kind=sync") if re.search(r"pthread_cond_wait <- (take|backend) ", row[3]))


def columns(trace, *options):
    """thread's routine → [{column: percent}]"""
    text = report("info", *options, trace)
    head = re.search(r"lived +(on cpu.*)$", text, re.M)[1]
    names = re.findall(r"on cpu|\w+", head)
    rows = re.findall(r"^ +\d+  \S+ +(\S+) +\S+ +[\d.]+[mun]?s[ +]((?: +[\d.]+%)+)$", text, re.M)
    found = collections.defaultdict(list)
    for routine, rest in rows:
        numbers = [float(number) for number in re.findall(r"[\d.]+", rest)]
        assert len(numbers) == len(names), rest
        found[routine].append(dict(zip(names, numbers)))
    return found


@pytest.mark.measured
def test_the_columns_are_the_time(pool):
    trace, _ = pool
    for options in [], ["--wide"], ["--idle=none"], ["--idle=^put$"]:
        found = columns(trace, *options)
        assert sum(map(len, found.values())) == 6
        for row in (row for rows in found.values() for row in rows):
            assert abs(sum(row.values()) - 100) <= 0.06 * len(row), (options, row)
    assert list(columns(trace)["main"][0]) == ["on cpu", "runnable", "idle", "blocked", "calls", "unseen"]
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


SLEEPER = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static void *holder(void *arg)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        usleep(5000);
        pthread_mutex_unlock(&mutex);
        usleep(200);
    }
    over = 1;
    return arg;
}
static void *periodic(void *arg)
{
    while (!over)
        usleep(3000);
    return arg;
}
static void *client(void *arg)
{
    while (!over) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    pthread_create(&t[0], 0, holder, 0);
    pthread_create(&t[1], 0, client, 0);
    pthread_create(&t[2], 0, periodic, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
    return 0;
}
"""


@pytest.mark.measured
def test_a_sleep_with_a_lock_is_not_idle(traced, tmp_path):
    """While somebody waits for what a thread has, it is not at rest; one that sleeps by itself is."""
    trace = traced([proc.compile(SLEEPER, tmp_path / "prog")]).ok().trace
    asleep = {place.split(" <- ")[1].split()[0]: ns for ns, _, kind, place in top(trace) if kind == "sleep"}
    assert asleep["holder"] > 90e6, top(trace)
    assert "usleep <- periodic " in IDLE.search(report("top", "--kind=sleep", trace))[3]


BATCHES = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int batch, finished;
static void *worker(void *arg)
{
    for (int i = 1; i <= 10; i++) {
        pthread_mutex_lock(&mutex);
        while (batch < i)
            pthread_cond_wait(&go, &mutex);
        pthread_mutex_unlock(&mutex);
        usleep(5000);
        pthread_mutex_lock(&mutex);
        finished = i;
        pthread_cond_signal(&done);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, worker, 0);
    for (int i = 1; i <= 10; i++) {
        usleep(2000);
        pthread_mutex_lock(&mutex);
        batch = i;
        pthread_cond_signal(&go);
        while (finished < i)
            pthread_cond_wait(&done, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    return pthread_join(t, 0);
}
"""


@pytest.mark.measured
def test_who_waits_for_results_is_not_idle(traced, tmp_path):
    trace = traced([proc.compile(BATCHES, tmp_path / "prog")]).ok().trace
    (main,) = [row for row in top(trace, "--kind=sync") if row[3].startswith("pthread_cond_wait <- main ")]
    assert main[0] > 40e6
    assert "pthread_cond_wait <- worker " in IDLE.search(report("top", trace))[3]


ANSWERS = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, changed = PTHREAD_COND_INITIALIZER;
static int asked, done, over;
__attribute__((noinline)) static void call(void)
{
    pthread_mutex_lock(&mutex);
    int mine = ++asked;
    pthread_cond_signal(&work);
    while (done < mine)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}
static void *client(void *arg)
{
    for (int i = 0; i < 40; i++) {
        call();
        usleep(500);
    }
    return arg;
}
static void *server(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (done == asked && !over)
            pthread_cond_wait(&work, &mutex);
        if (over)
            break;
        pthread_mutex_unlock(&mutex);
        usleep(2000);
        pthread_mutex_lock(&mutex);
        done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}
int main(void)
{
    pthread_t s, c[3];
    pthread_create(&s, 0, server, 0);
    usleep(200000); /* so that it waits */
    for (int i = 0; i < 3; i++)
        pthread_create(&c[i], 0, client, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(c[i], 0);
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&mutex);
    return pthread_join(s, 0);
}
"""


@pytest.mark.measured
def test_answers_are_not_idle(traced, tmp_path):
    """Clients of a slow thread wait just as it does, from their loops; but they ask, and have woken it first."""
    trace = traced([proc.compile(ANSWERS, tmp_path / "prog")]).ok().trace
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
    for _ in range(5):  # on a busy machine some come by, and take one that they did not wait for
        trace = traced([PROGRAMS / "whys", scenario]).ok().trace
        if any(row[3].startswith(where) for row in top(trace, "--kind=sync")):
            return
    pytest.fail(report("top", trace))


PASSED = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static int jobs = 2, done, items = 3, fetched;
__attribute__((noinline)) static int take(void)
{
    pthread_mutex_lock(&mutex);
    while (!jobs && done < 60)
        pthread_cond_wait(&some, &mutex);
    int more = done < 60;
    jobs--;
    pthread_mutex_unlock(&mutex);
    return more;
}
__attribute__((noinline)) static void hand_over(void)
{
    pthread_mutex_lock(&mutex);
    jobs++;
    if (++done < 60)
        pthread_cond_signal(&some);
    else
        pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&mutex);
}
static void *passer(void *arg)
{
    while (take()) {
        usleep(10000);
        hand_over();
    }
    return arg;
}
__attribute__((noinline)) static void add(void)
{
    pthread_mutex_lock(&mutex);
    while (items == 3)
        pthread_cond_wait(&room, &mutex);
    items++;
    pthread_mutex_unlock(&mutex);
}
static void *maker(void *arg)
{
    for (int i = 0; i < 30; i++)
        add();
    return arg;
}
static void *fetcher(void *arg)
{
    while (fetched < 30) {
        usleep(1000);
        pthread_mutex_lock(&mutex);
        fetched += items > 0;
        items -= items > 0;
        pthread_cond_signal(&room);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    void *(*const routine[])(void *) = {maker, fetcher, passer, passer, passer, passer};
    pthread_t t[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&t[i], 0, routine[i], 0);
    for (int i = 0; i < 6; i++)
        pthread_join(t[i], 0);
    return 0;
}
"""


def test_who_passes_work_on_is_idle(traced, tmp_path):
    """Workers that give each other work wait for work; who finds a queue full does not, whoever was woken first."""
    program = proc.compile(PASSED, tmp_path / "prog")
    for _ in range(5):  # who loses its CPU after it has given work does something else for a while
        trace = traced([program]).ok().trace
        passed = IDLE.search(report("top", trace))
        if passed and "pthread_cond_wait <- take " in passed[3]:
            break
    assert "pthread_cond_wait <- take " in passed[3]
    assert [row for row in top(trace, "--kind=sync") if row[3].startswith("pthread_cond_wait <- add ")], report("top", trace)


@pytest.mark.parametrize("mode, why", [("deadlock", "mutex"), ("missed", "cond")])
def test_what_hangs_is_not_idle(traced, tmp_path, mode, why):
    """Neither who waits for a lock when the trace ends, nor who waits for a signal that was sent to nobody."""
    source = r"""
#include <pthread.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static void *one(void *arg) { pthread_mutex_lock(&a); pthread_barrier_wait(&both); pthread_mutex_lock(&b); return arg; }
static void *other(void *arg) { pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return arg; }
static void *waits(void *arg) { pthread_mutex_lock(&a); for (;;) pthread_cond_wait(&cond, &a); return arg; }
static void *hears(void *arg) { pthread_mutex_lock(&a); pthread_cond_wait(&cond, &a); pthread_mutex_unlock(&a); return arg; }
int main(int argc, char **argv)
{
    pthread_t t[2];
    pthread_barrier_init(&both, 0, 2);
    if (strcmp(argv[1], "deadlock") == 0) {
        pthread_create(&t[0], 0, one, 0);
        pthread_create(&t[1], 0, other, 0);
        usleep(300000);
        return argc - 2;
    }
    pthread_create(&t[0], 0, hears, 0); /* it is waited for: signals are counted from then on */
    usleep(50000);
    pthread_mutex_lock(&a);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&a);
    pthread_join(t[0], 0);
    pthread_mutex_lock(&a);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&a);
    pthread_create(&t[1], 0, waits, 0);
    usleep(300000);
    return argc - 2;
}
"""
    trace = traced([proc.compile(source, tmp_path / "prog"), mode]).ok().trace
    text = report("top", trace)
    still = re.findall(r"^ +[\d.]+m?s  sync +thread .*$", text, re.M)
    assert len([line for line in still if why in line]) >= (2 if mode == "deadlock" else 1), text
    assert "(idle)" not in text and not IDLE.search(text), text
    assert all(row["idle"] == 0 for rows in columns(trace).values() for row in rows), columns(trace)
