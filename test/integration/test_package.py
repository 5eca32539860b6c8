"""What is installed: completions, `make install`, and the Debian package on a clean Debian like this one."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess

import pytest

from lib import PROGRAMS, ROOT, SOURCES, fresh, gotools, proc

THREADS = PROGRAMS / "threads"
TOOL = ROOT / "scripts/tool"
COMMANDS = dict(re.findall(r'^    {"([a-z]+)", "([^"]*)"', (TOOL / "launch/main.c").read_text(), re.M))  # with arguments
OPTIONS = re.findall(r'^    {"([a-z-]+)", ', (TOOL / "run_options.c").read_text(), re.M) + ["family", "wait", "force", "help", "version"]
VERSION = re.search(r"^## (\d\S*)", (ROOT / "scripts/CHANGELOG.md").read_text(), re.M)[1]


def command_options(command):
    text = proc.run([ROOT / "scripts/gotrace", command, "--help"]).ok().stdout
    usage = " ".join(re.findall(rf"gotrace {command} (.*)$", text, re.M))
    return {*re.findall(r"^  (?:-\w, | {4})?(--[a-z-]+)", text, re.M), *re.findall(r"--[a-z-]+", usage)}


# --- completions


def bash_completes(*words, cwd=None):
    result = proc.run(["bash", "--norc", SOURCES / "package/completes.bash", ROOT / "scripts/completion/gotrace.bash", "gotrace", *words], cwd=cwd).ok()
    assert not result.stderr, result.stderr
    return set(result.stdout.split())


def test_bash_completion(tmp_path):
    (tmp_path / "t.out").touch()
    (tmp_path / "dir").mkdir()
    assert set(COMMANDS) <= bash_completes("") and "true" in bash_completes("tru")
    assert {w.rstrip("=") for w in bash_completes("--")} == {f"--{name}" for name in OPTIONS}
    assert bash_completes("--format", "=", "go1.2") == {f for f in gotools.FORMATS if f.startswith("go1.2")}
    assert bash_completes("-F", "go1.") == set(gotools.FORMATS)
    assert bash_completes("--syscalls", "=") == {"all", "blocking", "none"}
    for command in COMMANDS:
        assert {w.rstrip("=") for w in bash_completes(command, "--")} == {*command_options(command), "--help"}, command
        if "TRACE" in COMMANDS[command]:
            assert bash_completes(command, "t.", cwd=tmp_path) == {"t.out"}
    assert bash_completes("top", "--kind", "=", "s") == {"sync", "syscall", "sched", "sleep"}
    assert bash_completes("symbolize", "--debug-dir", "=", "", cwd=tmp_path) == {"dir"}
    assert "--output=" not in bash_completes("-o", "x", "ls", "--")  # from there on it is the program's
    assert bash_completes("--", "ls", "t", cwd=tmp_path) == {"t.out"}


class Zsh:
    """An interactive zsh with our completion, on a terminal."""

    def __init__(self, cwd):
        self.terminal, its = pty.openpty()
        subprocess.run(["stty", "cols", "200", "rows", "100"], stdin=its, check=True)
        self.child = proc.spawn(["zsh", "-f", "-i"], stdin=its, stdout=its, stderr=its, cwd=cwd, env={"TERM": "dumb"})
        os.close(its)
        self.send(f"PS1='READY'; fpath=({ROOT}/scripts/completion $fpath); autoload -Uz compinit; compinit -u -D\n")
        self.send("setopt no_list_beep; LISTMAX=1000; bindkey -e; bindkey '^I' list-choices\n")
        self.send("print -r -- SET''UP\n")
        self.until("SETUP")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def until(self, *texts):
        """What it shows up to and with these; bounded by the test's limit."""
        shown = ""
        while not all(text in shown for text in texts):
            select.select([self.terminal], [], [])
            shown += os.read(self.terminal, 65536).decode(errors="replace")
        return shown

    def lists(self, line, *expected):
        self.send(f"\x15{line}\t")
        return self.until(*expected)


def test_zsh_completion(tmp_path):
    (tmp_path / "trace-of-mine.out").touch()
    zsh = Zsh(tmp_path)
    for command in COMMANDS:
        zsh.lists(f"gotrace {command[:-1]}", f"{command} ", " -- ")
    zsh.lists("gotrace --", *(f"--{name}" for name in OPTIONS))
    zsh.lists("gotrace --format=go1.2", "go1.21", "go1.26")
    zsh.lists("gotrace top --", *command_options("top"))
    zsh.lists("gotrace view --", *command_options("view"))
    zsh.lists("gotrace symbolize --", *command_options("symbolize"))
    zsh.lists("gotrace info ", "trace-of-mine.out")
    os.close(zsh.terminal)
    proc.kill_group(zsh.child)


# --- make install


def files_below(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if not p.is_dir()}


@pytest.mark.limit(180)
@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/a-b"])
def test_install_and_uninstall(tmp_path, prefix):
    make = ["make", "-C", ROOT, f"DESTDIR={tmp_path / 'root'}", f"PREFIX={prefix}"]
    proc.run([*make, "install"], timeout=150).ok()
    place = tmp_path / "root" / prefix[1:]
    found = files_below(place)
    assert {"bin/gotrace", "lib/libgotrace.so", "include/gotrace.h"} <= found
    pages = {path.name.removesuffix(".md") for path in (ROOT / "scripts/man").glob("*.md")} | {f"gotrace-{command}.1" for command in COMMANDS}
    if shutil.which("go-md2man"):
        assert {path for path in found if path.startswith("share/man")} == {f"share/man/man{page[-1]}/{page}" for page in pages}
    assert {"share/bash-completion/completions/gotrace", "share/zsh/site-functions/_gotrace"} <= found
    assert files_below(tmp_path / "root") == {f"{prefix[1:]}/{name}" for name in found}, "outside of PREFIX"
    modules = {"PKG_CONFIG_PATH": place / "share/pkgconfig"}
    assert proc.run(["pkg-config", "--modversion", "gotrace"], env=modules).ok().stdout.strip() == VERSION
    trace = tmp_path / "t.out"
    proc.run([place / "bin/gotrace", "-o", trace, THREADS, "3"]).ok()
    gotools.check(trace)
    link = tmp_path / "link"
    link.symlink_to(place / "bin/gotrace")
    proc.run([link, "-q", "-o", trace, THREADS, "3"]).ok()
    (place / "lib/another").touch()
    proc.run([*make, "uninstall"]).ok()
    assert files_below(place) == {"lib/another"}


# --- the Debian package


@pytest.fixture(scope="module")
def package():
    proc.run(["make", "-C", ROOT, "deb"], timeout=150).ok()
    arch = proc.run(["dpkg", "--print-architecture"]).ok().stdout.strip()
    return ROOT / f"build/gotrace_{VERSION}_{arch}.deb"


@pytest.mark.limit(330)
@pytest.mark.long
def test_same_bytes(package):
    """Packed anew, whatever the time, the zone and the language are."""
    first = package.read_bytes()
    shutil.rmtree(ROOT / "build/deb")
    proc.run(["make", "-C", ROOT, "deb"], env={"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}, timeout=150).ok()
    assert package.read_bytes() == first


@pytest.mark.needs("lintian")
@pytest.mark.limit(180)
def test_package(package):
    control = proc.run(["dpkg-deb", "-f", package]).ok().stdout
    assert f"Version: {VERSION}\n" in control
    depends = re.search(r"^Depends: .*\blibc6 \(>= 2\.(\d+)\).*\blibdw1(t64)?(,|$)", control, re.M)
    here = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
    assert depends and 30 <= int(depends[1]) <= here, control
    result = proc.run(["lintian", "--fail-on", "error,warning", package], timeout=120)
    assert result.returncode == 0, result.stdout


def codename():
    """Of the Debian that this machine is; None: it is none."""
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
    return system.get("VERSION_CODENAME") if system["ID"] == "debian" else None


@fresh.makes_systems
@pytest.mark.skipif(not codename(), reason="the package is for the Debian that it is made on, and here is none")
@pytest.mark.limit(900)
@pytest.mark.long
@pytest.mark.parametrize("user", ["user", *(["root"] if fresh.EVERY else [])])
def test_on_a_clean_debian(package, tmp_path, user):
    """Installs with what it depends on, works, and goes away without a trace."""
    system = fresh.System(codename(), tmp_path, user)
    assert not list(system.root.glob("usr/lib/*/libdw*")), "not a clean one"
    shutil.copy(package, system.clone / "gotrace.deb")
    shutil.copy(THREADS, system.clone / "threads")
    shutil.copy(PROGRAMS / "truth", system.clone / "truth")
    before = system.run("dpkg-query -W")
    quiet = "sudo DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0"
    system.run(f"{quiet} update && {quiet} install -y --no-install-recommends ./gotrace.deb", timeout=400)
    assert system.run("gotrace --version") == f"gotrace {VERSION}\n"
    assert (system.root / "usr/share/man/man7/libgotrace.7.gz").exists()
    system.run("gotrace -o t.out ./truth")
    assert "pthread_cond_wait <- cond_waiter (truth.c:" in system.run("gotrace top t.out")
    assert "whole: no part" in system.run("gotrace info t.out")
    system.run("LD_PRELOAD=libgotrace.so GOTRACE_OUTPUT=n.out ./threads 3")  # found by its name
    for name in "t.out", "n.out":
        gotools.check(system.clone / name)
    said = system.run("gotrace view t.out 2>&1 || echo status $?")
    assert said.endswith("status 1\n") and "which Go 1.23 or later reads; here is no Go" in said, said
    system.run(f"{quiet} purge -y gotrace && {quiet} autoremove -y")
    assert system.run("dpkg-query -W") == before
    left = list(system.root.glob("usr/**/*gotrace*"))
    assert not left, left
