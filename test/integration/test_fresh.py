"""`scripts/fresh`: what a newcomer types, in a minimal system of each suite that the project is for.

Every run of CI shows that all packages that scripts/deps names are there to be installed, and that scripts/demo ends
well, as a user with sudo. Both commands as root and as a user, which takes an hour: `scripts/fresh SUITE`.
"""

import os
import re

import pytest

from lib import ROOT, proc

pytestmark = [
    pytest.mark.beside,
    pytest.mark.needs("debootstrap"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(os.path.exists("/etc/fresh-environment"), reason="this is a new system itself"),
]

# What `apt-get install --simulate` cannot find it names, and fails. The Go of bookworm is too old: scripts/deps takes another
# one from its backports, and leaves what apt is told to do as it was.
COMMANDS = """
configuration() {
    find /etc/apt -type f -exec sha256sum {} + | sort -k2
    apt-config dump
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' | sort -u
}
before=$(configuration)
sudo apt-get -qq update
names=$(./scripts/deps --names all)
apt-get -qq install --simulate --no-install-recommends $names >/dev/null
echo "$names" | wc -w
./scripts/demo
test ! -e /usr/sbin/policy-rc.d
diff <(echo "$before") <(configuration) >&2
"""


@pytest.mark.foreign
@pytest.mark.limit(900)
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_demo_in_a_new_system(suite):
    argv = [ROOT / "scripts/fresh", "--as=user", suite, "bash", "-euc", COMMANDS]
    result = proc.run(argv, timeout=850).ok()
    names, *lines = result.stdout.splitlines()
    assert int(names) > 50
    assert re.fullmatch(r"Installing what is missing \(root or sudo\) +\d+ s", lines[0]), result
    assert re.fullmatch(r"Building +\d+ s", lines[1]), result
    assert len(lines) < 30, result
    text = "\n".join(lines)
    assert "Tracing: pigz -p 4" in text and re.search(r"pthread_cond_wait <- pigz\+0x", text), text
    assert "No names of functions in pigz" in text and "-dbgsym" in text
    assert re.search(r"scripts/gotrace view build/demo/pigz.trace\n\(Its Go is /usr/lib/go-1\.\d+/bin/go", text), text
    assert "nothing lost; view: " in result.stderr, result
    assert re.search(rf"scripts/fresh: {suite}, as user: .*: status 0 after \d+ s", result.stderr), result
    megabytes = int(re.search(r"the system grew by (\d+) MB", result.stderr)[1])
    assert 100 < megabytes < 1000, result


@pytest.mark.foreign
@pytest.mark.limit(400)
def test_what_is_left_running_is_told(tmp_path):
    """And gone afterwards, as the mounts and the system are."""
    argv = [ROOT / "scripts/fresh", "--as=root", "bookworm", "sh", "-c", "sleep 1234 & sleep 0"]
    result = proc.run(argv, env={"TMPDIR": tmp_path}, timeout=400)
    assert result.returncode == 1 and "left running: sleep 1234" in result.stderr, result
    with open("/proc/mounts") as mounts:
        assert str(tmp_path) not in mounts.read()
    assert not list(tmp_path.iterdir())
