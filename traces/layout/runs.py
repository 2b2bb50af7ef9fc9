"""Runs of one target: a header (target, connections in the run) and (source, weight) records. Holds any order.

Headers and records lie in arrays of their own, so that records stay side by side. Cheaper than tuples where runs are
longer than 2 connections, and larger than rows by the ids of the runs.
"""

from __future__ import annotations

import numpy as np

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


LAYOUTS.register("runs", summary="per run of one target a header, then (source, weight) records")(Runs())
