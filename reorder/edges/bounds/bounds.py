"""Provable lower bounds on the I/Os of every order and eviction, beyond W + N + S (proofs: docs/concepts/bounds.md).

A value that does not stay from its first to its last access in one go costs more than Theorem 1 counts: a value that
was never written one read, a computed one a read and a write (`stay_costs`). So the fewest or cheapest values that
must be interrupted bound the extra I/Os. Four arguments say how many must be, a fifth counts how often values are
read; the best of them for reads and for writes add up:

`sparse`: the values that stay make, with their residence times, a path decomposition of the network without the others,
    of bags of at most M - 1; so that rest has at most k n - k (k + 1) / 2 connections, k = M - 2.
`trees`: a value with two sources takes one slot more than the one that needs less, while the other waits.
`expansion`: of two neighbouring sets of neurons, when u of the first are not begun and g are done with, every staying
    neuron of the second that both feed is resident; expanding connections leave few that are not fed by both.
`windows`: few connections join few neurons, so a segment of few reads processes few (reorder.edges.bounds.windows).
`paths`: at some moment many disjoint paths are begun and not ended, a value on each (reorder.edges.bounds.paths).
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from cython_ext.network.graph import core_numbers
from reorder.base import Task
from reorder.edges.bounds.paths import Joined, Runs, joined_paths, reloaded
from reorder.edges.bounds.windows import Sides, proved_highest, windows_reads
from reorder.edges.search.objectives import make_objective
from traces.networks.checks import checked_memory
from traces.networks.network import Int64Array, Network

FloatArray = npt.NDArray[np.float64]

LARGEST_MATRIX = 1 << 23  # entries of a pair of neighbouring sets that are looked at
LARGEST_WORK = 1 << 33  # entries times the smaller side, over all pairs: some seconds of singular values
SPARSE_WORK = 100  # operations of the sparse argument per connection
TREES_WORK = 500  # of the trees argument
PATHS_WORK = 16  # of looking for disjoint paths, before the first run of depths
PAIR_WORK = 1 << 14  # of the expansion argument per pair of sets, however small


_kept: WeakKeyDictionary[Network, dict[tuple[int, int], NetworkBound]] = WeakKeyDictionary()
_unfed: WeakKeyDictionary[Network, dict[int, dict[float, Int64Array]]] = WeakKeyDictionary()
"""By pair of sets and share of its rows: what `_most_unfed` says, the same for every memory."""
_windows: WeakKeyDictionary[Network, dict[tuple[int, int], tuple[Sides, ...]]] = WeakKeyDictionary()
_paths: WeakKeyDictionary[Network, dict[int, Joined]] = WeakKeyDictionary()


@dataclass(frozen=True)
class NetworkBound:
    """No order, with any evictions, has fewer I/Os than `total`; `extra` of them are beyond Theorem 1's W + N + S.

    argument: 'theorem-1', 'sparse', 'trees', 'expansion', 'windows' or 'paths', the one that gave the most of the
    bound; or 'search', where that of a small network proved it, for the evictions of one policy.
    """

    total: int
    extra: int
    argument: str


def lower_bound(network: Network, memory: int, work: int = LARGEST_WORK) -> NetworkBound:
    """Return the best bound known here for memory M >= 3; kept as long as the network is.

    work: an argument that takes more operations than this is left out; with the default, up to some seconds on a core.
    Raises InputError for M < 3.
    """
    checked_memory(memory)
    bound = _kept.setdefault(network, {}).get((memory, work))
    if bound is None:
        extra, writes = [(0, "theorem-1")], 0
        if SPARSE_WORK * network.n_connections <= work:
            extra.append((sparse_extra(network, memory), "sparse"))
        if TREES_WORK * network.n_connections <= work:
            extra.append((trees_extra(network, memory), "trees"))
        if expansion_work(network) <= work:
            costs = stay_costs(network)
            both, writes = expansion_extra(network, memory, np.stack((costs, costs - 1))).tolist()
            extra.append((both, "expansion"))
        extra.append(_reads_and_writes(network, memory, work, writes))
        most = max(extra, key=lambda item: item[0])
        bound = _kept[network][memory, work] = NetworkBound(theorem_1(network) + most[0], *most)
    return bound


def _reads_and_writes(network: Network, memory: int, work: int, writes: int) -> tuple[int, str]:
    """Return the reads of values after the first plus the writes of computed values that are read again, and an
    argument. writes: as many of them are proved already."""
    live: Runs = {}
    widest = np.bincount(network.depth[network.touched]).max(initial=0)
    if widest >= memory and PATHS_WORK * network.n_connections <= work:  # or all values of a depth fit
        if work not in (joined := _paths.setdefault(network, {})):
            joined[work] = joined_paths(network, work)
        live = reloaded(joined[work], memory - 1)
    segments = windows_reads(network, memory, work, _windows.setdefault(network, {}))
    reads = chained({run: max(live.get(run, 0), segments.get(run, 0)) for run in live | segments})
    writes = max(writes, chained({run: values for run, values in live.items() if run[0] > 0}))
    return reads + writes, "windows" if chained(segments) > chained(live) else "paths"


def chained(runs: Runs) -> int:
    """Return the most that disjoint runs of depths have in all; one may begin at the depth at which another ends."""
    ending: dict[int, list[tuple[int, int]]] = {}
    for (first, last), more in runs.items():
        ending.setdefault(last, []).append((first, more))
    most = [0]  # up to each depth
    for last in range(1, 1 + max(ending, default=0)):
        most.append(max([most[-1], *(most[first] + more for first, more in ending.get(last, []))]))
    return most[-1]


def theorem_1(network: Network) -> int:
    """Return W + N + S: connections, neurons and outputs that are computed (Gleinig et al. 2023, Theorem 1)."""
    outputs = int((network.in_degree[network.outputs] > 0).sum())
    return network.n_connections + int(network.touched.sum()) + outputs


def expansion_work(network: Network) -> int:
    """Return the operations of one product per pair of neighbouring sets: entries times the smaller side, and some."""
    sizes = np.bincount(network.depth[network.touched]).astype(np.float64)
    return int(min((sizes[:-1] * sizes[1:] * np.minimum(sizes[:-1], sizes[1:]) + PAIR_WORK).sum(), 2.0**62))


def stay_costs(network: Network) -> Int64Array:
    """Return int64[N]: the least extra I/Os if a neuron's value does not stay in one go: 1, or 2 if computed.

    A computed value is dirty when it first leaves, so it is written and read back. An output that is also a source may
    owe that write anyway.
    """
    computed = network.in_degree > 0
    return np.where(computed & ~(network.is_output & (network.out_degree > 0)), 2, 1)


# -- sparse --


def cores(network: Network) -> Int64Array:
    """Return int64[N]: the largest c such that the neuron lies in a subgraph of least degree c (directions ignored)."""
    return core_numbers(network.sources, network.targets, network.n_neurons)


def sparse_extra(network: Network, memory: int) -> int:
    """Return the extra I/Os that the `sparse` argument proves, over the cores of the network."""
    k = memory - 2
    core, costs = cores(network), stay_costs(network)
    best = 0
    if core.max() <= k:  # then no part has more connections than the argument allows
        return 0
    for level in np.unique(core[core > 0]).tolist():
        inside = core >= level
        within = inside[network.sources] & inside[network.targets]
        ends = np.concatenate((network.sources[within], network.targets[within]))
        degree = np.bincount(ends, minlength=network.n_neurons)
        best = max(best, _cheapest_thinning(degree[inside], costs[inside], int(within.sum()), k))
    return best


def _cheapest_thinning(degree: Int64Array, costs: Int64Array, connections: int, k: int) -> int:
    """Least cost of removing neurons until at most k n - k (k + 1) / 2 connections can be left among n >= k neurons."""
    n = len(degree)
    if n <= k:
        return 0
    need = connections - k * n + k * (k + 1) // 2
    if need <= 0:
        return 0
    nearly_all = int(np.sort(costs)[: n - k + 1].sum())  # or fewer than k neurons are left
    gain = np.maximum(degree - k, 0).astype(np.float64)
    by_rate = np.argsort(-gain / costs, kind="stable")
    reached = np.cumsum(gain[by_rate])
    if reached[-1] < need:
        return nearly_all
    last = int(np.searchsorted(reached, need))
    before = reached[last - 1] if last else 0.0
    part = (need - before) / gain[by_rate[last]]
    cover = float(costs[by_rate[:last]].sum() + part * costs[by_rate[last]])
    return min(nearly_all, int(np.ceil(cover - 1e-6)))


# -- trees --


def trees_extra(network: Network, memory: int) -> int:
    """Return the extra I/Os that the `trees` argument proves: 2 for each of some subtrees that do not fit. O(N + W)."""
    alone = (network.out_degree == 1) & (network.in_degree > 0) & ~network.is_output
    inner = np.flatnonzero(alone[network.sources])
    inner = inner[np.argsort(network.depth[network.sources[inner]], kind="stable")]
    highest, second = [1] * network.n_neurons, [1] * network.n_neurons  # needs of the sources
    extra = 0
    for source, target in zip(network.sources[inner].tolist(), network.targets[inner].tolist(), strict=True):
        need = max(2, highest[source], 1 + second[source])
        if need >= memory:
            extra, need = extra + 2, 1
        second[target] = max(second[target], min(need, highest[target]))
        highest[target] = max(highest[target], need)
    needs = np.maximum(highest, np.add(second, 1))
    return extra + 2 * int((needs[~alone] >= memory).sum())


# -- expansion --


def expansion_extra(network: Network, memory: int, costs: Int64Array) -> Int64Array:
    """Return int64[K]: the least cost that the `expansion` argument proves along the sets of neurons of equal depth.

    costs: int64[K, N], K ways to charge for a value that does not stay. With s of a set interrupted, at least f(s) of
    the next one are; the cheapest choice over all sets is found by dynamic programming from the last set backwards.
    """
    depth = network.depth
    by_depth = np.flatnonzero(network.touched)
    by_depth = by_depth[np.argsort(depth[by_depth], kind="stable")]
    first = np.concatenate(([0], np.cumsum(np.bincount(depth[by_depth], minlength=int(depth.max()) + 1))))
    sizes = np.diff(first)
    rank = np.empty(network.n_neurons, np.int64)
    rank[by_depth] = np.arange(len(by_depth)) - first[depth[by_depth]]
    one_deeper = np.flatnonzero(depth[network.targets] == depth[network.sources] + 1)
    one_deeper = one_deeper[np.argsort(depth[network.sources[one_deeper]], kind="stable")]
    edge = np.concatenate(([0], np.cumsum(np.bincount(depth[network.sources[one_deeper]], minlength=len(sizes)))))
    work = expansion_work(network)
    thresholds = (0.0, 0.3, 0.5, 0.65) if 4 * work <= LARGEST_WORK / 4 else (0.0,)
    # Pairs too small or too large force nothing: the cheapest choice before them is to interrupt nothing.
    pairs = np.flatnonzero((sizes[:-1] >= 3) & (sizes[1:] >= 2) & (sizes[:-1] * sizes[1:] <= LARGEST_MATRIX))
    least_after, below = np.zeros((len(costs), 1)), -1  # of the sets behind `below`, whatever is interrupted there
    after = least_after
    kept = _unfed.setdefault(network, {})
    for k in pairs[::-1].tolist():
        rows, columns = (by_depth[first[d] : first[d + 1]] for d in (k, k + 1))
        if below != k + 1:
            after = least_after.repeat(len(columns) + 1, axis=1)
        after = after + _cheapest(costs[:, columns])
        matrix = np.zeros((len(rows), len(columns)))
        here = one_deeper[edge[k] : edge[k + 1]]
        matrix[rank[network.sources[here]], rank[network.targets[here]]] = 1
        least = np.zeros(len(rows) + 1, np.int64)
        for share in thresholds:
            least = np.maximum(least, _forced(matrix, memory - 1, share, kept.setdefault(k, {})))
        after = np.minimum.accumulate(after[:, ::-1], axis=1)[:, ::-1][:, least]
        least_after, below = (after + _cheapest(costs[:, rows])).min(axis=1, keepdims=True), k
    return least_after[:, 0].astype(np.int64)


def _cheapest(costs: Int64Array) -> FloatArray:
    """Return float64[K, n + 1]: the least cost of interrupting 0, 1, ... of n neurons. costs: int64[K, n]."""
    return np.pad(np.cumsum(np.sort(costs, axis=1), axis=1, dtype=np.float64), ((0, 0), (1, 0)))


def _forced(matrix: FloatArray, capacity: int, share: float, kept: dict[float, Int64Array]) -> Int64Array:
    """Return, for 0, 1, ... interrupted rows, how many columns must be interrupted. C slots.

    Only the rows of the highest degrees count: all but the lowest `share` of them. kept: `_most_unfed`, by share.
    """
    n_rows = len(matrix)
    result = np.zeros(n_rows + 1, np.int64)
    degree = matrix.sum(axis=1)
    rows = np.argsort(degree, kind="stable")[int(share * n_rows) :]
    part = matrix[rows[degree[rows] > 0]]
    part = part[:, part.sum(axis=0) > 0]
    n, columns = part.shape
    if n < 3 or columns <= 1:
        return result
    if share not in kept:
        kept[share] = _most_unfed(part)
    unfed = kept[share]
    for interrupted in range(n + 1):
        staying = n - interrupted
        if staying < 3:
            break
        u = np.unique(np.linspace(1, staying - 1, 48, dtype=np.int64))[:, None]  # rows not begun; each u is met
        middle = np.arange(min(capacity, staying) + 1)[None, :]  # rows begun and not done with: resident
        done = np.maximum(staying - u - middle, 0)
        stay = (capacity - middle) + unfed[u] + unfed[done]
        stay = np.where(middle <= staying - u, stay, -1)
        forced = columns - int(stay.max(axis=1).min())
        if forced <= 0:
            break
        result[interrupted] = forced
    return np.minimum.accumulate(result)  # of the interrupted rows some may lie outside those looked at


def _most_unfed(matrix: FloatArray) -> Int64Array:
    """Return int64[n + 1]: for x, an upper bound on the columns with no entry in some x rows (0: all of them).

    Let a and b be the shares of all entries in the x rows and in those columns. With D the degrees and s the second
    singular value of D^-1/2 A D^-1/2, an empty submatrix has a b <= s^2 (1 - a)(1 - b) (expander mixing lemma).
    """
    n = matrix.shape[0]
    row_degree, column_degree = matrix.sum(axis=1), matrix.sum(axis=0)
    total = matrix.sum()
    second = _second_singular_value(matrix) + 1e-7  # the margin covers rounding
    a = np.concatenate(([0.0], np.cumsum(np.sort(row_degree)))) / total  # the least share of x rows
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = second**2 * (1 - a) / a
        b = np.where(a > 0, ratio / (1 + ratio), 1.0)
    least_share = np.concatenate(([0.0], np.cumsum(np.sort(column_degree)))) / total
    unfed = np.searchsorted(least_share, b + 1e-9, side="right") - 1
    by_degree = np.searchsorted(np.sort(column_degree), n - np.arange(n + 1) + 0.5)  # needs x other rows to miss
    most: Int64Array = np.minimum(unfed, by_degree).astype(np.int64)
    return most


def _second_singular_value(matrix: FloatArray) -> float:
    """Return an upper bound on the second singular value of D^-1/2 A D^-1/2, a little above it.

    The vector of the highest one, 1, is known, so it is taken out.
    """
    if len(matrix) > matrix.shape[1]:
        matrix = matrix.T
    degree = matrix.sum(axis=1)
    scaled = matrix / np.sqrt(degree)[:, None] / np.sqrt(matrix.sum(axis=0))[None, :]
    product = scaled @ scaled.T
    n = len(product)
    top = np.sqrt(degree / degree.sum())
    # coarse, so that machines that round otherwise agree
    proved = proved_highest(product - np.outer(top, top), lambda x: np.ceil(max(x, 0.0) * 1e5 + 0.01) / 1e5, tol=1e-7)
    if proved is not None:
        return float(np.sqrt(proved))
    return float(np.sqrt(max(np.linalg.eigvalsh(product)[-2], 0.0))) if n > 1 else 0.0


# Operations (edges.bounds.bounds) that a bound worth stopping at may take: at most, and per second of a time limit,
# some 2 % of it where BLAS threads wait for each other on busy cores.
QUICK, PER_SECOND = 1 << 24, 1 << 20


def least_objective(network: Network, task: Task) -> float:
    """Return a bound on the objective of every order: one run per computed neuron, and the I/O bound of each memory.

    Better I/O bounds than Theorem 1's only where they take little of the task's time.
    """
    objective = make_objective(task.objective)
    work = QUICK if task.time_limit_s is None else min(QUICK, int(PER_SECOND * task.time_limit_s))
    io = sum(
        weight * lower_bound(network, memory, work).total
        for weight, _, _, memory in (term.within(task) for term in objective.io)
    )
    return objective.runs * int((network.in_degree > 0).sum()) + io
