"""Decodes the pprof profiles that `go tool trace -pprof=…` writes (profile.proto, only the fields used here)."""

import collections
import dataclasses
import gzip


@dataclasses.dataclass
class Profile:
    samples: list  # of (function names, leaf first; count; nanoseconds)

    @property
    def total_ns(self):
        return sum(ns for _, _, ns in self.samples)

    @property
    def total_count(self):
        return sum(count for _, count, _ in self.samples)

    def leaf_ns(self):
        """Nanoseconds by leaf function."""
        return self._by(lambda stack: stack[:1], 2)

    def leaf_count(self):
        return self._by(lambda stack: stack[:1], 1)

    def cumulative_ns(self):
        """Nanoseconds by every function on the stack."""
        return self._by(set, 2)

    def _by(self, functions, column):
        sums = collections.Counter()
        for sample in self.samples:
            for function in functions(sample[0]):
                sums[function] += sample[column]
        return sums


def decode(data):
    strings, functions, locations, samples = [], {}, {}, []
    for field, value in _fields(gzip.decompress(data)):
        if field == 2:  # Sample: location_id 1, value 2
            ids, values = [], []
            for key, item in _fields(value):
                (ids if key == 1 else values).extend(_packed(item)) if key in (1, 2) else None
            samples.append((ids, values))
        elif field == 4:  # Location: id 1, line 4 (Line: function_id 1), innermost line first
            location = collections.defaultdict(list)
            for key, item in _fields(value):
                location[key].append(item)
            locations[location[1][0]] = [dict(_fields(line)).get(1, 0) for line in location[4]]
        elif field == 5:  # Function: id 1, name 2
            function = dict(_fields(value))
            functions[function[1]] = function.get(2, 0)
        elif field == 6:
            strings.append(value.decode(errors="replace"))

    def names(ids):
        return [strings[functions[line]] for location in ids for line in locations[location]]

    return Profile([(names(ids), *values) for ids, values in samples])


def varint(data, at):
    """The LEB128 number there, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data):
    """Yields (field number, int or bytes) of one protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        elif key & 7 != 0:
            raise ValueError(f"wire type {key & 7} is not used in profiles")
        yield key >> 3, value


def _packed(item):
    """The integers of a repeated field, packed or not."""
    if isinstance(item, int):
        yield item
        return
    at = 0
    while at < len(item):
        value, at = varint(item, at)
        yield value
