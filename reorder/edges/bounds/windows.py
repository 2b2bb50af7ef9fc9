"""S-partition lower bound on reads (Hong and Kung 1981).

Every read begins a stay of a value. In a segment of r reads only what lay in fast memory before and what is read can
be resident, C - 1 + r values, so at most E(C - 1 + r) connections are processed, with E(v) the most that any v neurons
have among each other; and all of them must be processed. Unlike arguments about values that do not stay, this one
counts how often each must be read again.

E from the network's spectrum: neurons of even and of odd depth are the two sides of a matrix B. Let P be its additive
model: for each pair of depths, a row's mean plus a column's mean less the mean. A neuron of one side has at most `row`
in P, one of the other adds at most `column`, so a and b neurons have at most b (sum of a rows) + a (sum of b columns) +
s sqrt(a b) connections, s the largest singular value of B - P, and a b of course. All of this holds for connections of
any weights as well: all weight is to be processed. Weights (d_a d_b)^-1/2, d the degrees, make hubs count for less,
whose connections a segment gets cheaply. Proofs: docs/concepts/bounds.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.networks.network import Int64Array, Network

FloatArray = npt.NDArray[np.float64]

DENSE = 1 << 14  # places of a matrix that is held whole
FEWEST = 3  # neurons of the smaller side of a run
OVERHEAD = 1 << 24  # operations that the stretches of a run cost besides: some milliseconds
ITERATED = 32  # from this many rows on the norm is iterated for
STRETCHES = 2.0 ** np.arange(-3, 5.5, 0.25)  # reads of a stretch, in slots
MARGIN = 1e-6  # relative, for rounding
POWERS = (0.0, 0.5)  # of degrees, in the weights of connections


@dataclass(frozen=True)
class Sides:
    """Neurons of even and of odd depth, and the `weight` of all connections from one side to the other.

    heaviest: the most that a connection weighs. rows, columns: float64[a + 1], float64[b + 1], the most that 0, 1, ...
    neurons of a side contribute to P. spread: an upper bound on the largest singular value of B - P.
    """

    weight: float
    heaviest: float
    rows: FloatArray
    columns: FloatArray
    spread: float
    _most: dict[int, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def neurons(self) -> int:
        return len(self.rows) + len(self.columns) - 2

    def most(self, v: int) -> float:
        """Return E(v): an upper bound on the weight of the connections among any v neurons. O(v), once."""
        if not self._most and len(self.rows) * len(self.columns) <= DENSE:
            a, b = np.ogrid[: len(self.rows), : len(self.columns)]
            each = np.zeros(self.neurons + 1)
            np.maximum.at(each, a + b, self._among(a, b))
            self._most.update(enumerate(np.minimum(each * (1 + MARGIN), self.weight).tolist()))
        if v not in self._most:
            a = np.arange(max(0, v - len(self.columns) + 1), min(v, len(self.rows) - 1) + 1)
            most = self._among(a, v - a).max() * (1 + MARGIN) if len(a) else self.weight
            self._most[v] = float(min(most, self.weight))
        return self._most[v]

    def _among(self, a: Int64Array, b: Int64Array) -> FloatArray:
        """Return the most that connections between a rows and b columns weigh."""
        spectral = b * self.rows[a] + a * self.columns[b] + self.spread * np.sqrt(a * b)
        among: FloatArray = np.minimum(a * b * self.heaviest, spectral)
        return among

    def reads(self, slots: int) -> int:
        """Return the fewest reads of values for all connections, with C slots."""
        best = 0
        for r in np.unique(np.clip(np.rint(STRETCHES * slots), 1, self.neurons)).astype(int).tolist():
            left = self.weight - self.most(r)  # the first stretch finds nothing in fast memory
            if left <= 0:
                continue
            each = self.most(slots - 1 + r)
            whole = int(np.ceil(left / each * (1 - MARGIN))) - 1
            if r * (2 + whole) <= best:
                continue
            low, high = 1, r  # reads of the last stretch, which may be shorter
            while low < high:
                middle = (low + high) // 2
                low, high = (
                    (low, middle) if self.most(slots - 1 + middle) >= left - whole * each else (middle + 1, high)
                )
            best = max(best, r * (1 + whole) + low)
        return best


def windows_reads(
    network: Network, memory: int, work: float, kept: dict[tuple[int, int], tuple[Sides, ...]]
) -> dict[tuple[int, int], int]:
    """Return the extra reads that segments prove, by first and last depth of a run: all of them, or two neighbours.

    work: operations that all runs together may take; those that come later are left out. kept: sides by run, the same
    for every memory.
    """
    sizes = np.bincount(network.depth[network.touched])
    extra: dict[tuple[int, int], int] = {}
    for first, last in chain([(0, len(sizes))], ((first, first + 2) for first in range(len(sizes) - 1))):
        smaller = float(min(sizes[first:last:2].sum(), sizes[first + 1 : last : 2].sum()))
        each = smaller**3 / 2 + OVERHEAD  # two matrices, each iterated and factorised
        powers = tuple(power for k, power in enumerate(POWERS, 1) if k * each <= work)
        work -= len(powers) * each
        if not powers:
            break  # nothing later fits either; a chain has as many runs as neurons
        if smaller < FEWEST:
            continue
        if (first, last) not in kept:
            kept[first, last] = _sides(network, first, last, powers)
        reads = max((sides.reads(memory - 1) - sides.neurons for sides in kept[first, last]), default=0)
        extra[first, last - 1] = max(0, reads)
    return extra


def _sides(network: Network, first: int, last: int, powers: tuple[float, ...] = POWERS) -> tuple[Sides, ...]:
    """Return the sides of the depths first to last - 1, as far as connections go from one side to the other.

    For each of `powers` once with P as said, once with the mean alone, which leaves more to the spread where degrees
    differ, less to hubs.
    """
    depth = network.depth
    s, t = network.sources, network.targets
    inside = (depth[s] >= first) & (depth[t] < last) & ((depth[t] - depth[s]) % 2 == 1)
    s, t = s[inside], t[inside]
    if not len(s):
        return ()
    odd = depth[s] % 2 == 1
    rows, columns = np.where(odd, t, s), np.where(odd, s, t)
    row_ids, row = np.unique(rows, return_inverse=True)
    column_ids, column = np.unique(columns, return_inverse=True)
    if len(row_ids) > len(column_ids):
        row_ids, row, column_ids, column = column_ids, column, row_ids, row
    shape = len(row_ids), len(column_ids)
    degrees = (np.bincount(row)[row] * np.bincount(column)[column]).astype(np.float64)
    groups = _groups(depth[row_ids]), _groups(depth[column_ids])
    return tuple(sides for power in powers for sides in _weighted(row, column, degrees**-power, shape, groups))


def _weighted(
    row: Int64Array, column: Int64Array, weight: FloatArray, shape: tuple[int, int], groups: Any
) -> tuple[Sides, Sides]:
    """Return the sides of some connections with weights (float64 each), with P as said and with the mean alone.

    groups: of rows and of columns, which one each is in and their sizes.
    """
    (row_group, row_size), (column_group, column_size) = groups
    matrix = _matrix(row, column, weight, shape)
    gram = matrix @ matrix.T
    gram = gram if isinstance(gram, np.ndarray) else gram.toarray()
    by_row, by_column = np.zeros((shape[0], len(column_size))), np.zeros((shape[1], len(row_size)))
    np.add.at(by_row, (row, column_group[column]), weight)
    np.add.at(by_column, (column, row_group[row]), weight)
    of_row = by_row / column_size
    pairs = np.stack([of_row[row_group == group].mean(axis=0) for group in range(len(row_size))])
    of_column = by_column / row_size - pairs[:, column_group].T
    # (B - P)(B - P)' without P: sums of `of_column` over a depth are 0
    crossed = (matrix @ of_column)[:, row_group]
    product = gram - by_row @ of_row.T - crossed - crossed.T
    product += (of_column.T @ of_column)[np.ix_(row_group, row_group)]
    total, heaviest = float(weight.sum()), float(weight.max())
    additive = Sides(
        total, heaviest, _highest(of_row.max(axis=1)), _highest(np.maximum(of_column.max(axis=1), 0)), _norm(product)
    )
    crossed = (by_row @ pairs.T)[:, row_group]
    product = gram - crossed - crossed.T
    product += ((pairs * column_size) @ pairs.T)[np.ix_(row_group, row_group)]
    flat = Sides(total, heaviest, pairs.max() * np.arange(shape[0] + 1.0), np.zeros(shape[1] + 1), _norm(product))
    return additive, flat


def _matrix(row: Int64Array, column: Int64Array, weight: FloatArray, shape: tuple[int, int]) -> Any:
    """Return the weight at each place, float64: dense where small, which spares loading SciPy, else csr."""
    if shape[0] * shape[1] <= DENSE:
        dense = np.zeros(shape)
        np.add.at(dense, (row, column), weight)
        return dense
    from scipy.sparse import coo_array

    return coo_array((weight, (row, column)), shape).tocsr()


def _highest(values: FloatArray) -> FloatArray:
    """Return float64[n + 1]: the sum of the 0, 1, ... highest."""
    return np.concatenate(([0.0], np.cumsum(-np.sort(-values))))


def _groups(depth: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the group of each neuron by its depth, and the sizes of the groups."""
    _, group, size = np.unique(depth, return_inverse=True, return_counts=True)
    return group, size


def _norm(product: FloatArray) -> float:
    """Return an upper bound on the largest singular value, from the product of a matrix with its transpose."""
    proved = proved_highest(product, lambda value: value * (1 + 1e-4) + 1e-6, tol=1e-5)
    if proved is not None:
        return float(np.sqrt(proved))
    return float(np.sqrt(max(np.linalg.eigvalsh(product)[-1], 0.0)) * (1 + 1e-7) + 1e-7)


def proved_highest(product: FloatArray, above: Callable[[float], float], tol: float) -> float | None:
    """Return `above` of the highest eigenvalue that an iteration finds, once a Cholesky factorisation has proved that
    none is higher; None for small matrices, and where that fails.

    Solving for eigenvalues takes several times as long, and a hundred times where BLAS threads wait on busy cores.
    """
    n = len(product)
    if n < ITERATED:
        return None
    from scipy.linalg import LinAlgError, cholesky
    from scipy.sparse.linalg import ArpackError, eigsh

    try:
        found = above(float(eigsh(product, k=1, which="LA", v0=np.ones(n), tol=tol, return_eigenvectors=False)[0]))
        cholesky(found * np.eye(n) - product, overwrite_a=True, check_finite=False)
    except (LinAlgError, ArpackError):  # it stopped too low, or not at all
        return None
    return found
