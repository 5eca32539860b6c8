"""`scripts/fresh`: what a newcomer types, in a minimal system of each suite that the project is for.

The commands are those of README.md and those that scripts/demo prints, typed as they stand there. Every run of CI also shows
that all packages that scripts/deps names are there to be installed. With scripts/test, which takes an hour: `scripts/fresh SUITE`.
"""

import re

import pytest

import test_readme
from lib import ROOT, fresh, proc

pytestmark = pytest.mark.foreign

@fresh.makes_systems
@pytest.mark.limit(1500)
@fresh.everywhere
@pytest.mark.long
def test_a_new_system(tmp_path, suite, user):
    system = fresh.System(suite, tmp_path, user)
    system.run("echo 'APT::Get::Assume-Yes \"true\";' | sudo tee /etc/apt/apt.conf.d/98yes")
    settings = system.run_file("fresh/settings.sh")
    says_and_shows(system)
    # Go of bookworm is too old: scripts/deps takes another one from its backports.
    assert system.run_file("fresh/settings.sh") == settings
    assert test_readme.INSTALL.keys() == AWAY.keys()
    system.run("cp build/demo/shop app; cp scripts/example/pages.py app.py; chmod o+x ~; ./scripts/deps package")
    for way, command in test_readme.INSTALL.items():
        installs(system, way, command)


def says_and_shows(system):
    """scripts/demo, and each command that it prints."""
    names, *lines = system.run_file("fresh/demo.sh", timeout=600).splitlines()
    assert int(names) > 50
    assert re.fullmatch(r"Installing what is missing \(root or sudo\) +\d+ s", lines[0]), lines
    assert re.fullmatch(r"Building +\d+ s", lines[1]), lines
    shown, size = "\n".join(lines).split("\nIt takes ")
    assert shown.count("\n") < 45, shown
    assert 100 < int(size.split()[0]) < 400, "without Go and what only tests need"
    test_readme.check_demo(shown)
    why, holders, view = test_readme.next_commands(shown)
    assert view == "scripts/deps view; scripts/gotrace view build/demo/shop.trace"
    said = system.run("\n".join(re.findall(r"^\$ (.*)", shown, re.M)))
    assert said.count("400 orders") == 2 and "* Lock held across I/O: cache_lock" in said and "characters" in said, said
    assert "\nCritical path" in system.run(why)
    assert "cache_lock" in system.run(holders)
    if system.root.name in ("bookworm", "trixie"):  # no source of packages that other minimal systems have brings a Go 1.23
        said = system.run_file("fresh/view.sh", view, timeout=400)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+.*\n", said), said


# How each way to install is undone. Whatever that leaves is an error.
AWAY = {
    "checkout": "sudo make -s uninstall",
    "Debian package": "sudo apt-get -qq purge gotrace >/dev/null",
    "Python wheel": "pip uninstall -q -y gotrace; deactivate; test -z \"$(find v -name '*gotrace*')\"; rm -r v",
    "archive": "sudo ~/gotrace-*/install.sh --remove",
}


def installs(system, way, command):
    """One line of README.md in the checkout; then gotrace is on PATH and records, for another user, too, and goes away again."""
    typed = [f"{then}; gotrace info --check trace.out; rm trace.out" for then in test_readme.PYTHON] if way == "Python wheel" else []
    said = system.run_file("fresh/installed.sh", command, "\n".join(typed), AWAY[way], timeout=400)
    assert said.count("Go's reader takes all of it") == 3 + len(typed), said
    assert said.count("read <- ask_for_price (shop.c:") >= 2 and "<- ask_service (app.py:" in said, said


@fresh.makes_systems
@pytest.mark.limit(400)
def test_what_is_left_running_is_told(tmp_path):
    """And gone afterwards, as the mounts and the system are."""
    argv = [ROOT / "scripts/fresh", "--as=root", "bookworm", "sh", "-c", "sleep 1234 & sleep 0"]
    result = proc.run(argv, env={"TMPDIR": tmp_path}, timeout=400)
    assert result.returncode == 1 and "left running: sleep 1234" in result.stderr, result
    with open("/proc/mounts") as mounts:
        assert str(tmp_path) not in mounts.read()
    assert not list(tmp_path.iterdir())
