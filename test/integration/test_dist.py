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


def files_below(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if not p.is_dir()}


@pytest.mark.limit(250)
def test_dist(tmp_path):
    said, first = make_dist()
    needs = re.search(rf"^build/{NAME}.tar.xz: for glibc 2\.(\d+) and later\n$", said)
    assert needs and 30 <= int(needs[1]) <= int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1]), said

    subprocess.run(["tar", "-C", tmp_path, "-xJ"], input=first, check=True)
    unpacked = tmp_path / NAME
    for name in "bin/gotrace", "lib/libgotrace.so":
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

    # As one that was made for a later glibc: with it no program would start.
    library = unpacked / "lib/libgotrace.so"
    library.write_bytes(re.sub(rb"\0GLIBC_2\.\d\d\0", b"\0GLIBC_9.99\0", library.read_bytes()))
    result = proc.run([unpacked / "install.sh", prefix])
    assert result.returncode == 1 and "nothing is installed" in result.stderr and "GLIBC_9.99" in result.stderr, result
    assert files_below(prefix) == {"lib/another"}


@pytest.mark.limit(250)
def test_same_bytes():
    """Linked and packed anew, whatever the time, the zone, the language and the settings of tools are."""
    first = make_dist(SOURCE_DATE_EPOCH="1700000000", TZ="UTC")
    shutil.rmtree(ROOT / "build/dist")
    again = make_dist(SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C.UTF-8", XZ_OPT="-1")
    assert first == again


def test_without_xz(tmp_path):
    """A message that says what is missing, and no file that is none."""
    for program in ("bash", "dirname", "env", "cat"):
        (tmp_path / program).symlink_to(shutil.which(program))
    archives = {path: path.stat() for path in (ROOT / "build").glob("*.tar.xz")}
    result = proc.run([ROOT / "scripts/dist", "9.9.9"], env={"PATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (1, "") and "xz is needed" in result.stderr, result
    assert {path: path.stat() for path in (ROOT / "build").glob("*.tar.xz")} == archives
