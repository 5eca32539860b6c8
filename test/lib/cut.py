"""Where the last whole generation of a trace ends: what a reader must be able to read of a file that was cut off."""

from .pprof import varint

HEADER = 16
BATCH, FREQUENCY, SYNC, END = 1, 8, 50, 52


def whole_generations(data):
    """The number of whole generations in a file of Go 1.22 or later, and where the last one ends.

    Each generation ends with its clock, and from Go 1.26 on with a marker. Fails on anything between the batches, and
    on a batch of a generation that ended before. A batch may be cut off at the end of the file only.
    """
    marked = data[:HEADER].startswith(b"go 1.26 ")
    pos, end, number, closed = HEADER, HEADER, 0, 0
    try:
        while pos < len(data):
            if data[pos] == END and marked:
                pos += 1
                number, end = number + 1, pos
                continue
            assert data[pos] == BATCH, f"{data[pos]} at {pos} begins no batch"
            gen, p = varint(data, pos + 1)
            for _ in ("M", "time"):
                _, p = varint(data, p)
            size, p = varint(data, p)
            assert gen > closed, f"a batch of generation {gen} at {pos}, after its end"
            assert size > 0, f"an empty batch at {pos}"
            kind, pos = data[p], p + size
            if kind in (FREQUENCY, SYNC) and pos <= len(data):
                closed = gen
                if not marked:
                    number, end = number + 1, pos
    except IndexError:
        pass  # cut off inside a batch's header
    return number, end
