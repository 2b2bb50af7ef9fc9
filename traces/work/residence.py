"""How many values an order of work must hold at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def widest_bag(sources: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], n_neurons: int) -> int:
    """Return the most values that lie between their first and their last connection at once, in processing order.

    sources, targets: int[W] in the order of work. O(W + N).
    """
    w = len(sources)
    step = np.arange(w)
    first, last = np.full(n_neurons, w), np.full(n_neurons, -1)
    for side in (sources, targets):
        np.minimum.at(first, side, step)
        np.maximum.at(last, side, step)
    alive = first < w
    change = np.bincount(first[alive], minlength=w + 1) - np.bincount(last[alive] + 1, minlength=w + 1)
    return int(np.cumsum(change).max(initial=0))
