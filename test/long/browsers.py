"""Firefox and Chromium of the distribution, headless: a local page is the same with the library as without, under each switch.

python3 test/long/browsers.py [BROWSER…]

Needs the packages `firefox-esr` and `chromium`. Each of their processes is under the library, and each has threads, fork
servers and functions of libc of its own. Chromium says what became of the page; Firefox makes a picture of it. What
the script in the page computes is in both. Every trace is read by Go's readers, but for those of processes that the browser
killed.
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import time

import traces
from lib import LIBRARY, matrix

PAGE = "<!doctype html><title>page</title><body><script>let s = 0; for (let i = 0; i < 1e6; i++) s += i; document.body.append(s)</script>"
TIMEOUT_S = 120


def firefox(room):
    """Its picture of the page."""
    (room / "profile").mkdir()
    argv = ["firefox-esr", "--headless", "--no-remote", "--profile", room / "profile", "--screenshot", room / "page.png", f"file://{room}/page.html"]
    return argv, lambda stdout: hashlib.sha256((room / "page.png").read_bytes()).hexdigest()


def chromium(room):
    """The page as its script left it. Without a sandbox, which is not for root."""
    argv = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={room}/profile", "--dump-dom", f"file://{room}/page.html"]
    return argv, lambda stdout: stdout


BROWSERS = {"firefox": firefox, "chromium": chromium}


def load(browser, env):
    """Exit status, what became of the page, seconds, and the traces that Go's reader refuses."""
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        (room / "page.html").write_text(PAGE)
        (room / "traces").mkdir()
        argv, page = BROWSERS[browser](room)
        home = {"HOME": str(room), "PATH": "/usr/bin:/bin"}
        own = {name: value.replace(matrix.DIRECTORY, str(room)) for name, value in env.items()}
        begin = time.monotonic()
        try:
            result = subprocess.run(argv, env=home | {"GOTRACE_OUTPUT": f"{room}/traces/t.out"} | own, capture_output=True, timeout=TIMEOUT_S, cwd=room)
        except subprocess.TimeoutExpired:
            return "hangs", None, TIMEOUT_S, []
        took = time.monotonic() - begin
        _, refused, _ = traces.refused(room / "traces")
        return result.returncode, page(result.stdout), took, refused


def main(browsers):
    differ = runs = 0
    for browser in browsers:
        status, page, bare, _ = load(browser, {})
        assert status == 0 and page, f"{browser} does not load the page: {status}"
        for setting in ["GOTRACE_QUIET=", *matrix.settings()]:
            name, value = setting.split("=", 1)
            got, became, took, refused = load(browser, {"LD_PRELOAD": str(LIBRARY), name: value})
            runs += 1
            if (got, became) != (status, page) or refused:
                differ += 1
                print(f"{browser} {setting}: status {got}, page {'as bare' if became == page else 'differs'}, refused {refused}", flush=True)
            else:
                print(f"{browser} {setting}: as bare; {took:.1f} s, bare {bare:.1f} s", flush=True)
    print(f"{runs} runs, {differ} differ")
    return differ != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or BROWSERS))
