"""The steps of a walk: connections in the order of work, cut into the rows (or columns) a layout stores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.work.network import Network

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Steps:
    """K steps: the connections in the order of work, with the padding a layout adds.

    source, target: int64[K] neurons. layer: int64[K] or None. origin: int64[K], the position in the order each step
    comes from (padding repeats the one before). is_padding: bool[K].
    major: the neurons whose runs are the rows: source or target. run_start: int64[rows + 1], first step of each row.
    """

    source: Int64Array
    target: Int64Array
    layer: Int64Array | None
    origin: Int64Array
    is_padding: npt.NDArray[np.bool_]
    major: Int64Array
    run_start: Int64Array

    @classmethod
    def of(cls, network: Network, edges: Int64Array, by: str = "target", repeats: Int64Array | None = None) -> Steps:
        """Return the steps of an order of work.

        by: 'target' or 'source', whose runs are the rows. repeats: int64[W] steps per connection, the second and
        later ones being padding; None is one each.
        """
        origin = np.arange(len(edges)) if repeats is None else np.repeat(np.arange(len(edges)), repeats)
        is_padding = np.zeros(len(edges), bool) if repeats is None else np.r_[False, origin[1:] == origin[:-1]]
        at = edges[origin]
        source, target = network.sources[at], network.targets[at]
        major = target if by == "target" else source
        layer = network.layer[at] if network.layer is not None else None
        return cls(source, target, layer, origin, is_padding, major, run_starts(major))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values per connection of the order as values per step; padding gets zero."""
        if len(self.origin) == len(values):
            return values
        spread = values[self.origin]
        spread[self.is_padding] = 0
        return spread

    def aligned_slots(self, unit: int) -> Int64Array:
        """Return int64[K]: the element index of each step where every row starts at a multiple of `unit` elements."""
        lengths = np.diff(self.run_start)
        start = np.r_[0, np.cumsum(-(-lengths // unit) * unit)][:-1]
        return np.arange(len(self.source)) + np.repeat(start - self.run_start[:-1], lengths)


def run_starts(neurons: Int64Array) -> Int64Array:
    """Return int64[runs + 1]: where each run of equal values starts, and the length."""
    return np.r_[np.flatnonzero(np.r_[True, np.diff(neurons) != 0]), len(neurons)]


def one_run_each(neurons: Int64Array) -> bool:
    """Return whether every value of the sequence occurs in one run of consecutive positions only."""
    starts = neurons[run_starts(neurons)[:-1]]
    return len(np.unique(starts)) == len(starts)
