"""The surrogate: a few counts that kernels keep up to date, weighted so that they tell what the judge said so far.

Of a scratchpad the counts are runs and rows moved (the I/Os of its own model); of a cache they are lines filled and
written back, accesses to lines, and rows opened in memory. What no order changes is a constant. The weights, in the
judge's unit, are a least-squares fit with none below zero, in which orders near the best one count most.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.annealing.on_cache import COUNTS, OnCache
from reorder.base import Task
from reorder.machine.shape import Int64Array, MachineShape
from reorder.search.objectives import IOTerm, Objective, count_runs
from traces.work.network import Network

NEAR = 4  # an order that costs twice the best counts for 2^-NEAR of it in the fit

Float64Array = npt.NDArray[np.float64]


class Surrogate:
    """Counts of orders, and their weights; `learn` again and again as the judge speaks."""

    def __init__(self, network: Network, shape: MachineShape) -> None:
        self.network, self.shape = network, shape
        self.weights: Float64Array = np.ones(3 if shape.cache is None else len(COUNTS) + 1)
        self._kernel: OnCache | None = None
        self._seen: list[Float64Array] = []
        self._values: list[float] = []

    def counts(self, edges: Int64Array) -> Float64Array:
        """Return the counts of an order, and 1 for the constant. O(W)."""
        if self.shape.cache is None:
            sources, targets = (ends[edges].astype(np.int32) for ends in (self.network.sources, self.network.targets))
            moved = self._moves.of_arrays(sources, targets, self.network, self._task)
            return np.array([count_runs(targets), moved, 1.0])
        if self._kernel is None:
            self._kernel = self.shape.cache.kernel(self.network, edges)
        else:
            self._kernel.replace(edges)
        return np.append(self._kernel.counts.astype(np.float64), 1.0)

    @property
    def _task(self) -> Task:
        return Task(self.shape.memory, self.shape.policy, self.shape.pinning)

    @property
    def _moves(self) -> Objective:
        return Objective("io", io=(IOTerm(1),))

    def learn(self, counts: Float64Array, value: float) -> None:
        """Take what the judge said of an order with these counts, and fit the weights anew."""
        from scipy.optimize import nnls

        self._seen.append(counts)
        self._values.append(value)
        seen, values = np.array(self._seen), np.array(self._values)
        trust = (values.min() / values) ** NEAR
        scale = seen.max(0)
        scale[scale == 0] = 1
        found, _ = nnls(seen / scale / values[:, None] * trust[:, None], trust)
        if found.any():
            self.weights = found / scale

    def predict(self, counts: Float64Array) -> float:
        """Return what the judge is expected to say."""
        return float(self.weights @ counts)

    @property
    def run_in_io(self) -> float:
        """What a run costs against an I/O of the model (a row moved): the weight of runs for the engine's searches."""
        if self.shape.cache is None:
            run, moved = self.weights[:2]
            return float(run / moved) if moved > 0 else 0.0
        fill, back, load, store = self.weights[:4]
        return float((load + store) / (fill + back / 2)) if fill > 0 else 0.0
