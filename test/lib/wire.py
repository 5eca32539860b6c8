"""Trace files as lists that tests can change: what stands in them, and the bytes of that. Knows the shape of the formats,
as Go's sources tell it, and no rules."""

import copy
import dataclasses
import re

from . import ROOT

HEADER = 16


def _events(table):
    """Number → (name, how many arguments follow the time; -1: no event of a thread), by the tables of encoder/."""
    text = (ROOT / f"encoder/format/format_{table}.def").read_text()
    rows = re.findall(r'^GT_EVENT\((\d+), \w+, "(\w+)", (-?\d+)', text, re.M)
    return {int(number): (name, int(args)) for number, name, args in rows}


V2, V1 = _events("v2"), _events("v1")
V2_TYPE = {name: number for number, (name, _) in V2.items()}
V1_TYPE = {name: number for number, (name, _) in V1.items()}


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


class Bytes:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def __bool__(self):
        return self.at < len(self.data)

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        n = shift = 0
        while True:
            byte = self.byte()
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n

    def part(self, n):
        self.at += n
        return self.data[self.at - n : self.at]


@dataclasses.dataclass
class Item:
    """An event of a thread, its time first among args; or an entry of a table."""

    type: int
    args: list
    data: bytes = b""  # of a string

    @property
    def name(self):
        return V2[self.type][0]

    def encode(self):
        out = bytes([self.type]) + b"".join(map(varint, self.args))
        return out + varint(len(self.data)) + self.data if self.name == "String" else out


@dataclasses.dataclass
class Batch:
    """Of v2. kind: what it begins with, if that is no event of a thread; a batch of events has none."""

    gen: int
    thread: int
    ts: int
    kind: str
    items: list

    def encode(self):
        if self.kind == "EndOfGeneration":
            return bytes([V2_TYPE[self.kind]])
        head = bytes([V2_TYPE[self.kind]]) if self.kind in ("Strings", "Stacks", "CPUSamples", "Sync") else b""
        payload = head + b"".join(item.encode() for item in self.items)
        return bytes([1]) + b"".join(map(varint, (self.gen, self.thread, self.ts, len(payload)))) + payload


def _item(data):
    type_ = data.byte()
    name, args = V2[type_]
    if name == "String":
        return Item(type_, [data.varint()], data.part(data.varint()))
    if name == "Stack":
        head = [data.varint(), data.varint()]
        return Item(type_, head + [data.varint() for _ in range(4 * head[1])])
    of_tables = {"CPUSample": 5, "Frequency": 1, "ClockSnapshot": 4}
    return Item(type_, [data.varint() for _ in range(of_tables.get(name, args + 1))])


def read_v2(data):
    """The header, and the Batches."""
    rest, batches = Bytes(data, HEADER), []
    while rest:
        if (type_ := rest.byte()) != 1:
            assert V2[type_][0] == "EndOfGeneration", V2[type_]
            batches.append(Batch(0, 0, 0, "EndOfGeneration", []))
            continue
        gen, thread, ts = (rest.varint() for _ in range(3))
        payload = Bytes(rest.part(rest.varint()))
        name = V2[payload.data[0]][0]
        if name in ("Strings", "Stacks", "CPUSamples", "Sync"):
            payload.byte()
        items = []
        while payload:
            items.append(_item(payload))
        kind = name if name in ("Strings", "Stacks", "CPUSamples", "Sync", "Frequency") else ""
        batches.append(Batch(gen, thread, ts, kind, items))
    return data[:HEADER], batches


def write_v2(header, batches):
    return header + b"".join(batch.encode() for batch in batches)


@dataclasses.dataclass
class Record:
    """Of v1. count: the two bits that say how many arguments there are."""

    type: int
    args: list
    data: bytes = b""  # of a string, or of a log
    count: int = 0

    @property
    def name(self):
        return V1[self.type][0]

    def encode(self):
        first = bytes([self.count << 6 | self.type])
        args = b"".join(map(varint, self.args))
        text = varint(len(self.data)) + self.data if self.name in ("String", "UserLog") else b""
        if self.count == 3 and self.name != "String":
            args = varint(len(args)) + args
        return first + args + text


def read_v1(data):
    """The header, and the Records."""
    rest, records = Bytes(data, HEADER), []
    extra = 1 if data.startswith(b"go 1.5 ") else 0
    while rest:
        first = rest.byte()
        record = Record(first & 0x3F, [], count=first >> 6)
        if record.name == "String":
            record.args = [rest.varint()]
            record.data = rest.part(rest.varint())
        elif record.count == 3:
            part = Bytes(rest.part(rest.varint()))
            while part:
                record.args.append(part.varint())
        else:
            record.args = [rest.varint() for _ in range(record.count + 1 + extra)]
        if record.name == "UserLog":
            record.data = rest.part(rest.varint())
        records.append(record)
    return data[:HEADER], records


def write_v1(header, records):
    return header + b"".join(record.encode() for record in records)


def is_v1(data):
    return int(re.match(rb"go 1\.(\d+) trace", data)[1]) < 22


def _changed(chance, args):
    """One argument is another number: near, or of something else, or none."""
    i = chance.randrange(len(args))
    args[i] = max(0, chance.choice([args[i] + 1, args[i] - 1, 0, chance.randrange(200), 2**64 - 1, args[i] + 1000]))


def _break_list(chance, items, argsof):
    """Something happens to one of them."""
    i = chance.randrange(len(items))
    match chance.randrange(5):
        case 0:
            del items[i]
        case 1:
            items.insert(i, copy.deepcopy(items[i]))
        case 2:
            j = chance.randrange(len(items))
            items[i], items[j] = items[j], items[i]
        case _:
            if argsof(items[i]):
                _changed(chance, argsof(items[i]))


def broken(data, chance):
    """The same file with something wrong in it, perhaps."""
    if chance.randrange(20) == 0:
        return data[: chance.randrange(HEADER, len(data))]
    if is_v1(data):
        header, records = read_v1(data)
        if chance.randrange(8) == 0:
            same = [r for r in records if r.args and r.name not in ("Batch", "String", "Stack")]
            one, other = chance.choice(same), chance.choice(same)
            if len(one.args) == len(other.args):
                one.type = other.type
        _break_list(chance, records, lambda r: r.args)
        return write_v1(header, records)
    header, batches = read_v2(data)
    with_items = [b for b in batches if b.items]
    batch = chance.choice(with_items)
    match chance.randrange(10):
        case 0:
            _break_list(chance, batches, lambda b: None)
        case 1:
            setattr(batch, *chance.choice([("gen", batch.gen + 1), ("thread", batch.thread + 1), ("ts", batch.ts + 10**9)]))
        case 2:
            item = chance.choice(batch.items)
            if not batch.kind:
                item.type = chance.choice([t for t, (_, n) in V2.items() if n == V2[item.type][1]])
        case _:
            _break_list(chance, batch.items, lambda item: item.args)
    return write_v2(header, batches)
