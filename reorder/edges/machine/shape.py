"""What a search sees of a machine: plain numbers, so that nothing of hwmodel is imported here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cython_ext.annealing.on_cache import MOST_BANKS, MOST_ELEMENTS, OnCache
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]
Judge = Callable[[Int64Array], float]
"""What an order (int64[W]) costs on the machine itself: the judge that a search may ask, some milliseconds a time."""
Sampler = Callable[[Int64Array, int], tuple[Network, float]]
"""Some stretches of an order (int64[W], about how many connections), as a network in that order, and what they cost."""


@dataclass(frozen=True)
class CacheShape:
    """A line cache and where a network lies before it.

    line_bytes, sets, ways: of the last level, whose misses go to memory. policy: address of a compiled policy, 0 for
    LRU. elements: (address, bits per connection) of each array that is read along with the connections. rows: address
    of neuron 0's row, bytes from one row to the next, bytes of a row. access_bytes: the widest access of the engine.
    memory_rows: bytes of a DRAM row, and the banks (a power of two and a number; open rows are counted by them).
    """

    line_bytes: int
    sets: int
    ways: int
    policy: int
    elements: tuple[tuple[int, int], ...]
    rows: tuple[int, int, int]
    access_bytes: int
    memory_rows: tuple[int, int]

    @property
    def rows_share_lines(self) -> bool:
        """Whether several neurons lie in one line."""
        return self.rows[1] < self.line_bytes

    def kernel(self, network: Network, edges: Int64Array, seed: int = 0) -> OnCache:
        """Return the compiled counts of an order on this cache."""
        row_bytes, banks = self.memory_rows
        return OnCache(
            network.sources.astype(np.int32), network.targets.astype(np.int32), network.n_neurons, edges,
            elements=self.elements[:MOST_ELEMENTS], rows=self.rows, cache=(self.line_bytes, self.sets, self.ways),
            memory=(row_bytes, min(banks, MOST_BANKS)), access_bytes=self.access_bytes, policy=self.policy, seed=seed,
        )  # fmt: skip


@dataclass(frozen=True)
class TupleWires:
    """How the tuples of a connection travel: the format of weights, the chain of encoders, bytes of a block."""

    value_format: str
    encoder: str
    block_bytes: int


@dataclass(frozen=True)
class MachineShape:
    """memory, policy, pinning: M and the eviction of the I/O model; a scratchpad's own, or LRU and as many rows as a
    cache has room for. cache: None for a scratchpad. burst_rows: rows that one burst of the memory brings.
    wires: None where the order of tuples inside a run changes nothing on the wires that counts.
    """

    memory: int
    policy: str
    pinning: str
    cache: CacheShape | None = None
    burst_rows: int = 1
    wires: TupleWires | None = None

    @property
    def sharing(self) -> int:
        """Return how many rows come together: those of a cache's line, or of a burst."""
        if self.cache is None:
            return self.burst_rows
        return max(1, self.cache.line_bytes // self.cache.rows[1])
