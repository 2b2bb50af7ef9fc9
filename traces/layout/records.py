"""Layouts that hold any order: records of (source, target, weight), and runs of one target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.layout.kind import LAYOUTS, Element, LayoutKind, Loads, Space, Stored, run_starts


def run_headers(stored: Stored, space: Space) -> Loads:
    """Store (target, count) of each run of one target and return their loads; a number has an id's bytes or more."""
    start = run_starts(stored.steps.target)
    lengths = np.diff(start)
    width = max(stored.id_bytes, 2 if int(lengths.max()) < 2**16 else 4)
    headers = np.stack((stored.ids["target"][start[:-1]], lengths), axis=1).astype(f"<u{width}")
    offset = space.add("run_headers", headers.reshape(-1).view(np.uint8))
    return Loads.of(start[:-1], offset + 2 * width * np.arange(len(lengths)), 2 * width, "row_pointers")


class Runs(LayoutKind):
    """Runs of one target: a header (target, connections in the run), and (source, weight) records in their own array.

    Cheaper than tuples where runs are longer than 2 connections, larger than rows by the ids of the runs.
    """

    ids = ("source", "target")
    ids_per_layer = False

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        """Little-endian records: source id, weight bits."""
        width, value_bytes = stored.id_bytes, max(stored.value_bits // 8, 1)
        ids = stored.ids["source"].astype(f"<u{width}").view(np.uint8).reshape(-1, width)
        bits = stored.bits.astype(f"<u{value_bytes}").view(np.uint8).reshape(-1, value_bytes)
        records = np.concatenate((ids, bits), axis=1)
        loads = run_headers(stored, space)
        return [Element(space.add("run_records", records.reshape(-1)), 8 * records.shape[1], "tuples")], loads


def encode_steps(ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return (uint8 bytes of all ids one after another, int64[n] bytes of each)."""
    step = np.diff(ids, prepend=0)
    code = np.where(step < 0, -2 * step - 1, 2 * step)
    lengths = np.ones(len(code), np.int64)
    for more in range(1, 9):
        lengths += code >= 1 << (7 * more)
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(len(code)), lengths)
    within = np.arange(int(ends[-1])) - (ends - lengths)[owner]
    groups = code[owner] >> (7 * within) & 0x7F
    return (groups | (within < lengths[owner] - 1) << 7).astype(np.uint8), lengths


class RunsDelta(LayoutKind):
    """Runs with delta-coded source ids: a header, weights, and the steps from source to source.

    A step is the difference to the source before it in the order of work (the first one to 0), zigzag coded (0, -1, 1,
    -2 ... as 0, 1, 2, 3 ...) in groups of 7 bits, lowest first, the top bit of a byte saying that another one follows.
    """

    ids = ("source", "target")
    ids_per_layer = False

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        headers = run_headers(stored, space)
        data, lengths = encode_steps(stored.ids["source"])
        offset = space.add("source_steps", data)
        steps = Loads.of(np.arange(len(lengths)), offset + np.cumsum(lengths) - lengths, lengths, "ids")
        return [stored.values_array(space)], Loads.merge(headers, steps)


class Tuples(LayoutKind):
    ids = ("source", "target")
    ids_per_layer = False

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        """Little-endian, packed: source id, target id, weight bits."""
        value_bytes = max(stored.value_bits // 8, 1)
        fields = [*((end, stored.ids[end], stored.id_bytes) for end in self.ids), ("weight", stored.bits, value_bytes)]
        records = np.empty(len(stored.bits), [(name, f"<u{size}") for name, _, size in fields])
        for name, values, _ in fields:
            records[name] = values
        return [Element(space.add("tuples", records.view(np.uint8)), 8 * records.itemsize, "tuples")], Loads.none()


LAYOUTS.register("runs", summary="per run of one target a header, then (source, weight) records")(Runs())
LAYOUTS.register("runs-delta", summary="runs with delta-coded source ids")(RunsDelta())
LAYOUTS.register("tuples", summary="(source, target, weight) records")(Tuples())
