"""The constructor of a plugin may be the whole application; its thread has the loader's lock all the time."""

import pytest

from lib import SINGLE, SOURCES, gotools, proc, reports


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    plugin = proc.compile(SOURCES / "constructors/plugin.c", folder / "plugin.so", "-shared", "-fPIC", "-g", "-pthread")
    return [SINGLE / "constructors/loads", plugin]


@pytest.mark.measured
@pytest.mark.parametrize("how", ["exit", "_exit", "abort", "exec", "fork", "beside", "return"])
def test_ends_at_once(built, tmp_path, how):
    bare = proc.run(built, env={"HOW": how})
    result = proc.traced(built, tmp_path / "t.out", env={"HOW": how})
    assert (result.returncode, result.stdout) == (bare.returncode, bare.stdout), result
    assert "could not be written" not in result.stderr and "lost" not in result.stderr.replace("nothing lost", ""), result
    assert result.seconds < bare.seconds + 5, "it waited for our thread, which waited for the loader's lock"
    traces = sorted(tmp_path.glob("t.out*"))
    assert len(traces) == (2 if how == "fork" else 1)
    for trace in traces:
        gotools.check_all(trace)
        slept = [(count, what) for _, count, what in reports.waits(trace, "sleep") if "usleep" in what]
        assert sum(count for count, _ in slept) == 400, "each of two threads slept 200 times"
        assert all("work" in what for _, what in slept), slept
