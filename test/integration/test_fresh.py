"""`scripts/fresh`: what a newcomer types, in a minimal system of each suite that the project is for.

The commands are those of README.md and those that scripts/demo prints, typed as they stand there. Every run of CI also shows
that all packages that scripts/deps names are there to be installed. With scripts/test, which takes an hour: `scripts/fresh SUITE`.
"""

import re

import pytest

import test_readme
from lib import ROOT, fresh, proc

pytestmark = pytest.mark.foreign

# The settings of apt. Go of bookworm is too old: scripts/deps takes another one from its backports, and leaves them as they were.
SETTINGS = """
{
    find /etc/apt -type f -exec sha256sum {} + | sort -k2
    apt-config dump
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' | sort -u
}
"""

# What `apt-get install --simulate` cannot find it names, and fails.
DEMO = """
megabytes() { sudo du -smx --exclude=/home --exclude=/root --exclude=/var/lib/apt/lists / | cut -f1; }
sudo apt-get -qq update
names=$(./scripts/deps --names all)
apt-get -qq install --simulate --no-install-recommends $names >/dev/null
echo "$names" | wc -w
size=$(megabytes)
./scripts/demo
echo "It takes $(($(megabytes) - size)) MB."
"""

# The viewer is a page that a server makes: that the server answers is enough.
VIEW = """
set -m
coproc bash -c '%s'
viewer=$COPROC_PID
head -n 1 <&"${COPROC[0]}"
kill -INT -- "-$viewer"
wait "$viewer"
test ! -e /usr/sbin/policy-rc.d
"""


@fresh.makes_systems
@pytest.mark.limit(1500)
@fresh.everywhere
@pytest.mark.long
def test_a_new_system(tmp_path, suite, user):
    system = fresh.System(suite, tmp_path, user)
    system.run("echo 'APT::Get::Assume-Yes \"true\";' | sudo tee /etc/apt/apt.conf.d/98yes")
    settings = system.run(SETTINGS)
    says_and_shows(system)
    assert system.run(SETTINGS) == settings
    assert test_readme.INSTALL.keys() == AWAY.keys()
    system.run("cp build/demo/shop app; cp scripts/example/pages.py app.py; chmod o+x ~; ./scripts/deps package")
    for way, command in test_readme.INSTALL.items():
        installs(system, way, command)


def says_and_shows(system):
    """scripts/demo, and each command that it prints."""
    names, *lines = system.run(DEMO, timeout=600).splitlines()
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
        said = system.run(VIEW % view, timeout=400)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+.*\n", said), said


# How each way to install is undone. Whatever that leaves is an error.
AWAY = {
    "checkout": "sudo make -s uninstall",
    "Debian package": "sudo apt-get -qq purge gotrace >/dev/null",
    "Python wheel": "pip uninstall -q -y gotrace; deactivate; test -z \"$(find v -name '*gotrace*')\"; rm -r v",
    "archive": "sudo ~/gotrace-*/install.sh --remove",
}
INSTALLED = """
there() {{ find /usr /opt /etc -xdev -not -path '/usr/share/python3*' -not -name __pycache__ -not -name '*.pyc' 2>/dev/null | sort; }}
there >before
{{
    {command} || exit
}} >/dev/null
for gotrace in gotrace 'gotrace record'; do
    $gotrace -q -o t.out -- ./app >/dev/null
    gotrace info --check t.out
    gotrace why t.out
done
gotrace -q -o t.out -- python3 app.py >/dev/null
gotrace why t.out
{typed}
# another user, who can write nowhere but to /tmp
gotrace=$(command -v gotrace)
sudo unshare --mount bash -euc 'mount --bind /tmp /tmp; mount -o remount,ro,bind /; exec runuser -u nobody -- "$@"' bash \\
    "$gotrace" record -q -o /tmp/nobody.out -- ./app >/dev/null
sudo "$gotrace" info --check /tmp/nobody.out
sudo rm /tmp/nobody.out
{away}
there | diff before -
"""


def installs(system, way, command):
    """One line of README.md in the checkout; then gotrace is on PATH and records, for another user, too, and goes away again."""
    typed = [f"{then}; gotrace info --check trace.out; rm trace.out" for then in test_readme.PYTHON] if way == "Python wheel" else []
    said = system.run(INSTALLED.format(command=command, typed="\n".join(typed), away=AWAY[way]), timeout=400)
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
