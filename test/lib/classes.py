"""The class of a test, and how many runs decide it. test/README.md says what each class may judge."""

import pytest
from _pytest.runner import call_and_report

CLASSES = {
    "measured": "judges a figure: runs alone, and the best of up to three runs decides",
    "chance": "judges random moments or inputs: if it draws random numbers, it prints its seed, and a variable sets it",
    "foreign": "runs other people's programs or systems: only with --all",
}
RUNS = 3  # of a measured test. A disturbance spoils one run, rarely two in a row; a regression fails every run.


def class_of(item):
    """One of CLASSES, or "structure". A mark of the function counts before a mark of its file."""
    marks = {}
    for node, mark in item.iter_markers_with_node():
        if mark.name in CLASSES:
            marks.setdefault(node, set()).add(mark.name)
    closest = next(iter(marks.values()), {"structure"})
    if len(closest) > 1:
        raise pytest.UsageError(f"{item.nodeid} has more than one class: {', '.join(sorted(closest))}")
    return next(iter(closest))


def reason(report):
    """The first line of what went wrong in a run of a test."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return lines[0][:200] if lines else "no message"


def _run_once(item, nextitem, last):
    """As pytest's own runtestprotocol. If another run follows, it gets new fixtures, also those that tests of a file share."""
    is_function = hasattr(item, "_request")
    if is_function and not item._request:
        item._initrequest()
    item.has_failed = False
    reports = [call_and_report(item, "setup", log=False)]
    if reports[0].passed:
        reports.append(call_and_report(item, "call", log=False))
    reports.append(call_and_report(item, "teardown", log=False, nextitem=None if item.has_failed and not last else nextitem))
    if is_function:
        item._request = False
        item.funcargs = None
    return reports


def run(item, nextitem):
    """The reports of the run that decides. Those of a measured test carry the reasons why earlier runs failed."""
    earlier = []
    for left in reversed(range(RUNS if class_of(item) == "measured" else 1)):
        reports = _run_once(item, nextitem, not left)
        failed = [report for report in reports if report.failed]
        if not failed or not left:
            break
        earlier.append(("earlier", reason(failed[0])))
    reports[-1].user_properties.extend(earlier)
    return reports
