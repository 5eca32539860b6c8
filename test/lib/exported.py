"""Runs `gotrace export` and reads what it writes: by the tool that it is for, or by that format's own rules."""

import collections
import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as etree

import pytest

from . import ROOT, gotools, proc

GOTRACE = ROOT / "scripts/gotrace"
EXTENSIONS = {
    "perfetto": ".pftrace", "firefox": ".profile.json", "chrome": ".json", "pprof": ".pb.gz", "folded": ".folded", "flame": ".svg",
}  # fmt: skip


def export(trace, to, *options):
    """Where what was written is."""
    proc.run([GOTRACE, "export", f"--to={to}", *options, trace], cwd=trace.parent).ok()
    return trace.with_suffix(EXTENSIONS[to])


def keep_picture(picture, name):
    """Leaves the picture in build/, whence documents take it; with a palette, a third of its bytes, where pngquant is there."""
    target = shutil.copy(picture, ROOT / "build" / name)
    if shutil.which("pngquant"):
        proc.run(["pngquant", "--strip", "--force", "--speed=1", "--nofs", "--output", target, 256, picture]).ok()


def go_pprof(profile, *options):
    """What `go tool pprof -top` prints: flat ns by function."""
    argv = [gotools.compiler(), "tool", "pprof", "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0", *options, profile]
    text = proc.run(argv, env={"GOTOOLCHAIN": "local"}, timeout=50).ok().stdout
    rows = re.findall(r"^ *(\d+)(?:ns)? +[\d.]+% +[\d.]+% +\d+(?:ns)? +[\d.]+%  (.+)$", text, re.M)
    return collections.Counter({name: int(ns) for ns, name in rows})


def folded(trace, *options):
    """Stacks, outermost first, and their values; each line as flamegraph.pl wants it."""
    lines = proc.run([GOTRACE, "export", "--to=folded", "-o", "-", *options, trace]).ok().stdout.splitlines()
    matches = [re.fullmatch(r"((?:[^;]+;)*[^;]+) (\d+)", line) for line in lines]
    assert matches and all(matches), lines
    return [(match[1].split(";"), int(match[2])) for match in matches]


def leaves(stacks):
    sums = collections.Counter()
    for frames, value in stacks:
        sums[next((frame for frame in reversed(frames) if not frame.startswith("[")), "(no stack)")] += value
    return sums


def decode(path):
    """A file for Perfetto, by Perfetto's own description of the format; each packet with what its numbers stand for."""
    where = ROOT / "build/perfetto"
    if not where.exists() and not os.environ.get("ALL_NEEDS"):
        pytest.skip("perfetto's Python package is not here; ./scripts/deps all installs it")
    sys.path.insert(0, str(where))
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    def check(message):
        assert not len(UnknownFieldSet(message)), message
        for field, value in message.ListFields():
            if field.message_type:
                for part in value if field.is_repeated else [value]:
                    check(part)

    trace = perfetto_trace_pb2.Trace.FromString(path.read_bytes())
    sys.path.remove(str(where))
    for packet in trace.packet:
        check(packet)
    return trace.packet, perfetto_trace_pb2


class Perfetto:
    """Tracks by uuid, and of each: its slices, instants and values; all numbers resolved where they are first used."""

    TABLES = [
        "event_categories", "event_names", "debug_annotation_names", "debug_annotation_string_values", "function_names", "frames", "callstacks",
        "mappings", "mapping_paths", "source_paths", "build_ids",
    ]  # fmt: skip

    def __init__(self, path):
        self.tracks, self.slices, self.flows, self.ends, self.instants, self.values, self.samples = {}, [], {}, {}, [], [], []
        packets, pb = decode(path)
        known = {table: {} for table in self.TABLES}
        begun, later = collections.defaultdict(list), []
        for i, packet in enumerate(packets):
            flags = pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE if i else pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            assert packet.trusted_packet_sequence_id == 1 and packet.sequence_flags == flags and packet.HasField("timestamp")
            for table in self.TABLES:
                for row in getattr(packet.interned_data, table):
                    assert row.iid not in known[table]
                    known[table][row.iid] = row
            self.check(known, packet.interned_data)
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            elif packet.HasField("perf_sample"):
                self.samples.append((packet.perf_sample.tid, self.stack(known, packet.perf_sample.callstack_iid)))
            elif packet.HasField("track_event"):
                later.append((packet.timestamp, self.event(known, packet.track_event)))
        for ns, event in sorted(later, key=lambda row: row[0]):  # as trace_processor does, which is stable, too
            if event["type"] == pb.TrackEvent.TYPE_SLICE_BEGIN:
                begun[event["track"]].append(event | {"ns": ns})
                self.slices.append(begun[event["track"]][-1])
            elif event["type"] == pb.TrackEvent.TYPE_SLICE_END:
                slice_ = begun[event["track"]].pop()
                slice_["duration"] = ns - slice_["ns"]
            elif event["type"] == pb.TrackEvent.TYPE_INSTANT:
                self.instants.append(event | {"ns": ns})
            else:
                self.values.append((event["track"], ns, event["value"]))
        assert not any(begun.values()), "slices without an end"

    @staticmethod
    def check(known, data):
        """What new frames and files refer to was there before, or comes with them."""
        for frame in data.frames:
            assert frame.function_name_id in known["function_names"] and frame.mapping_id in known["mappings"]
            assert not frame.source_path_iid or frame.source_path_iid in known["source_paths"]
        for mapping in data.mappings:
            assert not mapping.build_id or mapping.build_id in known["build_ids"]
            assert mapping.path_string_ids and set(mapping.path_string_ids) <= set(known["mapping_paths"])
        for stack in data.callstacks:
            assert stack.frame_ids and set(stack.frame_ids) <= set(known["frames"])

    @staticmethod
    def stack(known, iid):
        frames = [known["frames"][i] for i in known["callstacks"][iid].frame_ids] if iid else []
        return [known["function_names"][frame.function_name_id].str.decode() for frame in frames]

    def event(self, known, e):
        text = lambda a: known["debug_annotation_string_values"][a.string_value_iid].str.decode() if a.string_value_iid else a.uint_value
        return {
            "type": e.type,
            "track": e.track_uuid,
            "value": e.counter_value,
            "category": [known["event_categories"][i].name for i in e.category_iids],
            "name": known["event_names"][e.name_iid].name if e.name_iid else None,
            "stack": self.stack(known, e.callstack_iid),
            "flows": list(e.flow_ids),
            "flows_end": list(e.terminating_flow_ids),
            "args": {known["debug_annotation_names"][a.name_iid].name: text(a) for a in e.debug_annotations},
        }

    def of(self, category):
        return [s for s in self.slices if s["category"] == [category]]

    def name(self, track):
        its = self.tracks[track]
        return its.thread.thread_name or its.process.process_name or its.name


def firefox(path):
    """The profile. Every column was compared with its table's length, and every index with what it is of. No sample has more
    CPU time than time, but for rounding."""
    profile = json.loads(path.read_text())
    shared, meta = profile["shared"], profile["meta"]
    tables = [shared[name] for name in shared if name != "stringArray"]
    tables += [thread[name] for thread in profile["threads"] for name in ("samples", "markers")]
    for table in tables:
        assert {len(column) for column in table.values() if isinstance(column, list)} == {table["length"]}
    stacks, frames, functions = (shared[name] for name in ("stackTable", "frameTable", "funcTable"))
    assert all(prefix is None or prefix < i for i, prefix in enumerate(stacks["prefix"]))
    lengths = [
        (stacks["frame"], frames["length"]), (frames["func"], functions["length"]), (frames["category"], len(meta["categories"])),
        (functions["name"], len(shared["stringArray"])), (functions["source"], shared["sources"]["length"]),
        (functions["resource"], shared["resourceTable"]["length"]),
    ]  # fmt: skip
    for thread in profile["threads"]:
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
        times, cpu = (thread["samples"][name] for name in ("time", "threadCPUDelta"))
        assert all(0 <= ns <= (after - before) * 1e6 + 2 for before, after, ns in zip(times, times[1:], cpu[1:]))
        lengths += [(thread["samples"]["stack"], stacks["length"]), (thread["markers"]["name"], len(shared["stringArray"]))]
    for column, length in lengths:
        assert all(i is None or i < length for i in column)
    assert {data["type"] for thread in profile["threads"] for data in thread["markers"]["data"]} <= {schema["name"] for schema in meta["markerSchema"]}
    return profile


def firefox_weighed(profile, thread):
    """ms of each category: what the call tree adds up."""
    sums, samples = collections.Counter(), thread["samples"]
    for stack, weight in zip(samples["stack"], samples["weight"]):
        sums[_category(profile, stack)] += weight
    return sums


def firefox_painted(profile, thread):
    """Like firefox_weighed, for a timeline without CPU time: half way between two samples the timeline goes over to the second sample, and it leaves out samples at the end."""
    sums, samples, end = collections.Counter(), thread["samples"], profile["meta"]["profilingEndTime"]
    shown = [(time, stack) for time, stack in zip(samples["time"], samples["stack"]) if time < end]
    bounds = [shown[0][0], *((a + b) / 2 for (a, _), (b, _) in zip(shown, shown[1:])), shown[-1][0]] if shown else []
    for (_, stack), begin, end in zip(shown, bounds, bounds[1:]):
        sums[_category(profile, stack)] += end - begin
    return sums


def _category(profile, stack):
    shared = profile["shared"]
    return profile["meta"]["categories"][shared["frameTable"]["category"][shared["stackTable"]["frame"][stack]]]["name"]


def firefox_stack(profile, i):
    shared = profile["shared"]
    while i is not None:
        yield shared["stringArray"][shared["funcTable"]["name"][shared["frameTable"]["func"][shared["stackTable"]["frame"][i]]]]
        i = shared["stackTable"]["prefix"][i]


def boxes_of(svg):
    """Name, what it says, and place of each box; those above one lie within it."""
    name = "{http://www.w3.org/2000/svg}"
    boxes = []
    for group in etree.parse(svg).getroot().iter(f"{name}g"):
        title, rect = group.find(f"{name}title").text.split("\n"), group.find(f"{name}rect")
        x, y, width = (float(rect.get(what)) for what in ("x", "y", "width"))
        boxes.append({"name": title[0], "says": title[1:], "x": x, "y": y, "width": width, "fill": rect.get("fill")})
    rows = collections.defaultdict(list)
    for box in boxes:
        rows[box["y"]].append(box)
    for box in boxes:
        below = [b for b in rows.get(box["y"] + 18, []) if b["x"] <= box["x"] + 0.02 and box["x"] + box["width"] <= b["x"] + b["width"] + 0.05]
        assert len(below) == (box["name"] != "all") or box["width"] < 1, box
    return boxes


def assert_is_valid(path, to):
    if to == "pprof":
        go_pprof(path)
    elif to == "folded":
        assert all(re.fullmatch(r".+ \d+", line) for line in path.read_text().splitlines())
    elif to == "flame":
        boxes_of(path)
    elif to == "firefox":
        firefox(path)
    elif to == "chrome":
        json.loads(path.read_text())
    elif (ROOT / "build/perfetto").exists():
        Perfetto(path)
