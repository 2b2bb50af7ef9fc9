"""Which values are in fast memory at each step of an order: a pass over it, for pictures; counts as in `iomodel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.occupancy import play
from traces.work.checks import checked_memory, policy_codes
from traces.work.network import Network
from traces.work.processing import processing_arrays

KINDS = ("empty or dead", "input value", "partial sum", "finished hidden value")


@dataclass(frozen=True, eq=False)
class Occupancy:
    """What one order does to fast memory.

    slots: uint8[C', T], the kind (index into KINDS) in each drawn slot at each of T moments. moments: int64[T],
    positions. reads, writes: int64[N] per neuron. reads_by, writes_by: kind -> count; a first read is in `first_reads`.
    """

    slots: npt.NDArray[np.uint8]
    moments: npt.NDArray[np.int64]
    reads: npt.NDArray[np.int64]
    writes: npt.NDArray[np.int64]
    first_reads: int
    reads_by: dict[str, int]
    writes_by: dict[str, int]
    writes_outputs: int


def occupancy(
    network: Network,
    order: Any,
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    moments: int = 600,
    rows: int = 200,
) -> Occupancy:
    """Play an order through fast memory and keep who was where. O(W log M + N).

    moments: columns of the picture; rows: slots drawn, evenly chosen where there are more.
    """
    checked_memory(memory)
    codes = policy_codes(policy, pinning)
    sources, targets = processing_arrays(network, order)
    looks, drawn = _evenly(len(sources), moments), _evenly(memory - 1, rows)
    grid, reads, writes, reads_by, writes_by, first_reads, writes_outputs = play(
        sources, targets, network.is_output.astype(np.uint8), memory, *codes, looks, drawn
    )
    by_kind = [dict(zip(KINDS[1:], counts[1:].tolist(), strict=True)) for counts in (reads_by, writes_by)]
    return Occupancy(grid, looks, reads, writes, first_reads, by_kind[0], by_kind[1], writes_outputs)


def _evenly(n: int, most: int) -> npt.NDArray[np.int64]:
    """Return all of 0 to n - 1, or `most` of them evenly chosen, ascending."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))
