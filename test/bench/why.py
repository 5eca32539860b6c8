"""Programs that are slow for a known reason, and what `gotrace why` says of each: python3 test/bench/why.py [--smoke]
[--record] [--runs=3] [NAME...]

Each program runs bare, and bare with its cause made smaller ("half": what takes the time takes half as long) or removed
("fixed"): the gain between these is measured. Then it is recorded once. "named": the first change that
the page offers is of the cause, and the page offers this change, too. "promised": the gain that the page predicts for it.
"beside": findings other than those that the program has; each is a line that may mislead. --record writes why.md.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TEST)]

from lib import BUILT, SOURCES, proc  # noqa: E402

WITHIN = 0.10  # a prediction is right if it is off by no more
RECORD = TEST / "bench/why.md"
GOTRACE = BUILT / "gotrace"


@dataclasses.dataclass
class Case:
    """A program, its cause, and a change that makes the cause smaller."""

    language: str
    name: str
    mode: str  # the program's argument for that change
    change: str  # as gotrace-json(5) names it; "": any
    cause: str  # a regular expression that the change's name has
    has: tuple = ()  # findings that are true of it
    also: str = "$^"  # names of other changes that are of the cause
    smoke: bool = False
    program: str = ""
    calls: bool = False  # all system calls are recorded

    def argv(self, rooms, *mode):
        programs = {"OpenMP": [rooms / "parts"], "C++": [rooms / "tasks"], "Rust": [rooms / "channels"], "Python": ["/usr/bin/python3", SOURCES / "whys/pools.py"]}
        return [*programs.get(self.language, [BUILT / "test" / self.program]), self.name, *mode]


def of_whys(name, change, cause, *has, **more):
    return Case("C", name, "fixed", change, cause, has, program="prog/whys", **more)


def of_causes(name, mode, change, cause, *has, **more):
    return Case("C", name, mode, change, cause, has, program="prog/causes", **more)


LOCK = ("lock_held_across_io", "convoy", "lock_held_across_wait")
CASES = [
    of_whys("journal", "", "journal_lock", *LOCK, smoke=True),
    of_whys("nested", "", "inner_lock", *LOCK),
    of_whys("rotation", "", "rotate_log", "imbalance", *LOCK),
    of_whys("readers", "", "map_lock", *LOCK),
    of_whys("idle", "", "load_item", "false_idle"),
    of_whys("pool", "", "pool_worker"),
    of_whys("stages", "", "transform", smoke=True),
    of_whys("turns", "", "compress", "serialised_pool", "imbalance"),
    of_whys("dialogue", "", "answer"),
    of_whys("limited", "", "query"),
    of_whys("straggler", "", "large_part", "imbalance"),
    of_whys("rounds", "", "slow_share", "imbalance", also="rounds_thread"),
    of_whys("one_by_one", "", "task", "one_at_a_time"),
    of_whys("setup", "", "set_up"),
    of_whys("settling", "", "settle"),
    of_whys("chain", "", "slow_source"),
    of_whys("serial", "half", "running in (prepare|serial) "),
    of_whys("gather", "", "look_up"),
    of_whys("batches", "", "linger", "polling"),
    of_whys("ahead", "", "read_block"),
    of_whys("full", "more", "busy_worker"),
    of_whys("slots", "slot", "connections", also="patient_client", smoke=True),
    of_whys("counter", "slot", "ticket_given_back", also="visitor"),
    of_whys("binary", "free_lock", "store_locks", *LOCK),
    of_whys("ticks", "half", "load_page"),
    of_whys("beside", "half", "scan_left", "one_at_a_time"),
    of_whys("attended", "half", "parse_file"),
    of_whys("eventfds", "half", "compute_answer"),
    of_whys("sockets", "half", "look_up_key"),
    of_whys("pipes", "half", "decode"),
    of_whys("flocks", "half", "append_record", *LOCK, also="ever waited for flock "),
    of_causes("herd", "half", "half", "< look_for_item ", "thundering_herd", *LOCK, also="table_lock"),
    of_causes("joins", "half", "half", "< fetch "),
    of_causes("backoff", "fixed", "no_poll", "< ask_for_record ", "polling", also="< make_record "),
    of_causes("polled", "half", "half", "< make_record ", "polling"),
    of_causes("processes", "half", "half", "< change_table ", *LOCK, smoke=True),
    of_causes("answers", "half", "half", "< find_answer "),
    of_causes("parts", "fixed", "even", "the 8 threads part_thread", "imbalance", also="< do_part ", smoke=True),
    of_causes("desks", "fixed", "across", "price_lock", *LOCK, also="ask_clerk"),
    Case("C", "one", "half", "half", "<- compile_file", LOCK, also="waited for token", program="single/why/jobserver", calls=True),
    Case("C", "two", "more", "slot", "tokens, taken in take_token", also="<- compile_file", program="single/why/jobserver", calls=True),
    Case("OpenMP", "parts", "half", "half", "<- weigh ", ("imbalance",)),
    Case("C++", "logged", "fixed", "free_lock", "log_mutex", LOCK, also="write_line", smoke=True),
    Case("C++", "one_by_one", "half", "half", "< load_tile", ("one_at_a_time",)),
    Case("C++", "reloaded", "half", "half", "< reload_table", LOCK),
    Case("C++", "one_worker", "half", "half", "< resize_picture"),
    Case("Rust", "pipeline", "half", "half", "< .*encode_frame"),
    Case("Rust", "shared_count", "half", "half", "< .*count_words", LOCK, also="waited for .*shared_count", smoke=True),
    Case("Rust", "rebuilt", "half", "half", "< .*rebuild_index", LOCK),
    Case("Rust", "last_shard", "half", "half", "< .*load_shard", ("imbalance",)),
    Case("Python", "cached", "half", "half", "fetch_entry", LOCK, also="nobody ever waited for .*python3", smoke=True),
    Case("Python", "pipelined", "half", "half", "parse_page"),
    Case("Python", "few_slots", "half", "half", "ask_database"),
    Case("Python", "visited", "half", "half", "render_page"),
    Case("Python", "gathered", "half", "half", "load_part", ("imbalance",)),
]
BUSY = {"no_cpu", "preempted", "slow_wakeups", "oversubscription", "holder_without_cpu"}  # others have the CPUs: of no program


@dataclasses.dataclass
class Said:
    """What came out for a case."""

    case: Case
    named: bool
    promised: float  # a part of 1; None: that change is not offered
    measured: float
    beside: list

    @property
    def right(self):
        return self.promised is not None and abs(self.promised - self.measured) <= WITHIN


def build(room):
    """The programs of other languages than C, which make builds; the languages that this machine has."""
    languages = ["C", "Python"]
    for language, compiler, flags, source, output in [
        ("OpenMP", "gcc", ["-fopenmp", "-O1", "-g"], "why/parts.c", "parts"),
        ("C++", "g++", ["-std=c++17", "-O1", "-g", "-pthread"], "whys/tasks.cc", "tasks"),
        ("Rust", "rustc", ["-Copt-level=1", "-g"], "whys/channels.rs", "channels"),
    ]:
        if shutil.which(compiler):
            subprocess.run([compiler, *flags, SOURCES / source, "-o", room / output], check=True)
            languages.append(language)
    return languages


def took(argv):
    return int(subprocess.run([str(arg) for arg in argv], check=True, capture_output=True, text=True).stdout.split()[-1])


def gain(case, room, runs):
    """Measured in turn, and the medians compared."""
    pairs = [(took(case.argv(room)), took(case.argv(room, case.mode))) for _ in range(runs)]
    return 1 - statistics.median(after for _, after in pairs) / statistics.median(before for before, _ in pairs)


def ask(case, room):
    """Records it with all of its processes, and returns the page as an object."""
    trace = room / f"{case.name}.out"
    command = [GOTRACE, "-f", *(["-s", "all"] if case.calls else []), "-o", trace, "--", *case.argv(room)]
    subprocess.run([str(arg) for arg in command], check=True, capture_output=True, env=os.environ | {"GOTRACE_QUIET": "1"})
    return json.loads(proc.run([GOTRACE, "why", "--json", trace], timeout=60).ok().stdout)


def judge(case, report, measured):
    offered = [c for c in report["what_if"] if c["change"] != "cpus"]
    its = next((c for c in offered if re.search(case.cause, c["name"]) and case.change in ("", c["change"])), None)
    beside = sorted({f["finding"] for f in report["findings"]} - {*case.has, *BUSY})
    named = bool(its) and bool(re.search(f"{case.cause}|{case.also}", offered[0]["name"]))
    return Said(case, named, its["gain"] if its else None, measured, beside)


def line(said):
    promised = "–" if said.promised is None else f"{said.promised:.0%}"
    words = [said.case.language, f"{said.case.name}, {said.case.mode}", "yes" if said.named else "**no**", promised]
    return "| " + " | ".join([*words, f"{said.measured:.0%}", "yes" if said.right else "**no**", ", ".join(said.beside)]) + " |"


def table(all_said, runs):
    named, right = sum(s.named for s in all_said), sum(s.right for s in all_said)
    clean = sum(not s.beside for s in all_said)
    yield from ["# What `gotrace why` says of programs with a known reason", "", "Written by `python3 test/bench/why.py --record`.", ""]
    yield f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, medians of {runs} runs. Of {len(all_said)} programs the cause is named in {named},"
    yield f"the gain is predicted within {WITHIN:.0%} of the run in {right}, and {clean} have no finding beside their own."
    yield from ["", "| language | program, change | named | promised | measured | right | beside |", "|---|---|---|---|---|---|---|"]
    yield from map(line, all_said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--smoke", action="store_true", help="eight of the programs, once each")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    unknown = set(args.names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"not known: {', '.join(sorted(unknown))}; there are {', '.join(case.name for case in CASES)}")
    runs = 1 if args.smoke else args.runs
    with tempfile.TemporaryDirectory(prefix="why-") as name:
        room = pathlib.Path(name)
        languages = build(room)
        all_said = []
        for case in CASES:
            if case.language not in languages or (args.smoke and not case.smoke) or (args.names and case.name not in args.names):
                continue
            all_said.append(judge(case, ask(case, room), gain(case, room, runs)))
            print(line(all_said[-1]), flush=True)
    text = "\n".join(table(all_said, runs)) + "\n"
    print(text)
    if args.record:
        RECORD.write_text(text)


main()
