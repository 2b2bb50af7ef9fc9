"""How an order processes a network's connections, as kernels read it: laid out once where it is used again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import find_next_uses
from cython_ext.network.graph import lay_out
from traces.networks.checks import as_order, check_size, fault
from traces.networks.network import Network


@dataclass(frozen=True, eq=False)
class Processing:
    """A valid order as kernels read it: the ends of the connections as they are processed.

    sources, targets: int32[W]. runs: stretches of consecutive connections with one target. is_output: uint8[N].
    """

    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    runs: int
    is_output: npt.NDArray[np.uint8]

    @cached_property
    def next_uses(self) -> npt.NDArray[np.int32]:
        """int32[2W]: what the kernel's `find_next_uses` returns."""
        return find_next_uses(self.sources, self.targets, self.is_output)


REMEMBERED = 1 << 24  # connections: with its next uses a checked order takes 16 bytes for each

# What was laid out stays with the order, or with the network for its own order, while that lives.
_laid_out: WeakKeyDictionary[Any, tuple[ReferenceType[Network], Processing]] = WeakKeyDictionary()


@dataclass
class _Given:
    """The array that was last given as an order of a network, which may be given again, and may be another by then.

    entries: what it held when it was laid out; None before. changes: it was seen to hold something else later.
    """

    array: ReferenceType[npt.NDArray[Any]]
    entries: npt.NDArray[Any] | None = None
    laid_out: Processing | None = None
    changes: bool = False


_given: WeakKeyDictionary[Network, _Given] = WeakKeyDictionary()


def _given_again(network: Network, array: npt.NDArray[Any]) -> Processing | None:
    """Return how an array processes the connections where it was given before and holds what it held; else None.

    The first time that is noted, the second time it is laid out, from then on its entries are compared.
    """
    given = _given.get(network)
    if given is None or given.array() is not array:
        _given[network] = _Given(ref(array))
        return None
    if given.entries is None and not given.changes:
        entries = array.copy()
        given.entries, given.laid_out = entries, _lay_out(network, entries)
    elif given.entries is not None and not np.array_equal(given.entries, array):
        _given[network] = _Given(given.array, changes=True)
        return None
    return given.laid_out


def known_processing(network: Network, order: Any) -> Processing | None:
    """Return `processing` where it is kept, or is to be, with its owner: the network, an Ordering or an array.

    None where laying it out gains nothing: too large, the first time, or an array whose entries change between calls.
    """
    check_size(network)
    if network.n_connections > REMEMBERED:
        return None
    edges = getattr(order, "edges", order)
    if edges is order and isinstance(order, np.ndarray):
        return _given_again(network, order)
    fixed = isinstance(edges, np.ndarray) and not edges.flags.writeable
    if order is not None and not fixed:
        return None
    owner = network if order is None else order
    if owner not in _laid_out or _laid_out[owner][0]() is not network:
        _laid_out[owner] = ref(network), _lay_out(network, edges)
    return _laid_out[owner][1]


def processing(network: Network, order: Any) -> Processing:
    """Return how an order processes the network's connections, after checking that it is a valid one.

    order: an Ordering, int[W] connection indices in processing order, or None for the network's own order.
    Raises InputError for an order that is not a topological permutation. O(W + N).
    """
    known = known_processing(network, order)
    return _lay_out(network, getattr(order, "edges", order)) if known is None else known


def _lay_out(network: Network, edges: npt.ArrayLike | None) -> Processing:
    order = None if edges is None else as_order(network, edges)
    sources, targets, runs, valid = lay_out(network.ends, order, network.n_neurons)
    if not valid:
        raise fault(network, np.arange(network.n_connections) if order is None else order)
    return Processing(sources, targets, runs, network.is_output.view(np.uint8))


def processing_arrays(network: Network, order: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    laid_out = processing(network, order)
    return laid_out.sources, laid_out.targets


def widest_bag(sources: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], n_neurons: int) -> int:
    """Return the most values that lie between their first and their last connection at once; int[W] in the order of
    work. O(W + N)."""
    w = len(sources)
    step = np.arange(w)
    first, last = np.full(n_neurons, w), np.full(n_neurons, -1)
    for side in (sources, targets):
        np.minimum.at(first, side, step)
        np.maximum.at(last, side, step)
    alive = first < w
    change = np.bincount(first[alive], minlength=w + 1) - np.bincount(last[alive] + 1, minlength=w + 1)
    return int(np.cumsum(change).max(initial=0))
