"""Garbage collections, where Guile's own counters say that there were some."""

import shutil

import pytest

from lib import gotools

pytestmark = pytest.mark.skipif(not shutil.which("guile"), reason="guile is not installed")

# Prints how many collections there were, and how many ns they took. With an argument a second thread allocates too.
PROGRAM = """
(use-modules (ice-9 threads))
(define (churn n)
  (let loop ((i 0) (l '()))
    (if (< i n) (loop (+ i 1) (if (= 0 (modulo i 1000)) '() (cons (make-vector 100 i) l))))))
(define helper (and (pair? (cdr (command-line))) (call-with-new-thread (lambda () (churn 200000)))))
(churn 300000)
(if helper (join-thread helper))
(define stats (gc-stats))
(display (assq-ref stats 'gc-times)) (newline)
"""


@pytest.mark.parametrize("arguments", [[], ["thread"]], ids=["one-thread", "two-threads"])
def test_collections_are_shown(traced, tmp_path, arguments):
    script = tmp_path / "churn.scm"
    script.write_text(PROGRAM)
    result = traced(["guile", "--no-auto-compile", "-s", script, *arguments], timeout=50).ok()
    times = int(result.stdout)
    gotools.check_all(result.trace)
    ranges = [e for e in gotools.parse(result.trace) if e.kind.startswith("Range")]
    begun = [e for e in ranges if e.kind == "RangeBegin"]
    collections = [e for e in begun if "mark phase" in e.fields["Name"]]
    pauses = [e for e in begun if e.fields["Name"] == "stop-the-world (GC)"]
    assert times > 50
    # The first and the last ones may lie outside the recording.
    assert times - 2 <= len(collections) <= times
    assert len(pauses) >= len(collections)
    open_ranges = {}
    for e in ranges:
        if e.kind == "RangeBegin":
            open_ranges[e.fields["Name"]] = e.time
        else:
            assert 0 <= e.time - open_ranges.pop(e.fields["Name"]) < 1_000_000_000
    assert not open_ranges
