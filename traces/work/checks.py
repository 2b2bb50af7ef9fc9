"""Which orders of work, fast memories and policies are valid: checks shared by all that count I/Os."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import MAX_CONNECTIONS, PINNING_CODES, POLICY_CODES
from traces.base.checks import as_array
from traces.base.errors import InputError, unknown_name
from traces.work.network import Network


def check_order(network: Network, edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return `edges` as int64[W] after checking that it is a topological permutation of the network's connections.

    Topological: when connection (a, b) is processed, every connection into a has been processed before.
    Raises InputError naming the first position and connection at fault. O(W).
    """
    order = as_array(edges, "an edge order")
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


def processing_arrays(network: Network, order: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return sources and targets as int32[W] in processing order, after checking that the order is a valid one."""
    if network.n_connections > MAX_CONNECTIONS or network.n_neurons > 2**31 - 1:
        raise InputError(f"the I/O model counts up to {MAX_CONNECTIONS} connections and 2^31 - 1 neurons")
    edges = getattr(order, "edges", order)
    if edges is None:
        check_order(network, np.arange(network.n_connections))
        return network.sources.astype(np.int32), network.targets.astype(np.int32)
    edges = check_order(network, edges)
    return network.sources[edges].astype(np.int32), network.targets[edges].astype(np.int32)


def policy_codes(policy: str, pinning: str) -> tuple[int, int]:
    """Return the kernel's codes of the two names."""
    if policy not in POLICY_CODES:
        raise unknown_name("policy", policy, POLICY_CODES)
    if pinning not in PINNING_CODES:
        raise unknown_name("pinning", pinning, PINNING_CODES)
    return POLICY_CODES[policy], PINNING_CODES[pinning]


def checked_memory(memory: int) -> int:
    """Return M after checking that it is an integer of at least 3: a connection and the two values it joins."""
    if isinstance(memory, bool) or not isinstance(memory, int | np.integer):
        raise InputError(f"memory must be an integer, not {memory!r}")
    if memory < 3:
        raise InputError(f"memory is {memory}: at least 3 are needed, a connection and the two values it joins")
    if memory > 2**62:
        raise InputError(f"memory is {memory}: at most 2^62 can be counted with")
    return int(memory)
