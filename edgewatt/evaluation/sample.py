"""A sample of an order, as a network of its own: stretches of the order, whose simulation stands for the whole.

A full simulation takes some microseconds per connection and row of values; a search in a hurry ranks orders by samples.
What a sample lacks: rows that lie in fast memory where a stretch begins, and partial sums so far (they start with the
bias). Activations that nothing in the sample computes are those of a forward pass of a few vectors, each lane's with a
factor of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.networks.forward import forward
from traces.networks.network import Network
from traces.trace.build import input_vectors

Int64Array = npt.NDArray[np.int64]

STRETCHES = 4
VECTORS = 4  # of the forward pass
LEAST_FACTOR = 0.5  # of a lane's values; the largest is 1


def stretches(n_connections: int, sampled: int) -> Int64Array:
    """Return int64[about `sampled`], ascending places of an order: STRETCHES of equal length, evenly spread."""
    length = max(1, min(sampled, n_connections) // STRETCHES)
    middle = (2 * np.arange(STRETCHES) + 1) * n_connections // (2 * STRETCHES)
    begin = np.clip(middle - length // 2, 0, n_connections - length)
    return np.unique(begin[:, None] + np.arange(length))


def activations(network: Network, lanes: int, seed: int) -> npt.NDArray[np.float32]:
    """Return float32[lanes, N]: values that neurons may hold, for the payload of a sample. O(W VECTORS + N lanes)."""
    given, _ = input_vectors(network, 0, min(VECTORS, lanes), None, seed, min(VECTORS, lanes))
    values = np.resize(forward(network, given), (lanes, network.n_neurons))
    if lanes > VECTORS:
        factors = np.random.default_rng(seed).random(values.shape, np.float32)
        values *= LEAST_FACTOR + (1 - LEAST_FACTOR) * factors
    return np.nan_to_num(values, posinf=0, neginf=0)


def sample_of(network: Network, edges: Int64Array, values: npt.NDArray[np.float32]) -> Network:
    """Return the connections `edges` (int64, part of an order) as a network in that order, neurons as they were.

    Neurons that nothing computes are inputs, with `values` (float32[lanes, N]) as the batch; those that nothing reads
    are outputs, which are written as they would be for later.
    """
    sources, targets = network.sources[edges], network.targets[edges]
    fed, read = np.zeros(network.n_neurons, bool), np.zeros(network.n_neurons, bool)
    fed[targets], read[sources] = True, True
    inputs = np.flatnonzero(read & ~fed)
    ids = network.weight_ids
    assert network.weights is not None
    return network.with_(
        sources=sources,
        targets=targets,
        weights=network.weights[edges],
        layer=None if network.layer is None else network.layer[edges],
        weight_ids=None if ids is None else np.unique(ids[edges], return_inverse=True)[1],
        inputs=inputs,
        outputs=np.flatnonzero(fed & (network.is_output | ~read)),
        batch=values[:, inputs],
    )
