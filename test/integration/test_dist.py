"""`make dist`: the file that people get: it is whole, works where it is unpacked and where it is installed, and is the same each time."""

import os
import re
import shutil
import subprocess

import pytest

from lib import PROGRAMS, ROOT, gotools, proc

pytestmark = pytest.mark.beside

VERSION = re.search(r"^## (\d\S*)", (ROOT / "scripts/CHANGELOG.md").read_text(), re.M)[1]
NAME = f"gotrace-{VERSION}-{os.uname().machine}"


def make_dist(**env):
    """What it says, and the file's bytes."""
    result = proc.run(["make", "-s", "-C", ROOT, "dist"], env=env, timeout=100).ok()
    return result.stdout, (ROOT / f"build/{NAME}.tar.xz").read_bytes()


def newest_needed(file):
    """The newest version of glibc that the file's version needs name."""
    text = proc.run(["readelf", "-W", "-V", file]).ok().stdout
    needs = re.findall(r"Name: GLIBC_([\w.]+)", text.split("Version needs")[1])
    assert needs
    return max(tuple(map(int, need.split("."))) for need in needs)


def files_below(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if not p.is_dir()}


@pytest.mark.foreign
@pytest.mark.limit(250)
def test_dist(tmp_path):
    said, first = make_dist()
    assert said == f"build/{NAME}.tar.xz: for glibc 2.31 and later\n"

    subprocess.run(["tar", "-C", tmp_path, "-xJ"], input=first, check=True)
    unpacked = tmp_path / NAME
    for name in "bin/gotrace", "lib/libgotrace.so":
        assert newest_needed(unpacked / name) <= (2, 31), name
        symbols = proc.run(["readelf", "-W", "--dyn-syms", unpacked / name]).ok().stdout
        assert re.search(r"WEAK +DEFAULT +UND strerrordesc_np$", symbols, re.M), "a newer glibc is not asked for what it has"
        content = (unpacked / name).read_bytes()
        assert str(ROOT).encode() not in content, f"{name} has paths of the machine that built it"
    assert {"README.md", "LICENSE", "CHANGELOG.md", "install.sh", "include/gotrace.h"} < files_below(unpacked)

    prefix = tmp_path / "prefix"
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib/another").touch()
    assert proc.run([unpacked / "install.sh", "--help"]).returncode == 2
    proc.run([unpacked / "install.sh", prefix]).ok()
    assert (prefix / "share/man/man1/gotrace.1").read_bytes() == (ROOT / "scripts/gotrace.1").read_bytes()
    for place in unpacked, prefix:
        assert proc.run([place / "bin/gotrace", "--version"]).ok().stdout == f"gotrace {VERSION}\n"
        trace = tmp_path / "t.out"
        proc.run([place / "bin/gotrace", "-o", trace, PROGRAMS / "truth"]).ok()
        gotools.check(trace)
        assert "pthread_cond_wait <- cond_waiter (truth.c:" in proc.run([place / "bin/gotrace", "top", trace]).ok().stdout
        modules = {"PKG_CONFIG_PATH": place / "share/pkgconfig"}
        flags = proc.run(["pkg-config", "--cflags", "gotrace"], env=modules).ok().stdout
        assert flags.replace("\\", "").strip().endswith("share/pkgconfig/../../include"), flags
    proc.run([unpacked / "install.sh", "--remove", prefix]).ok()
    assert files_below(prefix) == {"lib/another"}

    # As one that was made for a later glibc: with it no program would start. What was installed before stays.
    proc.run([unpacked / "install.sh", prefix]).ok()
    before = {path: (prefix / path).read_bytes() for path in files_below(prefix)}
    library = unpacked / "lib/libgotrace.so"
    library.write_bytes(re.sub(rb"\0GLIBC_2\.\d\d\0", b"\0GLIBC_9.99\0", library.read_bytes()))
    result = proc.run([unpacked / "install.sh", prefix])
    assert result.returncode == 1 and "nothing is installed" in result.stderr and "GLIBC_9.99" in result.stderr, result
    assert {path: (prefix / path).read_bytes() for path in files_below(prefix)} == before


@pytest.mark.foreign
@pytest.mark.limit(250)
def test_same_bytes():
    """Linked and packed anew, whatever the time, the zone, the language and the settings of tools are."""
    first = make_dist(SOURCE_DATE_EPOCH="1700000000", TZ="UTC")
    shutil.rmtree(ROOT / "build/dist")
    again = make_dist(SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C.UTF-8", XZ_OPT="-1")
    assert first == again


@pytest.mark.foreign
def test_without_xz(tmp_path):
    """A message that says what is missing, and no file that is none."""
    for program in ("bash", "dirname", "env", "cat"):
        (tmp_path / program).symlink_to(shutil.which(program))
    archives = {path: path.stat() for path in (ROOT / "build").glob("*.tar.xz")}
    result = proc.run([ROOT / "scripts/dist", "9.9.9"], env={"PATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (1, "") and "xz is needed" in result.stderr, result
    assert {path: path.stat() for path in (ROOT / "build").glob("*.tar.xz")} == archives


@pytest.mark.foreign
@pytest.mark.parametrize("how", ["link", "versions"])
def test_what_an_old_glibc_lacks(tmp_path, how):
    """Is named, and there is no archive; whether the linker finds it, or what it has linked is looked at."""
    archives = {path: path.stat() for path in (ROOT / "build").glob("*.tar.xz")}
    if how == "link":
        (tmp_path / "new.c").write_text("unsigned arc4random(void); unsigned use(void) { return arc4random(); }\n")  # glibc 2.36
        proc.run(["gcc", "-fPIC", "-c", "-o", tmp_path / "new.o", tmp_path / "new.c"]).ok()
        flags, named = tmp_path / "new.o", "arc4random"
    else:
        flags = proc.run(["gcc", "-print-file-name=libc.so.6"]).ok().stdout.strip()
        named = "would not run with glibc 2.31: it needs"
    result = proc.run(["make", "-s", "-C", ROOT, "dist", f"LDFLAGS={flags}"], timeout=100)
    assert result.returncode and named in result.stderr, result
    assert how == "link" or "dlsym@GLIBC_2.34" in result.stderr, result
    assert {path: path.stat() for path in (ROOT / "build").glob("*.tar.xz")} == archives


# --- on other systems

# What the archive has to do there; the programs are linked as it is.
TRY = """
timeout 20 env LD_PRELOAD=$PWD/{name}/lib/libgotrace.so GOTRACE_OUTPUT=/tmp/true.out true
timeout 20 env LD_PRELOAD=$PWD/{name}/lib/libgotrace.so GOTRACE_OUTPUT=/tmp/threads.out ./threads 3
cd {name}
timeout 60 ./bin/gotrace -o /tmp/truth.out ../truth >/dev/null
for trace in true threads truth; do timeout 20 ./bin/gotrace info --check /tmp/$trace.out; done
timeout 20 ./bin/gotrace top /tmp/truth.out
timeout 20 ./bin/gotrace why /tmp/truth.out
./install.sh
gotrace --version
"""
BUILD = """
apt-get -qq update
./scripts/deps build
apt-get -qq install -y --no-install-recommends xz-utils >/dev/null
make -s -j2 dist
"""


class System:
    """A minimal system of a suite, with a clone in it."""

    def __init__(self, suite, directory):
        self.argv = [ROOT / "scripts/fresh", "--as=root", f"--in={directory / suite}", suite]
        self.clone = directory / suite / "root/libgotrace"
        self.run("true")

    def run(self, command, timeout=300):
        return proc.run([*self.argv, "bash", "-euc", command], timeout=timeout).ok().stdout

    def tries(self, archive):
        subprocess.run(["tar", "-C", self.clone, "-xJf", archive], check=True)
        for name in "truth", "threads":
            older = ROOT / "build/dist/older"
            flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-pthread", f"-L{older}", "-Wl,--no-as-needed", "-l:libpthread.so.0", "-l:librt.so.1"]
            proc.run(["gcc", *flags, "-o", self.clone / name, ROOT / f"test/prog/{name}.c"]).ok()
        said = self.run(TRY.format(name=NAME))
        assert said.count("Go's reader takes all of it") == 3 and said.endswith(f"gotrace {VERSION}\n"), said
        assert "pthread_cond_wait <- cond_waiter" in said and "Critical path" in said, said


def makes_systems(function):
    function = pytest.mark.needs("debootstrap")(function)
    function = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")(function)
    return pytest.mark.skipif(os.path.exists("/etc/fresh-environment"), reason="this is a new system itself")(function)


@pytest.mark.foreign
@makes_systems
@pytest.mark.limit(600)
@pytest.mark.parametrize("suite", ["bullseye", "bookworm", "trixie"])
def test_on_other_systems(tmp_path, suite):
    make_dist()
    System(suite, tmp_path).tries(ROOT / f"build/{NAME}.tar.xz")


@pytest.mark.foreign
@makes_systems
@pytest.mark.limit(900)
def test_made_on_a_newer_system(tmp_path):
    """By its headers and static libraries, which call what older systems have not."""
    make_dist()  # for the programs
    newer = System("trixie", tmp_path)
    newer.run(BUILD, timeout=800)
    System("bullseye", tmp_path).tries(newer.clone / f"build/{NAME}.tar.xz")
