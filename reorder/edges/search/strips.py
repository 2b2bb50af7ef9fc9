"""Groups of neighbouring depths, each swept strip by strip along the network's coordinates.

Inside a group nothing is spilled but what two strips share; between groups everything is. Strips lean with depth: a
neuron belongs to the last strip that it depends on, so nothing is computed twice and no strip waits for a later one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cython_ext.edges.geometry import latest_of_sources, streamed
from cython_ext.edges.intervals import grouped
from cython_ext.residency.recency import refreshed
from reorder.edges.search.intervals import Int32Array, Items
from traces.networks.network import Int64Array

UInt8Array = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]

FINE = float(1 << 36)  # steps of time in a strip
KNOTS = 13  # of the curve that makes coordinates evenly dense
CACHED_CONNECTIONS = 1 << 26  # connections in kept orders of groups
# Corners of the picture: which coordinates are at their ends.
CORNERS = ((False, False), (False, True), (True, False), (True, True))
# Rows of a picture: the fewest, gaps between them against the mean gap, gaps inside them that are none.
FEWEST_ROWS, WIDE, AS_WIDE = 4, 3.0, 0.7


@dataclass(frozen=True)
class DepthGroup:
    """Depths first to last, swept in `strips` strips of equal size.

    across: which coordinate cuts the strips; the other one is swept along. early: 0: targets one after another, each
    when all that it needs is there; 1: sources one after another, each used up when it comes; between: a target begins
    so early, as a share of the time in which its sources of this strip come by, uses those that are there, and each of
    the others as it comes. Then sources stay for a part of that time and targets for the rest, so under round robin,
    where nothing stays for longer than M - 1 others come, twice the time fits. slant: of the front
    of the sweep, as a share of the length for one width of a strip. late: no item is complete sooner after its own
    coordinate has come by than most of its depth are, as if the picture went on beyond its edges: at the edges items
    wait for nothing, and would all be complete at once. turns: every other strip is swept the other way, so that it
    begins beside the end of the one before. back: which coordinates (of both) are walked from their ends. lead: how
    much wider than the others the first strip is, as a share of one; the last one is as much narrower. Nothing that
    lies before the first one has to stay or to be read again, and it ends sooner at each depth, as strips lean.
    horizon: how many connections ahead one is looked for to keep a value that LRU would lose (`refreshed`); 0: none.
    """

    first: int
    last: int
    strips: int = 1
    across: int = 1
    early: float = 0.0
    slant: float = 0.0
    late: bool = False
    turns: bool = False
    back: tuple[bool, bool] = CORNERS[0]
    lead: float = 0.0
    horizon: int = 0


Plan = tuple[DepthGroup, ...]


@dataclass(frozen=True)
class _Range:
    """Items low to high - 1, of some depths, and the sources that take part there (`used`, their `coordinate`).

    made: which of `used` are made by these items, and made_by: by which.
    """

    low: int
    high: int
    used: Int64Array
    coordinate: FloatArray
    made: Int64Array
    made_by: Int32Array


class Strips:
    """Orders of one network by plans over its coordinates (float64[N, 2]), for a memory of M values."""

    def __init__(self, items: Items, positions: FloatArray, memory: int) -> None:
        self.memory = memory
        self.items = items
        network = items.network
        self.depth: Int64Array = network.depth[items.items]
        self.deepest = int(self.depth[-1])
        self.coordinate = np.zeros((2, network.n_neurons))  # of each neuron within its depth, from 0 to 1
        touched = np.flatnonzero(network.touched)
        by_depth = touched[np.argsort(network.depth[touched], kind="stable")]
        ends = np.flatnonzero(np.diff(network.depth[by_depth], append=-1)) + 1
        knots = np.linspace(0, 1, KNOTS)
        for neurons in np.split(by_depth, ends[:-1]):
            for k in range(2):  # what lies beside each other stays together, which ranks would pull apart
                here = positions[neurons, k]
                self.coordinate[k, neurons] = on_rows(np.interp(here, np.quantile(here, knots), knots))
        of_source = network.depth[items.sources]
        start, target = items.by_source
        self.feeds_from, self.feeds_to = of_source, np.maximum.reduceat(self.depth[target], start[:-1])
        # ends of `items.edges`
        self._sources, self._targets = (
            ends[items.edges].astype(np.int32) for ends in (network.sources, network.targets)
        )
        self._made: dict[DepthGroup, Int32Array] = {}
        self._kept = 0
        self._ranges: dict[tuple[int, int], _Range] = {}

    def outputs(self, last: int) -> UInt8Array:
        """Return uint8[N]: what a group up to this depth has to leave behind, outputs and values needed later."""
        network = self.items.network
        needed = network.is_output.copy()
        needed[self.items.sources[self.feeds_to > last]] = True
        return needed.astype(np.uint8)

    def least(self, first: int, last: int) -> int:
        """Return the I/Os of a group alone that no sweep avoids: connections, each value once, what is left behind."""
        low, high = np.searchsorted(self.depth, (first, last + 1)).tolist()
        outside = (self.feeds_from < first) & (self.feeds_to >= first)
        connections = int(self.items.start[high] - self.items.start[low])
        left_behind = int(self.outputs(last)[self.items.items[low:high]].sum())
        return connections + int(high) - int(low) + int(outside.sum()) + left_behind

    def ends(self, group: DepthGroup) -> tuple[Int32Array, Int32Array]:
        """Return the sources and the targets of the connections of a group, in its order."""
        indices = self.indices(group)
        return self._sources[indices], self._targets[indices]

    def edges(self, plan: Plan) -> Int64Array:
        """Return the order int64[W] of a plan."""
        order: Int64Array = self.items.edges[np.concatenate([self.indices(group) for group in plan])]
        return order

    def indices(self, group: DepthGroup) -> Int32Array:
        """Return the order of the connections into the items of a group, as indices in `items.edges`. Kept."""
        if group not in self._made:
            if self._kept > CACHED_CONNECTIONS:
                self._made.clear()
                self._kept = 0
            if group.horizon:
                indices = self.indices(replace(group, horizon=0))
                ends = self._sources[indices], self._targets[indices]
                indices = indices[refreshed(*ends, self.items.network.n_neurons, self.memory, group.horizon)]
            else:
                indices = self._indices(group)
            self._made[group] = indices
            self._kept += len(self._made[group])
        return self._made[group]

    def _range(self, first: int, last: int) -> _Range:
        """Return what takes part in the depths first to last. Kept."""
        if (first, last) not in self._ranges:
            items = self.items
            low, high = np.searchsorted(self.depth, (first, last + 1)).tolist()
            used = np.flatnonzero((self.feeds_from < last) & (self.feeds_to >= first))
            made = items.item[used]
            made[made >= high] = -1
            inside, coordinate = np.flatnonzero(made >= low), self.coordinate[:, items.sources[used]]
            self._ranges[first, last] = _Range(low, high, used, coordinate, inside, made[inside] - low)
        return self._ranges[first, last]

    def _times(self, group: DepthGroup, part: _Range) -> tuple[Int64Array, Int64Array]:
        """Return when sources come by (int64[m], of those that take part), and when the items are complete."""
        items = self.items
        time = np.zeros(len(items.sources), np.int64)
        time[part.used] = _at(group, part.coordinate)
        if not group.late:
            latest = latest_of_sources(items.start, items.source, items.item, time, part.low, part.high)
            time[part.used[part.made]] = latest[part.made_by]
            return time, latest
        complete = np.empty(part.high - part.low, np.int64)
        own = _at(group, self.coordinate[:, items.items[part.low : part.high]])
        depths = np.arange(group.first, group.last + 2)
        for low, high in itertools.pairwise(np.searchsorted(self.depth, depths).tolist()):
            latest = latest_of_sources(items.start, items.source, items.item, time, low, high)
            here = slice(low - part.low, high - part.low)
            waits = np.median(latest - own[here]).astype(np.int64)
            complete[here] = np.maximum(latest, own[here] + waits)
            source = items.own[low:high]
            time[source[source >= 0]] = complete[here][source >= 0]
        return time, complete

    def _indices(self, group: DepthGroup) -> Int32Array:
        items = self.items
        part = self._range(group.first, group.last)
        low, high = part.low, part.high
        when, latest = self._times(group, part)
        # items are numbered by depth, and so are sources: stable sorts put what is due at once in order of depth
        order = part.used[np.argsort(when[part.used], kind="stable")].astype(np.int32)
        start, target = items.by_source
        if group.early == 1:
            return streamed(order, start, target, items.in_sources, low, high)
        if group.early:
            return self._between(group, part, when, latest)
        turn = np.argsort(latest, kind="stable")
        size = np.diff(items.start[low : high + 1])[turn]
        first = np.empty(high - low, np.int64)
        first[turn] = np.cumsum(size) - size
        return streamed(order, start, target, items.in_sources, low, high, first)

    def _between(self, group: DepthGroup, part: _Range, when: Int64Array, latest: Int64Array) -> Int32Array:
        """Return the positions where targets begin before their last source comes by: at both ends' later event."""
        items, low, high, used = self.items, part.low, part.high, part.used
        first, last = items.start[low], items.start[high]
        source, target = items.source[first:last], items.target[first:last] - low
        earliest = np.minimum.reduceat(when[source], items.start[low:high] - first)
        strip = latest - latest % int(FINE)
        begin = latest - (group.early * (latest - np.maximum(earliest, strip))).astype(np.int64)
        # events by time: at equal times by depth, there first the items that begin, then the sources that come by
        depth = np.concatenate((2 * self.depth[low:high], 2 * self.feeds_from[used] + 1))
        events = np.argsort(depth, kind="stable")
        events = events[np.argsort(np.concatenate((begin, when[used]))[events], kind="stable")]
        rank = np.empty(len(events), np.int32)
        rank[events] = np.arange(len(events), dtype=np.int32)
        comes = np.zeros(len(when), np.int32)
        comes[used] = rank[high - low :]
        at = np.maximum(comes[source], rank[: high - low][target])
        placed: Int32Array = grouped(at, len(events)) + first
        return placed


def _at(group: DepthGroup, coordinates: FloatArray) -> Int64Array:
    """Return the time int64[n] at which a group comes by coordinates float64[2, n]."""
    across, along = (1 - x if back else x for x, back in zip(coordinates, group.back, strict=True))
    if group.across:
        across, along = along, across
    across = across * group.strips - group.lead
    strip = np.clip(np.floor(across), 0, group.strips - 1)
    if group.turns:
        along = np.where(strip % 2, 1 - along, along)
    along = (along + group.slant * (across - strip + group.lead)) / (1 + group.slant * (1 + group.lead))
    keys: Int64Array = ((strip + along) * FINE).astype(np.int64)
    return keys


def on_rows(coordinate: FloatArray) -> FloatArray:
    """Return coordinates float64[n], each moved to the middle of its row where they lie in rows of equal size.

    Eigenvectors put neurons of one row close to each other, but not at one coordinate, as kept weights differ. Rows are
    there if all gaps between them are wide; their number is the largest of that kind, unless gaps inside are as wide.
    """
    n = len(coordinate)
    order = np.argsort(coordinate, kind="stable")
    gap = np.diff(coordinate[order])
    counts = [rows for rows in range(FEWEST_ROWS, n // FEWEST_ROWS + 1) if n % rows == 0]
    between = {rows: gap[n // rows - 1 :: n // rows][: rows - 1] for rows in counts}
    rows = max((rows for rows in counts if between[rows].min() >= WIDE * gap.mean()), default=1)
    inside = [between[more].mean() for more in counts if more > rows and more % rows == 0]
    if rows == 1 or max(inside, default=0) > AS_WIDE * between[rows].mean():
        return coordinate
    result = np.empty(n)
    result[order] = np.repeat((np.arange(rows) + 0.5) / rows, n // rows)
    return result


def linked(plan: Plan, corner: tuple[bool, bool]) -> Plan:
    """Return a plan whose first group begins in this corner, and each other one where the one before has ended.

    What fast memory holds there is needed at once: up to M - 1 values are neither written nor read again.
    """
    groups, back = [], list(corner)
    for group in plan:
        groups.append(replace(group, back=(back[0], back[1])))
        back[group.across] ^= group.strips > 1
        back[1 - group.across] ^= group.strips % 2 == 1 or not group.turns
    return tuple(groups)
