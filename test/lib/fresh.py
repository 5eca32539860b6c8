"""Minimal systems of other suites, which scripts/fresh makes, as tests use them.

CI tries each suite and each kind of user. SYSTEMS=all tries each suite as root and as a user with sudo,
and an older Debian and Ubuntu.
"""

import os
import pathlib

import pytest

from . import ROOT, SOURCES, proc

INSIDE = os.path.exists("/etc/fresh-environment")
EVERY = os.environ.get("SYSTEMS") == "all"
ALSO = [("bookworm", "root"), ("trixie", "user"), ("bullseye", "user"), ("noble", "user"), ("noble", "root")] if EVERY else []

everywhere = pytest.mark.parametrize("suite, user", [("bookworm", "user"), ("trixie", "root"), *ALSO])


def makes_systems(function):
    function = pytest.mark.needs("debootstrap")(function)
    function = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")(function)
    return pytest.mark.skipif(INSIDE, reason="this is a new system itself")(function)


class System:
    """A minimal system of a suite, with a clone in it."""

    def __init__(self, suite, directory, user="root"):
        self.root = pathlib.Path(directory) / suite
        self.argv = [ROOT / "scripts/fresh", f"--as={user}", f"--in={self.root}", suite]
        self.clone = self.root / ("root" if user == "root" else "home/user") / "libgotrace"
        self.run("true")

    def run(self, command, *arguments, timeout=300):
        """What the command prints, in the clone; with status 0."""
        return proc.run([*self.argv, "bash", "-euc", command, "bash", *arguments], timeout=timeout).ok().stdout

    def run_file(self, name, *arguments, **options):
        """What a script of test/source prints."""
        return self.run((SOURCES / name).read_text(), *arguments, **options)
