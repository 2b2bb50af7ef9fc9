"""Layouts that hold any order: records of (source, target, weight), and runs of one target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.layout.kind import LAYOUTS, Element, End, LayoutKind, Loads, Space, Stored, run_starts


def run_headers(stored: Stored, space: Space) -> Loads:
    """Store (target, count) of each run of one target and return their loads; a number has an id's bytes or more."""
    start = run_starts(stored.steps.target)
    lengths = np.diff(start)
    width = max(stored.id_bytes, 2 if int(lengths.max()) < 2**16 else 4)
    headers = np.stack((stored.ids["target"][start[:-1]], lengths), axis=1).astype(f"<u{width}")
    offset = space.add("run_headers", headers.reshape(-1).view(np.uint8))
    return Loads.of(start[:-1], offset + 2 * width * np.arange(len(lengths)), 2 * width, "row_pointers")


def add_records(stored: Stored, ends: tuple[End, ...], space: Space, name: str) -> Element:
    """Store a record for each connection, little-endian and packed: ids of these ends, weight bits."""
    fields = [(end, f"<u{stored.id_bytes}") for end in ends]
    records = np.empty(len(stored.bits), [*fields, ("weight", f"<u{max(stored.value_bits // 8, 1)}")])
    for end in ends:
        records[end] = stored.ids[end]
    records["weight"] = stored.bits
    return Element(space.add(name, records.view(np.uint8)), 8 * records.itemsize, "tuples")


class Runs(LayoutKind):
    """Runs of one target: a header (target, connections in the run), and (source, weight) records in their own array.

    Cheaper than tuples where runs are longer than 2 connections, larger than rows by the ids of the runs.
    """

    ids = ("source", "target")
    ids_per_layer = False

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        loads = run_headers(stored, space)
        return [add_records(stored, ("source",), space, "run_records")], loads


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
        return [add_records(stored, self.ids, space, "tuples")], Loads.none()


LAYOUTS.register("runs", summary="per run of one target a header, then (source, weight) records")(Runs())
LAYOUTS.register("runs-delta", summary="runs with delta-coded source ids")(RunsDelta())
LAYOUTS.register("tuples", summary="(source, target, weight) records")(Tuples())
