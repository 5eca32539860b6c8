"""`gotrace recover` of boxes with damage that is aimed at one field each: nothing in a box is taken on trust."""

import struct

import pytest
import test_recover as recovery

from lib import SANITIZER, proc, wire

pytestmark = recovery.pytestmark

PACKED = (1 << 32) - 1  # the thread of a buffer of whole batches
ERA, MODULES, REWAITS, KEPT = range(4)  # enum gt_box_root


class Box:
    """Places of structures in a box, by the offsets that they have in encoder/."""

    def __init__(self, path):
        self.file = path.open("r+b", buffering=0)
        self.at, self.size, self.buffers, _, self.end, _ = struct.unpack("<6Q", self.read(16, 48))
        self.roots = struct.unpack("<4Q", self.read(80, 32))

    def read(self, place, size):
        self.file.seek(place)
        return self.file.read(size)

    def number(self, place, size=8):
        return int.from_bytes(self.read(place, size), "little")

    def put(self, place, data):
        was = self.read(place, len(data))
        self.file.seek(place)
        self.file.write(data)
        return place, was

    def places(self, address, link=0):
        """Of the elements of a list that are in the box, each with the address of the next one at `link`."""
        while self.at < address < self.at + self.size:
            yield address - self.at
            address = self.number(address - self.at + link)

    def kept(self, of):
        """Places of the flight recorder's buffers: `of` 88 packed ones, 96 plain ones (struct gt_kept)."""
        for generation in self.places(self.roots[KEPT]):
            yield from self.places(self.number(generation + of), 8)

    def plain(self):
        """Of all buffers of events or texts of one thread: the place of their data, and the data."""
        for place in [*self.kept(96), *range(self.buffers, self.end, 64 << 10)]:
            generation, thread = struct.unpack("<2I", self.read(place + 16, 8))
            used, end = self.number(place + 32, 4), self.number(place + 40)
            if generation and thread != PACKED:
                yield place + 704, self.read(place + 704, end - self.at - place - 704 if end else used)

    def stacks(self):
        era = self.roots[ERA] - self.at
        for (address,) in struct.iter_unpack("<Q", self.read(era + 33096, 16384 * 8)):
            yield from self.places(address)


def label_of_no_goroutine(box):
    """In place of the start or status that comes before a label there is an event of as many arguments."""
    harmless = {2: wire.V2_TYPE["UserTaskEnd"], 3: wire.V2_TYPE["UserRegionEnd"], 4: wire.V2_TYPE["UserLog"]}
    for place, data in box.plain():
        events, before = wire.Bytes(data), None
        while events and data[events.at] in wire.V2:
            start = events.at
            name, args = wire.V2[events.byte()]
            if name == "Strings":
                break
            if name == "GoLabel" and before and before[0] in ("GoStart", "GoStatus", "GoStatusStack"):
                yield place + before[1], bytes([harmless[before[2]]])
                break
            for _ in range(args + 1):
                events.varint()
            before = name, start, args


def texts_of_no_thread(box):
    """Only the numbers of threads stand in texts that no thread has written."""
    yield from ((place - 704 + 20, bytes(4)) for place, data in box.plain() if data[:1] == b"\x04")


def events_in_place_of_batches(box):
    """The list of packed buffers is the list of plain ones."""
    yield from ((place + 88, box.read(place + 96, 8)) for place in box.places(box.roots[KEPT]))


def circle(root):
    return lambda box: [(box.roots[root] - box.at, struct.pack("<Q", box.roots[root]))]


def many_samples(box):
    """The pages of the buffers, taken for samples."""
    for place in box.places(box.roots[KEPT]):
        yield place + 136, struct.pack("<I", box.number(place + 8) // 48)


def great_stack_ids(box):
    yield from ((place + 16, struct.pack("<I", (1 << 24 + i // 4) + i)) for i, place in enumerate(box.stacks()))


# What is wrong, and where: places and the bytes that are put there.
DAMAGES = {
    "label of no goroutine": label_of_no_goroutine,
    "texts of no thread": texts_of_no_thread,
    "events in place of batches": events_in_place_of_batches,
    "odd place of the buffers": lambda box: [(32, struct.pack("<Q", box.buffers + 1))],
    "odd place of notes": lambda box: [(80 + 8 * REWAITS, struct.pack("<Q", box.roots[REWAITS] + 8))],
    "modules in a circle": circle(MODULES),
    "notes in a circle": circle(REWAITS),
    "great stack ids": great_stack_ids,
    "many samples": many_samples,
}
OF_RING = events_in_place_of_batches, many_samples  # there are none in other boxes


def put_each(left, path, output):
    """Recovers the box with each damage that has a place in it, and takes these out of `left`."""
    box = Box(path)
    for name, damage in [*left.items()]:
        was = [box.put(place, data) for place, data in damage(box)]
        result = proc.run([recovery.SANITIZED, "recover", path, "-o", output], env=SANITIZER, timeout=10)
        assert result.returncode in (0, 1), (name, str(result))
        for place, data in reversed(was):
            box.put(place, data)
        if was:
            del left[name]


@pytest.mark.parametrize("more", [{}, recovery.RING], ids=["file", "ring"])
@pytest.mark.parametrize("format", recovery.FAMILIES)
def test_aimed_damage(tmp_path, format, more):
    """In a box of any moment. At some moments it has no label, for example: then the next box has its turn."""
    left = {name: damage for name, damage in DAMAGES.items() if more or damage not in OF_RING}
    for i in range(10):
        directory = tmp_path / str(i)
        directory.mkdir()
        recovery.kill(directory, "busy", format=format, **more)
        put_each(left, directory / "t.out.live", directory / "all.out")
        if not left:
            return
    raise AssertionError(f"no box has a place for {', '.join(left)}")
