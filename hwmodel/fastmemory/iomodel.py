"""Reads and writes of one inference with a small fast memory: the I/O model of Gleinig et al. 2023, section II.

Fast memory has M slots, one of which belongs to the connection in hand, so C = M - 1 hold neuron values. Connection
(a, b) costs one read; then a and b are accessed, in this order; an access of a value that is not resident costs one
read and, when all C slots are full, first evicts exactly one value: free if it is clean or dead, one write if it is
dirty and used again or an unwritten output. What is left dirty of the outputs at the end costs one write each.

Where Algorithm 1 is open, choices are those of docs/concepts/io-model.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as kernel
from traces.networks.checks import as_order, checked_memory, fault, policy_codes
from traces.networks.network import Network
from traces.networks.processing import Processing, known_processing, processing, processing_arrays, widest_bag


@dataclass(frozen=True)
class IOCounts:
    """Reads and writes of one inference, and the number of runs of its order.

    reads_connections: W. reads_neurons: inputs, biases, and values read back.
    writes_live: values written because they were evicted before their last use. writes_outputs: final writes.
    runs: maximal stretches of consecutive connections with one target (a register-resident partial sum each).
    """

    memory: int
    policy: str
    pinning: str
    reads_connections: int
    reads_neurons: int
    writes_live: int
    writes_outputs: int
    runs: int

    @property
    def reads(self) -> int:
        return self.reads_connections + self.reads_neurons

    @property
    def writes(self) -> int:
        return self.writes_live + self.writes_outputs

    @property
    def total(self) -> int:
        return self.reads + self.writes


@dataclass(frozen=True)
class IOBounds:
    """Theorem 1 (Gleinig et al. 2023): what the least I/Os of a network lie between, for every M >= 3.

    W + N <= reads <= 2W + N - I,  S <= writes <= N - I,  W + N + S <= total <= 2(W + N - I).
    N, I and S count neurons that touch at least one connection.
    """

    lower_reads: int
    upper_reads: int
    lower_writes: int
    upper_writes: int
    lower_total: int
    upper_total: int


def io_bounds(network: Network) -> IOBounds:
    """Return Theorem 1's bounds. The upper ones hold for the best order, and for `two-optimal` under MIN. O(W)."""
    w, n = network.n_connections, int(network.touched.sum())
    i = int(network.touched[network.inputs].sum())
    s = int((network.in_degree[network.outputs] > 0).sum())
    return IOBounds(w + n, 2 * w + n - i, s, n - i, w + n + s, 2 * (w + n - i))


def gap(found: float, start: float, lower: float) -> float | None:
    """Return (found - lower) / (start - lower): 0 at the bound, 1 at the order to start from, here two-optimal. None
    where the start is at the bound and the found order is not.
    """
    if found == lower:
        return 0.0
    return None if start == lower else (found - lower) / (start - lower)


def count_io(
    network: Network, order: Any = None, *, memory: int, policy: str = "min", pinning: str = "literal"
) -> IOCounts:
    """Return the I/Os of one inference in the given order.

    order: an Ordering, int[W] connection indices in processing order, or None for the network's own order.
    memory: M >= 3. policy: 'min', 'lru' or 'rr'. pinning: 'literal' or 'pin_both'.
    Raises InputError for an unknown name, M < 3 or an order that is not a topological permutation. O(W + N).
    """
    return io_curve(network, order, [memory], policy, pinning)[0]


def movement_distance(network: Network, order: Any = None) -> float:
    """Return the data movement distance of an order: the sum over uses of neurons of the square root of the LRU depth.

    A use k different neurons after the last one of the same lies at depth k + 1; a first use lies below all neurons (D.
    Smith and C. Ding, "Beyond time complexity: data movement complexity analysis", ICS 2022). O(W log W).
    """
    from cython_ext.cache.stack import stack_distances

    sources, targets = processing_arrays(network, order)
    used = np.stack((sources, targets), axis=1).reshape(-1)
    by_neuron = np.argsort(used, kind="stable")
    previous = np.full(len(used), -1, np.int64)
    again = used[by_neuron[1:]] == used[by_neuron[:-1]]
    previous[by_neuron[1:][again]] = by_neuron[:-1][again]
    depth = stack_distances(previous) + 1
    return float(np.sqrt(np.where(depth > 0, depth, int(network.touched.sum()))).sum())


def io_curve(
    network: Network, order: Any, memories: Sequence[int], policy: str = "min", pinning: str = "literal"
) -> list[IOCounts]:
    """Return `count_io` for each of many memory sizes. LRU: one pass for all, O(W log N); MIN, RR: O(W) for each.

    order, policy, pinning: as of `count_io`. memories: M >= 3 each. Raises InputError as `count_io`.
    """
    codes = policy_codes(policy, pinning)
    sizes = np.array([checked_memory(memory) for memory in memories], np.int64)
    work = known_processing(network, order)
    if work is None and order is not None and len(sizes) == 1:
        edges = as_order(network, getattr(order, "edges", order))
        row, runs, valid = kernel._count_in_order(  # nothing is kept, so nothing is laid out
            network.ends, edges, network.is_output.view(np.uint8), sizes[0], *codes
        )
        if not valid:
            raise fault(network, edges)
        rows = row[None]
    else:
        work = processing(network, order) if work is None else work
        rows, runs = _rows(network, work, sizes, policy, *codes), work.runs
    return [
        IOCounts(int(m), policy, pinning, network.n_connections, int(row[0]), int(row[1]), int(row[2]), runs)
        for m, row in zip(sizes, rows, strict=True)
    ]


def _rows(
    network: Network, work: Processing, sizes: npt.NDArray[np.int64], policy: str, code: int, pinning: int
) -> npt.NDArray[np.int64]:
    """Return int64[K, 3 or more]: reads_neurons, writes_live and writes_outputs for each memory size."""
    outputs = network.is_output.view(np.uint8)
    if policy == "lru" and len(sizes) > 3:  # the one pass costs about as much as three
        table: npt.NDArray[np.int64] = kernel.lru_curve(work.sources, work.targets, network.n_neurons, outputs, pinning)
        return table[np.minimum(sizes - 1, network.n_neurons)]
    next_uses = work.next_uses if policy == "min" else None
    rows: npt.NDArray[np.int64] = kernel._count_many(
        work.sources, work.targets, outputs, sizes, code, pinning, next_uses
    )
    return rows


def compact_growth_memory(network: Network, order: Any = None) -> int:
    """Return the least M with which Compact Growth builds the network in this order (Theorem 2): exact.

    A value must be in the bag from its first connection to its last; the bag holds M - 1. With this M and more, MIN
    reads W + N and writes S; with less, every policy does more. O(W + N).
    """
    sources, targets = processing_arrays(network, order)
    return 1 + widest_bag(sources, targets, network.n_neurons)


@dataclass(frozen=True, eq=False)
class Moves:
    """Loads and stores of neuron values, int32[E] step, int32[E] neuron, uint8[E] kind, in the order they happen.

    step: the connection (in processing order) before whose update it happens; W for what is left to write at the end.
    kind: LOAD (`reads_neurons`), STORE_LIVE (evicted and used again), STORE_OUTPUT (an output's final write).
    """

    step: npt.NDArray[np.int32]
    neuron: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.step)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return (reads_neurons, writes_live, writes_outputs)."""
        loads, live, outputs = np.bincount(self.kind, minlength=3).tolist()
        return loads, live, outputs


def moves_of(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    is_output: npt.NDArray[np.bool_],
    *,
    memory: int,
    policy: str,
    pinning: str,
) -> Moves:
    """Return what `count_io` counts, move by move. Raises InputError for M < 3 or an unknown name. O(W + N).

    sources, targets: int32[W] in processing order, checked by the caller: ids below N, a topological order. is_output:
    bool[N]. MIN writes an output as soon as it has no later use, LRU and RR when it is evicted or at the end.
    """
    codes = policy_codes(policy, pinning)
    memory = checked_memory(memory)
    return Moves(*kernel.moves(sources, targets, len(is_output), is_output.astype(np.uint8), memory, *codes))
