"""Cutting an order of work into phases whose targets threads can share out: layers, where the order goes by layers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.streams.places import find_phases
from traces.base.errors import InputError

LEAST_WORK = 512  # connections per thread and phase, on average, for which waiting for each other can pay


def phases(sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32], n_neurons: int) -> npt.NDArray[np.int64]:
    """Return int64[W]: the phase of each connection. A phase reads nothing that it writes, and is as long as it can be.

    Raises InputError where phases are too short for threads to share them out. O(W + N).
    """
    phase: npt.NDArray[np.int64] = find_phases(sources, targets, n_neurons)
    if int(phase[-1]) * LEAST_WORK > len(phase):
        raise InputError(
            f"the order is not layer-parallel: its {len(phase)} connections fall into {phase[-1] + 1} phases that wait "
            "for each other; share the lanes out instead (split='lanes') or use an order by layers"
        )
    return phase


def shares(
    phase: npt.NDArray[np.int64], targets: npt.NDArray[np.int32], n_neurons: int, threads: int
) -> npt.NDArray[np.int64]:
    """Return int64[W]: the thread of each connection. All of a phase's connections into one target go to one thread;
    threads get the targets in the order of their first connections, the same number of connections each."""
    thread = np.empty(len(phase), np.int64)
    bounds = np.searchsorted(phase, np.arange(phase[-1] + 2))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = targets[begin:end]
        names, first, inverse, counts = np.unique(part, return_index=True, return_inverse=True, return_counts=True)
        by_place = np.argsort(first)
        before = np.cumsum(counts[by_place]) - counts[by_place]
        share = np.empty(len(names), np.int64)
        share[by_place] = np.minimum(before * threads // (end - begin), threads - 1)
        thread[begin:end] = share[inverse]
    return thread
