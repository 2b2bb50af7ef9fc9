"""The check that an order of work can be carried out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.errors import InputError
from traces.network import Network


def check_order(network: Network, edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return `edges` as int64[W] after checking that it is a topological permutation of the network's connections.

    Topological: when connection (a, b) is processed, every connection into a has been processed before.
    Raises InputError naming the first position and connection at fault. O(W).
    """
    order = np.asarray(edges)
    if order.ndim != 1 or (order.size and not np.issubdtype(order.dtype, np.integer)):
        raise InputError(f"an edge order is a one-dimensional integer array, not {order.dtype} of shape {order.shape}")
    order = np.ascontiguousarray(order, dtype=np.int64)
    w = network.n_connections
    if len(order) != w:
        raise InputError(f"the order has {len(order)} entries, the network {w} connections")
    bad = np.flatnonzero((order < 0) | (order >= w))
    if bad.size:
        raise InputError(f"order position {bad[0]}: connection {order[bad[0]]} does not exist (0 to {w - 1})")
    position = np.full(w, -1, np.int64)
    position[order] = np.arange(w)
    if (position < 0).any():
        missing = int(np.flatnonzero(position < 0)[0])
        raise InputError(f"the order is no permutation: connection {missing} is missing, another one is repeated")
    last_in = np.full(network.n_neurons, -1, np.int64)
    np.maximum.at(last_in, network.targets, position)
    late = np.flatnonzero(last_in[network.sources] > position)
    if late.size:
        edge = int(late[np.argmin(position[late])])
        source, target = network.sources[edge], network.targets[edge]
        raise InputError(
            f"the order is not topological: position {position[edge]} processes connection {edge} "
            f"({source} -> {target}) before every connection into neuron {source} is done "
            f"(the last is at position {last_in[source]})"
        )
    return order
