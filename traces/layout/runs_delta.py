"""Runs of one target with delta-coded source ids: a header, weights, and the steps from source to source.

A step is the difference to the source before it in the order of work (the first one to 0), zigzag coded (0, -1, 1, -2
... as 0, 1, 2, 3 ...) in groups of 7 bits, lowest first, the top bit of a byte saying that another one follows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.layout.kind import LAYOUTS, Element, LayoutKind, Loads, Space, Stored
from traces.layout.runs import run_headers


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
    ids = ("source", "target")
    ids_per_layer = False

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        headers = run_headers(stored, space)
        data, lengths = encode_steps(stored.ids["source"])
        offset = space.add("source_steps", data)
        steps = Loads.of(np.arange(len(lengths)), offset + np.cumsum(lengths) - lengths, lengths, "ids")
        return [stored.values_array(space)], Loads.merge(headers, steps)


LAYOUTS.register("runs-delta", summary="runs with delta-coded source ids")(RunsDelta())
