"""Runs real programs twice, bare and under the library, for the tests in apps/."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import time

from . import gotools, proc

_EXIT_LINE = re.compile(r"gotrace: (\S+): [\d.]+ KiB, (\d+) events in [\d.]+ s, ([^;\n]*)")
SPEAK = {"GOTRACE_QUIET": "0"}  # children, too
_NGINX = """
daemon off; {user} worker_processes 2; pid nginx.pid; error_log stderr error; thread_pool default threads=4;
events {{ worker_connections 64; }}
http {{ access_log off; root files; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{ listen 127.0.0.1:{port}; {more} location / {{ aio threads; }} }} }}
"""
_OUR_LINE = re.compile(r"^gotrace: .*\n", re.M)


def check_traces(trace, text):
    """Checks the traces that a program and its descendants left; `text` is what they wrote to standard error.

    Each must be valid and have an exit line that says that nothing was lost. Returns their paths, the program's own
    first.
    """
    trace = pathlib.Path(trace)
    found = sorted(trace.parent.glob(trace.name + "*"))
    ended = {pathlib.Path(path): lost for path, _, lost in _EXIT_LINE.findall(text)}
    assert set(ended) == set(found) and found[0] == trace, f"{found} on disk; the exit lines:\n{text}"
    assert set(ended.values()) == {"nothing lost"}, text
    assert text.count("gotrace: ") == len(found), f"the library said more than its exit lines:\n{text}"
    for path in found:
        gotools.check_all(path)
    return found


def check_cut_trace(trace, text):
    """The same for a program that ends without a word to libc: all whole generations, and no exit line."""
    assert "gotrace" not in text, text
    gotools.check_all(trace)
    return [trace]


def same(argv, tmp_path, *, env=None, check=check_traces, **options):
    """Runs a program bare and traced; it must write the same and end the same. Returns its traces, after `check`."""
    bare = proc.run(argv, env=env, **options)
    result = proc.traced(argv, tmp_path / "t.out", env=SPEAK | (env or {}), **options)
    observed = (result.returncode, result.stdout, _OUR_LINE.sub("", result.stderr))
    assert observed == (bare.returncode, bare.stdout, bare.stderr), f"{result}\n--- bare\n{bare}"
    return check(result.trace, result.stderr)


def same_session(session, directory):
    """The same for what needs more than one command: a server and its load, a tool and its files.

    `session(env, cwd)` runs it in an empty directory, with `env` for the program to trace, and returns what must not
    change, and the program's standard error.
    """
    trace, seen = directory / "t.out", []
    for name, env in ("bare", {}), ("traced", proc.traced_env(trace, SPEAK)):
        cwd = directory / name
        cwd.mkdir(mode=0o777)
        cwd.chmod(0o777)  # whatever the umask
        behaviour, text = session(env, cwd)
        seen.append(behaviour)
    assert seen[0] == seen[1], text
    return check_traces(trace, text)


def created(trace):
    """How many threads a trace saw being made."""
    return len([e for e in gotools.parse(trace) if e.is_go("NotExist", "Runnable")])


def waits(traces, leaf, *, above="", kind="sync"):
    """How often the traces show a wait in `leaf`, one name or several, that was called, at whatever distance, by a
    function whose name contains the text `above`."""
    leaf = (leaf,) if isinstance(leaf, str) else leaf
    samples = [sample for trace in traces for sample in gotools.pprof(trace, kind).samples]
    return sum(n for stack, n, _ in samples if stack[0] in leaf and any(above in function for function in stack))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def nginx(cwd, port, more=""):
    """Configures nginx to serve the folder `files` by two workers with four threads each, and returns the command."""
    (cwd / "conf").write_text(_NGINX.format(port=port, more=more, user="user nobody nogroup;" if os.geteuid() == 0 else ""))
    return ["nginx", "-p", cwd, "-c", cwd / "conf", "-e", "stderr"]


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


@contextlib.contextmanager
def server(argv, log, ready, *, end=signal.SIGTERM, **options):
    """A server that writes to the file `log`, from when `ready()` is true; ended by the signal `end`, with status 0."""
    with open(log, "w") as out:
        child = proc.spawn(argv, stdout=out, stderr=out, **options)
    try:
        while not ready():  # bounded by the test's limit
            assert child.poll() is None, f"the server ended with {child.returncode}:\n{log.read_text()}"
            time.sleep(0.02)
        yield child
        assert child.poll() is None, f"the server ended with {child.returncode}:\n{log.read_text()}"
        status = proc.stop(child, sig=end)
        assert status == 0, f"the server ended with {status}:\n{log.read_text()}"
    finally:
        proc.kill_group(child)
