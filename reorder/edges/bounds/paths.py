"""Lower bounds on the values that are reloaded, from vertex-disjoint paths (wavefronts: Elango et al. 2014).

Take paths without a common neuron from neurons of one depth to neurons of a later one, and the moment at which the
first of their ends is complete. If the start of a path leads to that end, it has been accessed, and the end of the
path is not complete: on the path lies a value that was accessed and will be again. C values at most are resident, the
complete end among them, so of m such paths, one of them to that end, m - C values are reloaded, and those that are
computed are written before. As much holds at the moment at which the last of the starts is complete, of the paths to
whose ends it leads. Any set of the paths will do: without the k ends that fewest starts lead to, all others keep all
but k of their paths.

Values of separate groups of paths are different ones and add up, each group with its own moment and all of C. So do
those of runs of depths one after the other: at a depth where two meet, a value of the earlier run is not complete, one
of the later run is. Proofs: docs/concepts/bounds.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.edges.matching import largest_matching
from traces.networks.network import Int64Array, Network

Runs = dict[tuple[int, int], int]
"""By first and last depth of a run of them: how much it proves."""
Joined = dict[tuple[int, int], tuple[Int64Array, Int64Array]]
"""By run, int64[groups]: m of the paths for the first of the ends, and m for the last of the starts."""

FEWEST = 3  # paths: with fewer nothing is proved for any memory
LONGEST = 16  # depths of a run
LARGEST = 1 << 24  # pairs of a start and an end that are held
OVERHEAD = 1 << 20  # that a run costs besides: some milliseconds


def reloaded(joined: Joined, slots: int) -> Runs:
    """Return how many values of each run are reloaded, with C slots."""
    return {run: max(int(np.maximum(m - slots, 0).sum()) for m in sides) for run, sides in joined.items()}


def joined_paths(network: Network, work: float) -> Joined:
    """Return how many disjoint paths meet, for runs of depths.

    work: operations that all runs together may take; those that come later are left out.
    """
    depth, n = network.depth, network.n_neurons
    suits = network.touched & ~(network.is_output & (network.out_degree > 0))  # those may owe their write anyway
    neurons = np.flatnonzero(suits)[np.argsort(depth[suits], kind="stable")]
    sizes = np.bincount(depth[suits])
    offset = np.concatenate(([0], np.cumsum(sizes)))
    rank = np.zeros(n, np.int64)  # among those of equal depth
    rank[neurons] = np.arange(len(neurons)) - offset[depth[neurons]]
    by_target = np.lexsort((network.targets, depth[network.targets]))
    source, target = network.sources[by_target], network.targets[by_target]
    edges = np.searchsorted(depth[target], np.arange(len(sizes) + 1)).tolist()
    found: Joined = {}
    for first in np.flatnonzero(sizes >= FEWEST).tolist():
        starts = neurons[offset[first] : offset[first + 1]]
        row_bytes = (len(starts) + 7) // 8
        if len(starts) ** 2 > LARGEST or n * row_bytes > 4 * LARGEST:
            continue
        if (work := work - n * row_bytes) < 0:
            break
        reached = np.zeros((n, row_bytes), np.uint8)  # by neuron, a bit for each of `starts` that leads to it
        reached[starts] = np.packbits(np.eye(len(starts), dtype=bool), axis=1)
        path, end = np.arange(len(starts)), starts
        for last in range(first + 1, min(first + LONGEST, len(sizes))):
            work -= OVERHEAD + 8 * len(path) * len(starts) + (edges[last + 1] - edges[last]) * row_bytes
            if work < 0:
                return found
            s, t = source[edges[last] : edges[last + 1]], target[edges[last] : edges[last + 1]]
            s, t = s[depth[s] >= first], t[depth[s] >= first]
            row = np.flatnonzero(np.diff(t, prepend=-1))
            reached[t[row]] = np.bitwise_or.reduceat(reached[s], row, axis=0)
            on = (depth[s] == last - 1) & suits[s] & suits[t]
            matched = _matched(rank[s[on]], rank[t[on]], rank[end], (int(sizes[last - 1]), int(sizes[last])))
            path, end = path[matched >= 0], neurons[offset[last] :][matched[matched >= 0]]
            if len(path) < FEWEST:
                break
            joined = np.unpackbits(reached[end], axis=1)[:, path].view(bool)
            group = _groups(joined)
            by_end, by_start = (joined.sum(axis=side, dtype=np.int64) for side in (1, 0))
            found[first, last] = _most(by_end, group), _most(by_start, group)
            if len(path) in (by_end.min(), by_start.min()):
                break  # longer runs have no more paths
    return found


def _matched(s: Int64Array, t: Int64Array, end: Int64Array, shape: tuple[int, int]) -> Int64Array:
    """Return to which of the targets each path goes on, -1: to none, by a largest matching of connections s to t.

    end: where the paths are. All are ranks at their depth, of which there are `shape`.
    """
    place = np.full(shape[0], -1)
    place[end] = np.arange(len(end))
    source, target = place[s][place[s] >= 0], t[place[s] >= 0]
    by_source = np.argsort(source, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=len(end)))))
    return largest_matching(start, target[by_source].astype(np.int32), shape[1]).astype(np.int64)


def _groups(joined: npt.NDArray[np.bool_]) -> Int64Array:
    """Return the group of each path, 0, 1, ... joined: whether the start of path k leads to the end of path j."""
    back, group, groups = np.ascontiguousarray(joined.T), np.full(len(joined), -1), 0
    while (left := np.flatnonzero(group < 0)).size:
        reached = left[:1]
        while reached.size:
            group[reached] = groups
            near = joined[reached].any(axis=0) | back[reached].any(axis=0)
            reached = np.flatnonzero(near & (group < 0))
        groups += 1
    return group


def _most(meets: Int64Array, group: Int64Array) -> Int64Array:
    """Return int64[groups]: m, how many paths meet each of some ends, by the best choice of ends in a group.

    meets: int64[ends], paths that lead to each. group: int64[ends], 0, 1, ...
    """
    by_meets = np.lexsort((meets, group))
    first = np.searchsorted(group[by_meets], np.arange(group.max() + 1))
    left_out = np.arange(len(group)) - first[group[by_meets]]
    return np.maximum.reduceat(meets[by_meets] - left_out, first)
