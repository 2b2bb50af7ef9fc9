"""Longer runs of one target for few more I/Os: sources used together in batches instead of one after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]

WIDTHS = (8, 32, 128)  # sources per batch, looked at first


def in_batches(sources: Int32Array, targets: Int32Array, edges: Int64Array, width: int) -> Int64Array:
    """Return the order with every `width` sources in a row used together, target by target. O(W log W).

    sources, targets: int32[W] by connection. An order streams a source when consecutive connections leave it; each
    such stretch counts as one source. Inside a batch a target's connections become one run; targets come in the order
    in which the given order finishes them, so the result is topological where the given order is.
    """
    source, target = sources[edges], targets[edges]
    batch = np.concatenate(([0], np.cumsum(source[1:] != source[:-1]))) // width
    w = len(edges)
    finish = np.empty(int(target.max()) + 1, np.int64)
    finish[target] = np.arange(w)  # the last one stays
    return edges[np.argsort(batch * w + finish[target], kind="stable")]
