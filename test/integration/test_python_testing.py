"""What Python executes and waits for, again with the newest versions of Debian testing: layouts, locks and code differ by version."""

import os
import shutil
import sys

import pytest

from lib import ROOT, proc

VERSIONS = "python3.14", "python3.15"
# What is needed of a system there, kept: getting it takes minutes.
ARCHIVE = ROOT / "build/debootstrap/pythons.tar"
TESTS = {
    "test_python.py": "(tree or names_of_threads or functions_of_threads or live) and not embedded",
    "test_gil.py": "deadlock or of_its_own or holder or simple_queue",
}

pytestmark = [pytest.mark.foreign, pytest.mark.limit(1500), pytest.mark.needs("debootstrap"), pytest.mark.needs("patchelf")]


@pytest.fixture(scope="module")
def pythons(tmp_path_factory):
    """The interpreters, which run here with the C library of their system."""
    directory = tmp_path_factory.mktemp("pythons")
    if os.getuid() != 0:
        pytest.skip("a system of its own needs root")
    if not ARCHIVE.exists():
        fresh = directory / "fresh"
        packages = f"--include={','.join(VERSIONS)}"
        proc.run(["debootstrap", "--variant=minbase", packages, "testing", fresh, "http://deb.debian.org/debian"], timeout=900).ok()
        ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
        proc.run(["tar", "-C", fresh, "-cf", f"{ARCHIVE}.new", "usr/bin", "usr/lib", "etc"], timeout=100).ok()
        os.replace(f"{ARCHIVE}.new", ARCHIVE)
        shutil.rmtree(fresh)
    proc.run(["tar", "-C", directory, "-xf", ARCHIVE], timeout=100).ok()
    found = [directory / "usr/bin" / name for name in VERSIONS]
    (libraries,) = (directory / "usr/lib").glob("*-linux-gnu")
    (loader,) = libraries.glob("ld-linux-*.so.*")
    for python in found:
        proc.run(["patchelf", "--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries, python]).ok()
    return found


@pytest.mark.parametrize("jit", ["0", "1"])
@pytest.mark.parametrize("file", TESTS)
def test_newest_versions(pythons, file, jit):
    env = {"GOTRACE_TEST_PYTHONS": ":".join(map(str, pythons)), "PYTHON_JIT": jit}
    command = [sys.executable, "-m", "pytest", "-q", "-k", TESTS[file], ROOT / "test/integration" / file]
    result = proc.run(command, env=env, timeout=700)
    assert result.returncode == 0 and " passed" in result.stdout, result.stdout
