"""An order by executing it: in integers modulo 2^64 sums are exact, so a wrong order gives a wrong value somewhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.networks.network import Network

MASK = (1 << 64) - 1
HALF = 1 << 63


def integer_mismatches(network: Network, edges: npt.NDArray[np.int64], *, seed: int = 0) -> int:
    """Process the connections one by one in integers mod 2^64 and count neurons that differ from the level-wise sums.

    Weights and inputs are random small integers; finished values pass through the signed ReLU. Exact: O(W) steps.
    """
    rng = np.random.default_rng(seed)
    weights = rng.integers(-7, 8, network.n_connections)
    start = rng.integers(-7, 8, network.n_neurons)

    value = start.tolist()
    w, s, t = weights[edges].tolist(), network.sources[edges].tolist(), network.targets[edges].tolist()
    for weight, source, target in zip(w, s, t, strict=True):
        activated = value[source] & MASK
        if activated < HALF:  # not negative as a signed number
            value[target] += weight * activated
    stepwise = np.array([v & MASK for v in value], np.uint64)

    expected = start.astype(np.uint64)
    target_depth = network.depth[network.targets]
    by_depth = np.argsort(target_depth, kind="stable")
    unsigned = weights.astype(np.uint64)
    for level in np.split(by_depth, np.flatnonzero(np.diff(target_depth[by_depth])) + 1):
        finished = expected[network.sources[level]]
        activated_level = np.where(finished < np.uint64(HALF), finished, np.uint64(0))
        np.add.at(expected, network.targets[level], unsigned[level] * activated_level)
    return int((stepwise != expected).sum())
