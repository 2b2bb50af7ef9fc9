"""What a search sees of a machine, as plain numbers, and the surrogate that stands for its simulation.

The surrogate is a few counts that kernels keep up to date, weighted so that they predict the simulation. Of a
scratchpad the counts are runs, rows moved (the I/Os of its own model) and, where rows share bursts, bursts moved; of a
cache lines filled and written back, accesses to lines, and rows opened in memory; and a constant. The weights are a
nonnegative least-squares fit in which orders near the best one count most; what few values leave open follows a prior
by which bytes are what costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as kernel
from cython_ext.annealing.on_cache import MOST_BANKS, MOST_ELEMENTS, OnCache
from cython_ext.iomodel.counts import PINNING_CODES, POLICY_CODES
from reorder.edges.search.objectives import count_runs
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]
CostFunction = Callable[[Int64Array], float]
"""What an order (int64[W]) costs on the machine itself: what a search may ask, some milliseconds a time."""
Sampler = Callable[[Int64Array, int], tuple[Network, float]]
"""Some stretches of an order (int64[W], about how many connections), as a network in that order, and what they cost."""


@dataclass(frozen=True)
class CacheShape:
    """A line cache and where a network lies before it.

    line_bytes, sets, ways: of the last level, whose misses go to memory. policy: of `compiled_policy`, None for
    LRU. elements: (address, bits per connection) of each array that is read along with the connections. rows: address
    of neuron 0's row, bytes from one row to the next, bytes of a row. access_bytes: the widest access of the engine.
    memory_rows: bytes of a DRAM row, and the banks (a power of two and a number; open rows are counted by them).
    """

    line_bytes: int
    sets: int
    ways: int
    policy: Any
    elements: tuple[tuple[int, int], ...]
    rows: tuple[int, int, int]
    access_bytes: int
    memory_rows: tuple[int, int]

    @property
    def rows_share_lines(self) -> bool:
        return self.rows[1] < self.line_bytes

    def kernel(self, network: Network, edges: Int64Array, seed: int = 0) -> OnCache:
        row_bytes, banks = self.memory_rows
        return OnCache(
            network.sources.astype(np.int32), network.targets.astype(np.int32), network.n_neurons, edges,
            elements=self.elements[:MOST_ELEMENTS], rows=self.rows, cache=(self.line_bytes, self.sets, self.ways),
            memory=(row_bytes, min(banks, MOST_BANKS)), access_bytes=self.access_bytes, policy=self.policy, seed=seed,
        )  # fmt: skip


@dataclass(frozen=True)
class MachineShape:
    """memory, policy, pinning: M and the eviction of the I/O model; a scratchpad's own, or LRU and as many rows as a
    cache has room for. cache: None for a scratchpad. burst_rows: rows that one burst of the memory brings.
    """

    memory: int
    policy: str
    pinning: str
    cache: CacheShape | None = None
    burst_rows: int = 1

    @property
    def sharing(self) -> int:
        """Return how many rows come together: those of a cache's line, or of a burst."""
        if self.cache is None:
            return self.burst_rows
        return max(1, self.cache.line_bytes // self.cache.rows[1])


NEAR = 4  # an order that costs twice the best counts for 2^-NEAR of it in the fit
WINDOW = 16  # loads, or stores, of one burst that are no further apart move it once: a controller's queue merges them
# Weights before any simulation: of a scratchpad's runs, rows and bursts, and of the COUNTS of a cache. Then shares of
# the first value.
PAD_PRIOR, CACHE_PRIOR = (0.02, 0.5, 1.0), (1.0, 1.0, 0.01, 0.01, 0.2)
TIED = 0.01  # how much the prior counts in the fit, against 1 for the best order's value
REMEMBERED = 256  # values that are remembered: the best half and the latest of the others
ERROR, LEAST_ERROR, MOST_ERROR = 0.3, 0.1, 0.5  # of predictions: before any was tested, and what is believed

Float64Array = npt.NDArray[np.float64]


class Surrogate:
    """Counts of orders, and their weights; `learn` again and again after each simulation.

    error: how far off, relative to the simulation, predictions before the last simulations were. prior: weights by
    bytes.
    """

    def __init__(self, network: Network, shape: MachineShape) -> None:
        self.network, self.shape = network, shape
        self.prior: Float64Array = np.array((*(PAD_PRIOR if shape.cache is None else CACHE_PRIOR), 0.0))
        self.weights: Float64Array = self.prior
        self.error = ERROR
        self._errors: list[float] = []
        self._kernel: OnCache | None = None
        self._seen: list[Float64Array] = []
        self._values: list[float] = []

    def counts(self, edges: Int64Array) -> Float64Array:
        """Return the counts of an order, and 1 for the constant. O(W)."""
        if self.shape.cache is None:
            return self._pad_counts(edges)
        if self._kernel is None:
            self._kernel = self.shape.cache.kernel(self.network, edges)
        else:
            self._kernel.replace(edges)
        return np.append(self._kernel.counts.astype(np.float64), 1.0)

    def _pad_counts(self, edges: Int64Array) -> Float64Array:
        network, shape = self.network, self.shape
        sources, targets = (ends[edges].astype(np.int32) for ends in (network.sources, network.targets))
        codes = POLICY_CODES[shape.policy], PINNING_CODES[shape.pinning]
        given = sources, targets, network.n_neurons, network.is_output.view(np.uint8), shape.memory, *codes
        if shape.burst_rows == 1:
            rows, bursts = int(kernel.count(*given)[:3].sum()), 0
        else:
            _, neuron, kind = kernel.moves(*given)
            rows, burst = len(neuron), neuron // shape.burst_rows
            bursts = sum(_bursts(burst[chosen]) for chosen in (kind == kernel.LOAD, kind != kernel.LOAD))
        return np.array([count_runs(targets), rows, bursts, 1.0])

    def learn(self, counts: Float64Array, value: float) -> None:
        """Take what the simulation said of an order with these counts, and fit the weights anew."""
        from scipy.optimize import nnls

        if len(self._values) > 1 and value:
            self._errors = [*self._errors[-2:], abs(self.predict(counts) / value - 1)]
            self.error = float(np.clip(max(self._errors), LEAST_ERROR, MOST_ERROR))
        self._seen.append(counts)
        self._values.append(value)
        if len(self._values) > REMEMBERED:
            worst = max(range(len(self._values) - REMEMBERED // 2), key=lambda k: self._values[k])
            del self._seen[worst], self._values[worst]
        seen, values = np.array(self._seen), np.array(self._values)
        if not values.min() > 0:
            return
        trust = (values.min() / values) ** NEAR
        scale = seen.max(0)
        scale[scale == 0] = 1
        best = int(values.argmin())
        prior = self.prior * values[best] / (self.prior @ seen[best] or 1.0)
        rows = np.vstack((seen / scale / values[:, None] * trust[:, None], TIED * np.eye(len(scale)) / values[best]))
        fitted, _ = nnls(rows, np.append(trust, TIED * prior * scale / values[best]))
        if fitted.any():
            self.weights = fitted / scale

    def predict(self, counts: Float64Array) -> float:
        return float(self.weights @ counts)

    @property
    def run_in_io(self) -> float:
        """What a run costs against an I/O of the model (a row moved): the weight of runs for the engine's searches."""
        if self.shape.cache is None:
            run, row, burst = self.weights[:3]
            moved = row + burst / self.shape.burst_rows
            return float(run / moved) if moved > 0 else 0.0
        fill, back, load, store = self.weights[:4]
        return float((load + store) / (fill + back / 2)) if fill > 0 else 0.0


def _bursts(burst: npt.NDArray[np.int32]) -> int:
    """Return how many of these moves are of no burst that one of the WINDOW before them was of."""
    new = np.ones(len(burst), bool)
    for back in range(1, min(WINDOW, len(burst) - 1) + 1):
        new[back:] &= burst[back:] != burst[:-back]
    return int(np.count_nonzero(new))
