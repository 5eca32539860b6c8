"""`gotrace doctor`: each check says what is so, shown by making it so; a program is told as what it was built as."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from lib import PROGRAMS, ROOT, SINGLE, proc

GOTRACE = ROOT / "build/gotrace"
SOURCE = "int main(int argc, char **argv) { return argc > 1000 ? argv[0][0] : 0; }\n#ifndef SMALL\n" + "".join(
    f"int f{i}(int (*g)(int)) {{ return g({i}) + 1; }}\n" for i in range(20)) + "#endif\n"


def doctor(*argv, before=(), env=None):
    """The checks by their names, and the exit status."""
    result = proc.run([*before, GOTRACE, "doctor", "--json", *argv], env=env, timeout=60)
    checks = json.loads(result.stdout)["checks"]
    assert all((check["mend"] is None) == (check["health"] == "ok") or check["check"] == "tracing" for check in checks), checks
    return {check["check"]: check for check in checks}, result.returncode


def test_this_system():
    checks, status = doctor()
    assert status == 0 and checks["recording"]["health"] == "ok"
    assert {"kernel", "libc", "recording", "lines", "perf", "ptrace", "go"} <= set(checks)
    assert f"{os.cpu_count()} CPUs" in checks["kernel"]["says"] or os.cpu_count() == 1
    text = proc.run([GOTRACE, "doctor"]).ok().stdout
    assert all(len(line) <= 80 for line in text.splitlines()), text
    words = " ".join(text.split())
    for name, check in checks.items():
        assert f"{check['health']} {name} {check['says']}" in words and (check["mend"] or "") in words, (check, text)


def without(library):
    """A command around another one that hides a library from that."""
    found = proc.run(["sh", "-c", f"ldconfig -p | sed -n 's|.*{library} .*=> ||p' | head -n 1"]).ok().stdout.strip()
    hide = f'mount --bind /dev/null "$(realpath {found})" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", hide, "-"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name, pattern, says", [
    ("lines", "libdw.so.1", "no lines of code"),
    ("sqlite", "libsqlite3.so.0", "sql does not work"),
])
def test_what_is_not_there(name, pattern, says):
    checks, status = doctor(before=without(pattern))
    assert status == 0 and checks[name]["health"] == "limited" and says in checks[name]["says"]
    package = re.fullmatch(r"(?:apt|dnf) install (\S+)", checks[name]["mend"])
    if shutil.which("apt-get"):
        proc.run(["apt-get", "install", "--simulate", package[1]]).ok()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_no_go():
    """Every place where one is found is empty."""
    hide = "for d in /usr/local/go /usr/lib/go*; do [ -d $d ] && mount -t tmpfs none $d; done; PATH=/usr/sbin:/sbin:/bin:$1; shift; exec \"$@\""
    checks, status = doctor(before=["unshare", "-m", "sh", "-c", hide, "-", "/nowhere"], env={"HOME": "/nowhere"})
    if checks["go"]["health"] == "ok":
        pytest.skip(f"there is one elsewhere: {checks['go']['says']}")
    assert status == 0 and checks["go"]["health"] == "limited" and "view does not work" in checks["go"]["says"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_without_privileges(tmp_path):
    """A user without capabilities: what the kernel's settings say decides."""
    paranoid = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    if proc.run([*before, GOTRACE, "doctor"]).returncode not in (0, 1):
        pytest.skip("other users cannot reach this checkout")
    checks, _ = doctor(before=before)
    assert checks["perf"]["health"] == "ok" or paranoid > 2
    if checks["perf"]["health"] != "ok":  # only kernels of Debian's kind know values over 2
        assert checks["perf"]["mend"] == "sudo sysctl kernel.perf_event_paranoid=2"
    assert checks["folder"]["health"] == "missing", "the tests' folder is root's"


def test_no_folder(tmp_path):
    """Recording needs a place for its trial."""
    result = proc.run([GOTRACE, "doctor"], env={"PATH": "/nowhere"})
    assert result.returncode == 1 and "missing  recording" in result.stdout, "no `true` to record"


def test_nothing_but_memory_can_be_written(tmp_path):
    """As in a container whose file system is read-only: the trial is in /dev/shm."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    around = (
        "mount -o remount,ro,bind / && mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && "
        'mount -t tmpfs none /dev/shm && cd / && exec "$@"'
    )
    checks, status = doctor(before=["unshare", "-m", "sh", "-c", around, "-"], env={"TMPDIR": ""})
    assert status == 1 and checks["recording"]["health"] == "ok", checks
    assert checks["folder"]["health"] == "missing" and "Read-only file system" in checks["folder"]["says"], checks


def test_a_filter():
    """Of system calls, as of a container: no setting of the kernel mends that."""
    checks, status = doctor(before=[PROGRAMS / "without_perf"])
    assert status == 0 and checks["recording"]["health"] == "ok"
    perf = checks["perf"]
    assert perf["health"] == "limited" and "system calls are filtered" in perf["says"], perf
    paranoid = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    assert paranoid > 2 or "--cap-add=PERFMON" in perf["mend"], perf


def test_a_filter_that_kills(tmp_path):
    """The call's process dies, and not the doctor, which leaves no process behind."""
    for number, name in (298, "perf"), (101, "ptrace"):
        checks, status = doctor(before=[SINGLE / "doctor/filters", number])
        assert status == 0 and "was killed for the call" in checks[name]["says"], checks
        assert "debuginfod" in checks, "the last check comes, too"


@pytest.mark.parametrize("name, value, health, says", [
    ("GOTRACE", "off", "missing", "nothing is recorded"),
    ("GOTRACE_FORMAT", "bogus", "limited", "is not go1.5"),
    ("GOTRACE_NOTHING", "1", "limited", "knows no such switch"),
    ("GOTRACE_START", "manual", "ok", "GOTRACE_START=manual"),
    ("GOTRACE_DELAY", "1h", "ok", "GOTRACE_DELAY=1h"),
])
def test_settings(name, value, health, says):
    """A wrong value is named; none keeps the trial from a trace."""
    checks, status = doctor(env={name: value})
    assert checks["settings"]["health"] == health and says in checks["settings"]["says"], checks
    assert checks["recording"]["health"] == "ok" and status == (health == "missing"), checks
    assert checks["settings"]["mend"] == (None if health == "ok" else f"unset {name}")


def test_no_room_for_a_trace():
    checks, status = doctor(before=["sh", "-c", 'ulimit -f 100; exec "$@"', "-"])
    assert status == 1 and "File too large" in checks["folder"]["says"], checks
    assert checks["folder"]["mend"] == "ulimit -f unlimited" and checks["recording"]["health"] == "ok"


def built(tmp_path, *flags, name="app"):
    source = tmp_path / "app.c"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", *flags, "-o", tmp_path / name, source], check=True)
    return tmp_path / name


@pytest.mark.parametrize("flags, expected", [
    (["-g"], {"tracing": "ok", "symbols": "ok", "stacks": "ok"}),
    ([], {"tracing": "ok", "symbols": "limited", "stacks": "ok"}),
    (["-s"], {"tracing": "ok", "symbols": "limited", "stacks": "ok"}),
    (["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"], {"tracing": "ok", "symbols": "ok", "stacks": "limited"}),
    (["-static"], {"tracing": "missing"}),
    (["-g", "-DSMALL"], {"tracing": "ok", "symbols": "ok", "stacks": "ok"}),
    (["-g", "-DSMALL", "-no-pie"], {"tracing": "ok", "symbols": "ok", "stacks": "ok"}),
    (["-g", "-DSMALL", "-fno-asynchronous-unwind-tables"], {"tracing": "ok", "symbols": "ok", "stacks": "limited"}),
    (["-g", "-DSMALL", "-no-pie", "-fno-asynchronous-unwind-tables"], {"tracing": "ok", "symbols": "ok", "stacks": "limited"}),
], ids=["debug", "names", "stripped", "no-tables", "static", "small", "small-fixed", "small-no-tables", "small-fixed-no-tables"])
def test_how_a_program_was_built(tmp_path, flags, expected):
    checks, status = doctor(built(tmp_path, *flags))
    assert {name: check["health"] for name, check in checks.items()} == expected, checks
    assert status == (1 if expected["tracing"] == "missing" else 0)
    if flags == []:
        assert "no lines of code" in checks["symbols"]["says"] and "-g" in checks["symbols"]["mend"]
    if flags == ["-s"]:
        assert "shown as addresses" in checks["symbols"]["says"]


def is_not_traced(tmp_path, name, says, *flags, mend=None):
    """What it refuses, the recorder refuses, too."""
    checks, status = doctor(tmp_path / name)
    assert status == 1 and checks["tracing"]["health"] == "missing" and says in checks["tracing"]["says"], checks
    assert mend is None or checks["tracing"]["mend"] == mend.format(tmp_path), checks
    result = proc.run([GOTRACE, "-q", "-o", tmp_path / "t.out", "--", tmp_path / name], timeout=20)
    assert result.returncode == 126 and not (tmp_path / "t.out").exists(), result


def test_what_is_no_program(tmp_path):
    app = built(tmp_path, "-g")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "library", tmp_path / "app.c"], check=True)
    subprocess.run(["cc", "-c", "-o", tmp_path / "object", tmp_path / "app.c"], check=True)
    (tmp_path / "short").write_bytes(app.read_bytes()[:3000])
    core = bytearray(app.read_bytes())
    core[16] = 4  # ET_CORE
    (tmp_path / "core").write_bytes(core)
    os.mkfifo(tmp_path / "fifo")
    for name, says in [("library", "is a shared library"), ("object", "is an object file"), ("short", "is cut short"),
                       ("core", "is a core file"), ("fifo", "Permission denied")]:
        (tmp_path / name).chmod(0o755)
        is_not_traced(tmp_path, name, says, mend="gotrace stacks {}/core" if name == "core" else None)


def test_tables_that_are_misplaced(tmp_path):
    """Of a damaged program: read by the build with AddressSanitizer and UBSan, nothing is found, and the word is an answer."""
    command = shutil.copy(ROOT / "build/asan/gotrace", tmp_path / "gotrace")
    (tmp_path / "libgotrace.so").symlink_to(ROOT / "libgotrace.so")
    whole = built(tmp_path, "-g").read_bytes()
    for at in 32, 40:  # e_phoff, e_shoff
        for by in 1, 4, len(whole), 2**64 - 1:
            place = (int.from_bytes(whole[at : at + 8], "little") + by) % 2**64
            (tmp_path / "damaged").write_bytes(whole[:at] + place.to_bytes(8, "little") + whole[at + 8 :])
            (tmp_path / "damaged").chmod(0o755)
            result = proc.run([command, "doctor", "--json", tmp_path / "damaged"], env={"ASAN_OPTIONS": "detect_leaks=0"})
            assert result.stderr == "" and json.loads(result.stdout)["checks"], (at, by, result)


@pytest.mark.parametrize("flags, says, mend", [
    (["-fsanitize=thread", "-static-libtsan"], "ThreadSanitizer", "build it without -fsanitize=thread"),
    (["-fsanitize=leak"], "LeakSanitizer", "build it without -fsanitize=leak, or with -fsanitize=address"),
    (["-static"], "statically linked", "build it without -static"),
    (["-Wl,--dynamic-linker=/lib/none.so"], "/lib/none.so is missing", "build it on this system, or run it on the one that it was built for"),
    (["-nostdlib", "-nostartfiles", "-ffreestanding", "-e", "main"], "uses no library", "strace -f {}/app (shows its system calls)"),
])
def test_what_cannot_be_preloaded_to(tmp_path, flags, says, mend):
    built(tmp_path, *flags)
    is_not_traced(tmp_path, "app", says, mend=mend)


def test_what_the_shell_runs(tmp_path):
    for name, text in ("empty", ""), ("bare", "#!\n"):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        checks, status = doctor(tmp_path / name)
        assert status == 0 and "/bin/sh is dynamically linked" in checks["tracing"]["says"], checks


def test_what_env_does_not_find(tmp_path):
    (tmp_path / "run").write_text("#!/usr/bin/env no-such-program\n")
    (tmp_path / "run").chmod(0o755)
    checks, status = doctor(tmp_path / "run")
    assert status == 1 and "no-such-program" in checks["tracing"]["says"], checks


def test_lines_that_end_as_in_windows(tmp_path):
    (tmp_path / "run").write_bytes(b"#!/bin/sh\r\n")
    (tmp_path / "run").chmod(0o755)
    checks, status = doctor(tmp_path / "run")
    assert status == 1, checks
    proc.run(["sh", "-ec", checks["tracing"]["mend"].split(" (")[0]]).ok()
    assert doctor(tmp_path / "run")[1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_program_that_may_run_but_not_be_read(tmp_path):
    reachable = tmp_path / "app"
    before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    built(tmp_path).chmod(0o711)
    for folder in list(tmp_path.parents)[:-1] + [tmp_path]:
        folder.chmod(folder.stat().st_mode | 0o011)
    if proc.run([*before, GOTRACE, "doctor", "true"]).returncode not in (0, 1):
        pytest.skip("other users cannot reach this checkout")
    checks, status = doctor(reachable, before=before)
    assert status == 1 and "is not known" in checks["tracing"]["says"], checks
    assert checks["tracing"]["mend"] == f"sudo chmod +r {reachable}"


def test_a_library_is_missing(tmp_path):
    (tmp_path / "none.c").write_text("int nothing;\n")
    library = tmp_path / "libnowhere.so.2"
    subprocess.run(["cc", "-shared", "-o", library, tmp_path / "none.c", "-Wl,-soname,libnowhere.so.2"], check=True)
    app = built(tmp_path, "-Wl,--no-as-needed", library)
    checks, status = doctor(app)
    assert status == 1 and "libnowhere.so.2: cannot open" in checks["libraries"]["says"], checks
    checks, status = doctor(app, env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert status == 0 and "libraries" not in checks, checks


@pytest.mark.parametrize("build_id", ["none", "sha1"])
def test_a_debug_file_beside_the_program(tmp_path, build_id):
    """.gnu_debuglink, which stacks follow."""
    app = built(tmp_path, "-g", f"-Wl,--build-id={build_id}")
    debug = tmp_path / "app.debug"
    subprocess.run(["objcopy", "--only-keep-debug", app, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", app], check=True)
    checks, _ = doctor(app)
    assert checks["symbols"]["health"] == "ok" and str(debug) in checks["symbols"]["says"], checks
    debug.unlink()
    assert "stripped" in doctor(app)[0]["symbols"]["says"]


# --- running processes


@contextlib.contextmanager
def running(*argv):
    """A process that has printed a line, and waits."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


WAITS = "#include <stdio.h>\nint main(void) { puts(\"here\"); fflush(stdout); return getchar(); }\n"


def test_a_process(tmp_path):
    app = proc.compile(WAITS, tmp_path / "waits", "-g")
    with running(app) as process:
        app.unlink()  # its file is gone, the process is there
        checks, status = doctor(str(process.pid))
        assert status == 0 and f"gotrace attach {process.pid}" in checks["tracing"]["says"], checks
        assert checks["symbols"]["health"] == "ok", checks
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        checks, status = doctor(str(process.pid))
        assert status == 1 and "stopped by a signal" in checks["tracing"]["says"], checks
        proc.run(["sh", "-c", checks["tracing"]["mend"]]).ok()
        assert doctor(str(process.pid))[1] == 0
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        checks, status = doctor(str(process.pid))
        assert status == 1 and "has ended" in checks["tracing"]["says"], checks
    checks, status = doctor(str(process.pid))
    assert status == 1 and "is not there" in checks["tracing"]["says"], checks


def test_a_process_that_is_traced(tmp_path):
    app = proc.compile(WAITS, tmp_path / "waits")
    with running(GOTRACE, "-q", "-o", tmp_path / "t.out", "--", app) as process:
        checks, status = doctor(str(process.pid))
    assert status == 0 and "has the library" in checks["tracing"]["says"], checks


@pytest.mark.parametrize("flags, says", [
    (["-static"], "statically linked"), (["-fsanitize=address"], "AddressSanitizer"), (["-fsanitize=thread"], "ThreadSanitizer"),
])
def test_a_process_that_cannot_be_attached(tmp_path, flags, says):
    """As attach says."""
    with running(proc.compile(WAITS, tmp_path / "waits", *flags)) as process:
        checks, status = doctor(str(process.pid))
        assert status == 1 and says in checks["tracing"]["says"], checks
        assert proc.run([GOTRACE, "attach", str(process.pid)], cwd=tmp_path).returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_process_of_another_user(tmp_path):
    before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with running(proc.compile(WAITS, tmp_path / "waits")) as process:
        if proc.run([*before, GOTRACE, "doctor", "true"]).returncode not in (0, 1):
            pytest.skip("other users cannot reach this checkout")
        checks, status = doctor(str(process.pid), before=before)
        assert status == 1 and checks["tracing"]["mend"] == f"sudo gotrace doctor {process.pid}", checks


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_debug_information_without_libdw(tmp_path):
    checks, _ = doctor(built(tmp_path, "-g"), before=without("libdw.so.1"))
    assert checks["symbols"]["health"] == "limited" and "no libdw.so.1" in checks["symbols"]["says"], checks
    assert re.fullmatch(r"(apt|dnf) install \S+", checks["symbols"]["mend"]), checks


def test_a_stripped_program_with_exported_functions(tmp_path):
    checks, _ = doctor(built(tmp_path, "-s", "-rdynamic"))
    assert "only functions that it exports" in checks["symbols"]["says"]


def test_libraries(tmp_path):
    """What the program needs of the libraries that are known."""
    (tmp_path / "omp.c").write_text("int nothing;\n")
    subprocess.run(["cc", "-shared", "-o", tmp_path / "libtbb.so.2", tmp_path / "omp.c", "-Wl,-soname,libtbb.so.2"], check=True)
    checks, _ = doctor(built(tmp_path, "-Wl,--no-as-needed", tmp_path / "libtbb.so.2"), env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert checks["libraries"]["says"] == "oneTBB: known to the library"


@pytest.mark.parametrize("name, mode, mend", [
    ("app.py", 0o644, "gotrace -- python3 app.py"),
    ("./app.py", 0o644, "gotrace -- python3 ./app.py"),
    ("run", 0o644, "chmod +x ./run && gotrace doctor ./run"),
    ("run", 0o755, "gotrace doctor ./run"),
    ("the run's", 0o644, "chmod +x './the run'\\''s' && gotrace doctor './the run'\\''s'"),
])
def test_a_name_that_is_not_a_program(tmp_path, name, mode, mend):
    """What it says to type works, when typed where the file is."""
    (tmp_path / name).write_text("#!/bin/sh\n" if "run" in name else "import os\n")
    (tmp_path / name).chmod(mode)
    result = proc.run([GOTRACE, "doctor", "--json", name], cwd=tmp_path)
    assert result.returncode == 1
    (check,) = json.loads(result.stdout)["checks"]
    assert check["mend"] == mend, check
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gotrace").symlink_to(GOTRACE)
    proc.run(["bash", "-ec", mend], cwd=tmp_path, env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}).ok()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_program_with_more_privileges(tmp_path):
    """Of another user: the loader ignores LD_PRELOAD."""
    app = built(tmp_path, "-g")
    os.chown(app, 65534, 65534)
    app.chmod(0o4755)
    checks, status = doctor(app)
    assert status == 1 and "set-user-ID" in checks["tracing"]["says"], checks


def test_it_is_right_about_tracing(tmp_path):
    """What it says would be traced is traced."""
    for program in PROGRAMS / "incidents", "python3", ROOT / "scripts/demo":
        checks, status = doctor(program)
        assert status == 0 and checks["tracing"]["health"] == "ok", checks
    assert "bash, which runs the script" in doctor(ROOT / "scripts/demo")[0]["tracing"]["says"]
    result = proc.run([GOTRACE, "-q", "-o", tmp_path / "t.out", "--", built(tmp_path, "-static")])
    assert result.returncode == 126 and not (tmp_path / "t.out").exists()


@pytest.mark.parametrize("name, health", [("python3.8", "limited"), ("python3.14", "ok"), ("python3.15", "ok"), ("python3.15t", "limited"), ("python3.16", "limited")])
def test_versions_of_python(tmp_path, name, health):
    checks, _ = doctor(shutil.copy(PROGRAMS / "truth", tmp_path / name))
    assert checks["python"]["health"] == health


def test_python(tmp_path):
    real = proc.run(["python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))"]).ok().stdout.strip()
    checks, _ = doctor(real)
    assert "lines of Python" in checks["python"]["says"]


def test_the_package_of_a_program():
    if not shutil.which("dpkg"):
        pytest.skip("no dpkg")
    checks, _ = doctor("/bin/true")
    assert checks["symbols"]["health"] == "ok" or "coreutils-dbgsym" in checks["symbols"]["mend"]
    install = re.fullmatch(r"apt install (\S+)", checks["symbols"]["mend"] or "")
    assert not install or proc.run(["apt-get", "install", "--simulate", install[1]]).returncode == 0, checks


def test_misuse():
    assert proc.run([GOTRACE, "doctor", "a", "b"]).returncode == 2
    for number in "0", "00", "4294967297", "99999999999999":  # no process has such a number
        assert "No such file" in doctor(number)[0]["tracing"]["says"]
    checks, status = doctor("no-such-program")
    assert status == 1 and "No such file" in checks["tracing"]["says"]
