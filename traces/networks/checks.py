"""Which orders of work, fast memories and policies are valid: checks shared by all that count I/Os."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import MAX_CONNECTIONS, PINNING_CODES, POLICY_CODES
from cython_ext.network.graph import is_valid
from traces.base.checks import as_array
from traces.base.errors import InputError, shown, unknown_name
from traces.networks.network import Network


def check_order(network: Network, edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return `edges` as int64[W] after checking that it is a topological permutation of the network's connections.

    Topological: when connection (a, b) is processed, every connection into a has been processed before.
    Raises InputError naming the first position and connection at fault. O(W).
    """
    order = as_order(network, edges)
    if not is_valid(network.ends, order, network.n_neurons):
        raise fault(network, order)
    return order


def is_only_order(network: Network, edges: npt.NDArray[np.int64]) -> bool:
    a_path = network.n_connections == np.count_nonzero(network.touched) - 1  # else it is not worth a look
    return a_path and bool(np.array_equal(network.targets[edges[:-1]], network.sources[edges[1:]]))


def check_size(network: Network) -> None:
    if network.n_connections > MAX_CONNECTIONS or network.n_neurons > 2**31 - 1:
        raise InputError(f"the I/O model counts up to {MAX_CONNECTIONS} connections and 2^31 - 1 neurons")


def as_order(network: Network, edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    order = as_array(edges, "an edge order")
    if order.ndim != 1 or (order.size and not np.issubdtype(order.dtype, np.integer)):
        raise InputError(f"an edge order is a one-dimensional integer array, not {order.dtype} of shape {order.shape}")
    order = np.ascontiguousarray(order, dtype=np.int64)
    w = network.n_connections
    if len(order) != w:
        raise InputError(f"the order has {len(order)} entries, the network {w} connections")
    return order


def fault(network: Network, order: npt.NDArray[np.int64]) -> InputError:
    w = network.n_connections
    bad = np.flatnonzero((order < 0) | (order >= w))
    if bad.size:
        return InputError(f"order position {bad[0]}: connection {order[bad[0]]} does not exist (0 to {w - 1})")
    position = np.full(w, -1, np.int64)
    position[order] = np.arange(w)
    if (position < 0).any():
        missing = int(np.flatnonzero(position < 0)[0])
        return InputError(f"the order is not a permutation: connection {missing} is missing, another one is repeated")
    last_in = np.full(network.n_neurons, -1, np.int64)
    np.maximum.at(last_in, network.targets, position)
    late = np.flatnonzero(last_in[network.sources] > position)
    edge = int(late[np.argmin(position[late])])
    source, target = network.sources[edge], network.targets[edge]
    return InputError(
        f"the order is not topological: position {position[edge]} processes connection {edge} "
        f"({source} -> {target}) before every connection into neuron {source} is done "
        f"(the last is at position {last_in[source]})"
    )


def policy_codes(policy: str, pinning: str) -> tuple[int, int]:
    if policy not in POLICY_CODES:
        raise unknown_name("policy", policy, POLICY_CODES)
    if pinning not in PINNING_CODES:
        raise unknown_name("pinning", pinning, PINNING_CODES)
    return POLICY_CODES[policy], PINNING_CODES[pinning]


def checked_memory(memory: int) -> int:
    if isinstance(memory, bool) or not isinstance(memory, int | np.integer):
        raise InputError(f"memory must be an integer, not {shown(memory)}")
    if memory < 3:
        raise InputError(f"memory is {memory}: at least 3 are needed, a connection and the two values it joins")
    if memory > 2**62:
        raise InputError(f"memory is {memory}: at most 2^62 can be counted with")
    return int(memory)
