"""`gotrace doctor`: each check says what is so, shown by making it so; a program is told as what it was built as."""

import json
import os
import re
import shutil
import subprocess

import pytest

from lib import PROGRAMS, ROOT, proc

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
    assert (checks["perf"]["health"] == "ok") == (paranoid <= 2)
    if paranoid > 2:
        assert checks["perf"]["mend"] == "sudo sysctl kernel.perf_event_paranoid=2"
    assert checks["folder"]["health"] == "limited", "the tests' folder is root's"


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
    assert status == 0 and checks["recording"]["health"] == "ok", checks
    assert checks["folder"]["health"] == "limited" and "Read-only file system" in checks["folder"]["says"], checks


def test_a_filter():
    """Of system calls, as of a container: no setting of the kernel mends that."""
    checks, status = doctor(before=[PROGRAMS / "without_perf"])
    assert status == 0 and checks["recording"]["health"] == "ok"
    perf = checks["perf"]
    assert perf["health"] == "limited" and "system calls are filtered" in perf["says"], perf
    paranoid = int(open("/proc/sys/kernel/perf_event_paranoid").read())
    assert paranoid > 2 or "--cap-add=PERFMON" in perf["mend"], perf


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
    checks, _ = doctor(built(tmp_path, "-Wl,--no-as-needed", tmp_path / "libtbb.so.2"))
    assert checks["libraries"]["says"] == "oneTBB: known to the library"


@pytest.mark.parametrize("name, mode, mend", [
    ("app.py", 0o644, "gotrace -- python3 app.py"),
    ("./app.py", 0o644, "gotrace -- python3 ./app.py"),
    ("run", 0o644, "chmod +x ./run && gotrace doctor ./run"),
    ("run", 0o755, "gotrace doctor ./run"),
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
    checks, status = doctor("no-such-program")
    assert status == 1 and "No such file" in checks["tracing"]["says"]
