"""`make dist` and `make wheel`, one after the other: the file that people get: it is whole, works where it is unpacked and where it is installed, and is the same each time."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile

import pytest

from lib import PROGRAMS, ROOT, SOURCES, fresh, gotools, proc

VERSION = re.search(r"^## (\d\S*)", (ROOT / "scripts/CHANGELOG.md").read_text(), re.M)[1]
NAME = f"gotrace-{VERSION}-{os.uname().machine}"


def make_dist(**env):
    """What it says, and the file's bytes."""
    result = proc.run(["make", "-s", "-C", ROOT, "dist"], env=env, timeout=100).ok()
    return result.stdout, (ROOT / f"build/{NAME}.tar.xz").read_bytes()


@pytest.fixture(scope="module")
def made():
    return make_dist()


def newest_needed(file):
    """The newest version of glibc that the file's version needs name."""
    text = proc.run(["readelf", "-W", "-V", file]).ok().stdout
    needs = re.findall(r"Name: GLIBC_([\w.]+)", text.split("Version needs")[1])
    assert needs
    return max(tuple(map(int, need.split("."))) for need in needs)


def below(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*")}


def files_below(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if not p.is_dir()}


@pytest.mark.foreign
@pytest.mark.limit(250)
def test_dist(tmp_path, made):
    said, first = made
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
    for page in (ROOT / "scripts/man").glob("*.md"):
        name = page.name.removesuffix(".md")
        assert (prefix / f"share/man/man{name[-1]}" / name).read_bytes() == (ROOT / "build/man" / name).read_bytes(), name
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
    assert below(prefix) == {"bin", "include", "lib", "lib/another", "share", "share/man"}

    # As one that was made for a later glibc: with it no program would start. The installed version stays.
    proc.run([unpacked / "install.sh", prefix]).ok()
    before = {path: (prefix / path).read_bytes() for path in files_below(prefix)}
    library = unpacked / "lib/libgotrace.so"
    library.write_bytes(re.sub(rb"\0GLIBC_2\.\d\d\0", b"\0GLIBC_9.99\0", library.read_bytes()))
    result = proc.run([unpacked / "install.sh", prefix])
    assert result.returncode == 1 and "nothing is installed" in result.stderr and "GLIBC_9.99" in result.stderr, result
    assert {path: (prefix / path).read_bytes() for path in files_below(prefix)} == before


@pytest.mark.limit(250)
def test_installing_without_permission(made):
    """One line that says what to type, and nothing is copied."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        subprocess.run(["tar", "-C", place, "-xJ"], input=made[1], check=True)
        (place / "prefix/bin").mkdir(parents=True)
        (place / "prefix").chmod(0o755)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        result = proc.run([*user, "./install.sh", place / "prefix"], cwd=place / NAME)
        said = f"install.sh: {place / 'prefix'} cannot be written to. Run: sudo ./install.sh {place / 'prefix'}, or give a folder of yours as PREFIX\n"
        assert (result.returncode, result.stderr) == (1, said), result
        assert below(place / "prefix") == {"bin"}


@pytest.mark.foreign
@pytest.mark.limit(250)
@pytest.mark.long
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

BUILD = """
./scripts/deps package
make -s -j2 wheel
"""


def tries(system, archive, wheel):
    subprocess.run(["tar", "-C", system.clone, "-xJf", archive], check=True)
    shutil.copy(wheel, system.clone)
    for *sources, main in ["test/prog/truth.c"], ["test/prog/threads.c"], ["encoder/base/glibc.c", "test/unit/glibc.c"]:
        older = ROOT / "build/dist/older"
        flags = ["-std=gnu11", "-D_GNU_SOURCE", "-I.", "-O1", "-pthread", f"-L{older}", "-Wl,--no-as-needed", "-l:libpthread.so.0", "-l:librt.so.1"]
        proc.run(["gcc", *flags, "-o", system.clone / pathlib.Path(main).stem, *sources, main], cwd=ROOT).ok()
    said = system.run_file("dist/tries.sh", NAME)
    assert said.count("Go's reader takes all of it") == 4 and said.endswith(f"gotrace {VERSION}\n"), said
    assert "pthread_cond_wait <- cond_waiter" in said and "Critical path" in said and "<- ask_service (pages.py:" in said, said


@pytest.mark.foreign
@fresh.makes_systems
@pytest.mark.limit(600)
@pytest.mark.parametrize("suite", ["bullseye", *(pytest.param(suite, marks=pytest.mark.long) for suite in ("bookworm", "trixie", *(["noble"] if fresh.EVERY else [])))])  # the oldest glibc first
def test_on_other_systems(tmp_path, wheel, suite):
    tries(fresh.System(suite, tmp_path), ROOT / f"build/{NAME}.tar.xz", wheel)


@pytest.mark.foreign
@fresh.makes_systems
@pytest.mark.limit(900)
@pytest.mark.long
def test_made_on_a_newer_system(tmp_path):
    """By its headers and static libraries, which call what older systems have not."""
    make_dist()  # for the programs
    newer = fresh.System("trixie", tmp_path)
    newer.run(BUILD, timeout=800)
    (wheel,) = (newer.clone / "build").glob("*.whl")
    tries(fresh.System("bullseye", tmp_path), newer.clone / f"build/{NAME}.tar.xz", wheel)


# --- by pip: in a virtual environment, of another user, and where nothing can be written

@pytest.fixture(scope="module")
def wheel():
    said = proc.run(["make", "-s", "-C", ROOT, "wheel"], timeout=200).ok().stdout
    return ROOT / re.search(r"^(build/gotrace-\S+\.whl): ", said, re.M)[1]


@pytest.fixture
def folder():
    """A folder that any user can enter and write to."""
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name).chmod(0o777)
        yield pathlib.Path(name)


@pytest.fixture(scope="module")
def installed(wheel):
    """A virtual environment that anybody can use."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        yield from environment(place, wheel)


def environment(place, wheel):
    subprocess.run(["/usr/bin/python3", "-m", "venv", place / "venv"], check=True)
    python = place / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel], check=True)
    yield place / "venv"


@pytest.mark.limit(300)
def test_the_wheels_list_of_files(wheel):
    """RECORD names each file with its sum; the tag is of what the files need."""
    with zipfile.ZipFile(wheel) as files:
        record = next(name for name in files.namelist() if name.endswith(".dist-info/RECORD"))
        rows = dict(line.rsplit(",", 2)[:2] for line in files.read(record).decode().splitlines())
        assert set(rows) == set(files.namelist())
        for name, digest in rows.items():
            its = base64.urlsafe_b64encode(hashlib.sha256(files.read(name)).digest()).rstrip(b"=").decode()
            assert name == record or digest == f"sha256={its}", name
        tag = re.search(r"^Tag: py3-none-manylinux_2_(\d+)_(\w+)$", files.read(record.replace("RECORD", "WHEEL")).decode(), re.M)
        assert tag[0].removeprefix("Tag: ") in wheel.name and tag[2] == os.uname().machine
        for name in files.namelist():
            if name.endswith(("scripts/gotrace", "libgotrace.so")):
                needs = {int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", files.read(name))}
                assert max(needs) <= int(tag[1]), (name, needs)


@pytest.mark.foreign
@pytest.mark.limit(300)
def test_auditwheel_confirms_the_tag(wheel):
    if not (ROOT / "build/auditwheel").exists():
        pytest.skip("auditwheel is not here; ./scripts/deps all installs it")
    shown = proc.run(["/usr/bin/python3", "-m", "auditwheel", "show", wheel], env={"PYTHONPATH": ROOT / "build/auditwheel"}).ok().stdout
    (tag,) = re.findall(r'consistent with\s+the following platform tag:\s+"(\w+)"', shown)
    assert wheel.name.endswith(f"-{tag}.whl"), shown


@pytest.mark.limit(300)
def test_the_wheel_is_the_same_each_time(wheel):
    first = wheel.read_bytes()
    proc.run(["make", "-s", "-C", ROOT, "wheel"], timeout=200).ok()
    assert wheel.read_bytes() == first


def around(how, folder):
    """How a program is started: as another user, or with all but the folder read-only."""
    if how == "":
        return []
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if how == "user":
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    keep = 'mount --bind "$0" "$0" && mount -o remount,ro,bind / && exec "$@"'
    return ["unshare", "-m", "sh", "-c", keep, folder]


@pytest.mark.limit(300)
@pytest.mark.parametrize("how", ["", "user", "read-only"])
def test_the_wheels_command(installed, folder, how):
    gotrace, trace = installed / "bin/gotrace", folder / "t.out"
    before = around(how, folder)
    script = shutil.copy(SOURCES / "dist/sleeps.py", folder)
    python = installed / "bin/python"
    proc.run([*before, gotrace, "record", "-q", "-o", trace, "--", python, script], cwd=folder).ok()
    gotools.check(trace)
    assert "work (sleeps.py:5)" in proc.run([*before, gotrace, "why", trace]).ok().stdout


@pytest.mark.limit(300)
def test_in_place_of_python(installed, tmp_path):
    """`python -m gotrace app.py`: the script's own arguments and status stay."""
    script = SOURCES / "dist/prints.py"
    python = installed / "bin/python"
    for options in ([], ["-q"], ["-o", "x.out"], ["--cpu-hz=100", "--"]):
        result = proc.run([python, "-m", "gotrace", *options, script, "-o", "1", "--two"], cwd=tmp_path)
        assert result.returncode == 3 and result.stdout == "['-o', '1', '--two']\n", result
    assert (tmp_path / "x.out").exists() and (tmp_path / "trace.out").exists()
    result = proc.run([python, "-m", "gotrace", "-m", "platform"], cwd=tmp_path).ok()
    assert "Linux" in result.stdout
    assert proc.run([python, "-m", "gotrace"]).returncode == 1
    assert "usage: gotrace" in proc.run([python, "-m", "gotrace", "--help"]).ok().stdout


@pytest.mark.limit(300)
def test_the_wheels_pages(installed):
    shown = proc.run([installed / "bin/gotrace", "help", "why"], env={"MANPAGER": "cat", "PAGER": "cat"}).ok().stdout
    assert "gotrace-why" in shown or "usage: gotrace why" in shown
    assert (installed / "share/man/man1/gotrace-why.1").exists()


@pytest.mark.limit(300)
def test_a_wheel_that_is_removed_leaves_nothing(wheel, tmp_path):
    subprocess.run(["/usr/bin/python3", "-m", "venv", tmp_path / "v"], check=True)
    python = tmp_path / "v/bin/python"
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]

    def files():
        return {path for path in (tmp_path / "v").rglob("*") if path.is_file() and "__pycache__" not in path.parts}

    before = files()
    subprocess.run([*pip, "install", "--no-index", wheel], check=True)
    assert tmp_path / "v/bin/gotrace" in files() - before
    subprocess.run([*pip, "uninstall", "-y", "gotrace"], check=True)
    assert files() == before
