"""`scripts/fresh`: what a newcomer types, in a minimal system of each suite that the project is for.

Every run of CI shows that all packages that scripts/deps names are there to be installed, and that scripts/demo ends
well, as a user with sudo. Both commands as root and as a user, which takes an hour: `scripts/fresh SUITE`.
"""

import os
import re

import pytest

import test_readme
from lib import ROOT, proc

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.needs("debootstrap"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(os.path.exists("/etc/fresh-environment"), reason="this is a new system itself"),
]

# What `apt-get install --simulate` cannot find it names, and fails. Then each command that the demo names is typed. The Go of
# bookworm is too old: scripts/deps takes another one from its backports, and leaves apt's settings as they were. The viewer
# is a page that a server makes: that the server answers is enough.
COMMANDS = """
configuration() {
    find /etc/apt -type f -exec sha256sum {} + | sort -k2
    apt-config dump
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' | sort -u
}
megabytes() { sudo du -smx --exclude=/home --exclude=/var/lib/apt/lists / | cut -f1; }
before=$(configuration)
sudo apt-get -qq update
names=$(./scripts/deps --names all)
apt-get -qq install --simulate --no-install-recommends $names >/dev/null
echo "$names" | wc -w
size=$(megabytes)
./scripts/demo
echo "It takes $(($(megabytes) - size)) MB."
scripts/gotrace why build/demo/shop.trace | grep '^Critical path'
scripts/gotrace top --holders build/demo/shop.trace | grep -m 1 cache_lock
scripts/deps view
coproc scripts/gotrace view --no-browser build/demo/shop.trace
viewer=$COPROC_PID
head -n 1 <&"${COPROC[0]}"
kill -INT "$viewer"
wait "$viewer"
test ! -e /usr/sbin/policy-rc.d
diff <(echo "$before") <(configuration) >&2
"""


@pytest.mark.limit(1500)
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
@pytest.mark.long
def test_demo_in_a_new_system(suite):
    argv = [ROOT / "scripts/fresh", "--as=user", suite, "bash", "-euc", COMMANDS]
    result = proc.run(argv, timeout=1400).ok()
    names, *lines = result.stdout.splitlines()
    assert int(names) > 50
    assert re.fullmatch(r"Installing what is missing \(root or sudo\) +\d+ s", lines[0]), result
    assert re.fullmatch(r"Building +\d+ s", lines[1]), result
    text = "\n".join(lines)
    shown, after = text.split("\nIt takes ")
    assert shown.count("\n") < 45, shown
    test_readme.check_demo(shown)
    (last,) = (line for line in shown.splitlines() if "gotrace view" in line)
    assert last.startswith("  scripts/deps view; scripts/gotrace view build/demo/shop.trace "), shown
    assert re.fullmatch(r"(\d+) MB\.\nCritical path.*\n.*cache_lock.*\nhttp://127\.0\.0\.1:\d+.*", after), after
    assert 100 < int(after.split()[0]) < 400, "without Go and what only tests need"
    assert re.search(rf"scripts/fresh: {suite}, as user: .*: status 0 after \d+ s", result.stderr), result


@pytest.mark.limit(400)
def test_what_is_left_running_is_told(tmp_path):
    """And gone afterwards, as the mounts and the system are."""
    argv = [ROOT / "scripts/fresh", "--as=root", "bookworm", "sh", "-c", "sleep 1234 & sleep 0"]
    result = proc.run(argv, env={"TMPDIR": tmp_path}, timeout=400)
    assert result.returncode == 1 and "left running: sleep 1234" in result.stderr, result
    with open("/proc/mounts") as mounts:
        assert str(tmp_path) not in mounts.read()
    assert not list(tmp_path.iterdir())
