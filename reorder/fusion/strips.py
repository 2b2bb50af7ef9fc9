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
from reorder.search.intervals import Items

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt8Array = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]

FINE = float(1 << 36)  # steps of time in a strip
KNOTS = 13  # of the curve that makes places evenly dense
KEPT = 1 << 26  # connections in kept orders of groups
CORNERS = (
    (False, False),
    (False, True),
    (True, False),
    (True, True),
)  # of the picture: which coordinates are at their ends
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
    place has come by than most items of its depth are, as if the picture went on beyond its edges: at the edges items
    wait for nothing, and would all be complete at once. turns: every other strip is swept the other way, so that it
    begins beside the end of the one before. back: which coordinates (of both) are walked from their ends.
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


Plan = tuple[DepthGroup, ...]


class Strips:
    """Orders of one network by plans over its coordinates (float64[N, 2])."""

    def __init__(self, items: Items, found: FloatArray) -> None:
        self.items = items
        network = items.network
        self.depth: Int64Array = network.depth[items.items]
        self.deepest = int(self.depth[-1])
        self.place = np.zeros((2, network.n_neurons))  # of each neuron within its depth, from 0 to 1
        touched = np.flatnonzero(network.touched)
        by_depth = touched[np.argsort(network.depth[touched], kind="stable")]
        ends = np.flatnonzero(np.diff(network.depth[by_depth], append=-1)) + 1
        knots = np.linspace(0, 1, KNOTS)
        for neurons in np.split(by_depth, ends[:-1]):
            for k in range(2):  # what lies beside each other stays together, which ranks would pull apart
                here = found[neurons, k]
                self.place[k, neurons] = on_rows(np.interp(here, np.quantile(here, knots), knots))
        of_source = network.depth[items.sources]
        start, target = items.by_source
        self.feeds_from, self.feeds_to = of_source, np.maximum.reduceat(self.depth[target], start[:-1])
        self._made: dict[DepthGroup, Int32Array] = {}
        self._kept = 0

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
        return connections + high - low + int(outside.sum()) + int(self.outputs(last)[self.items.items[low:high]].sum())

    def edges(self, plan: Plan) -> Int64Array:
        """Return the order int64[W] of a plan."""
        return self.items.edges[np.concatenate([self.places(group) for group in plan])]

    def places(self, group: DepthGroup) -> Int32Array:
        """Return the order of the connections into the items of a group, as places in `items.edges`. Kept."""
        if group not in self._made:
            if self._kept > KEPT:
                self._made.clear()
                self._kept = 0
            self._made[group] = self._places(group)
            self._kept += len(self._made[group])
        return self._made[group]

    def _times(self, group: DepthGroup, low: int, high: int) -> tuple[Int64Array, Int64Array]:
        """Return when sources come by that feed the group from outside (int64[m]), and when its items are complete."""
        items = self.items
        across, along = (1 - place if back else place for place, back in zip(self.place, group.back, strict=True))
        if group.across:
            across, along = along, across
        across = across * group.strips
        strip = np.minimum(np.floor(across), group.strips - 1)
        if group.turns:
            along = np.where(strip % 2, 1 - along, along)
        along = (along + group.slant * (across - strip)) / (1 + group.slant)
        at = ((strip + along) * FINE).astype(np.int64)
        time = at[items.sources]
        if not group.late:
            return time, latest_of_sources(items.start, items.source, items.item, time, low, high)
        complete = np.empty(high - low, np.int64)
        own = at[items.items[low:high]]
        ends = np.searchsorted(self.depth[low:high], np.arange(group.first, group.last + 2)).tolist()
        for first, last in itertools.pairwise(ends):
            latest = latest_of_sources(items.start, items.source, items.item, time, low + first, low + last)
            waits = np.median(latest - own[first:last]).astype(np.int64)
            complete[first:last] = np.maximum(latest, own[first:last] + waits)
            source = items.own[low + first : low + last]
            time[source[source >= 0]] = complete[first:last][source >= 0]
        return time, complete

    def _places(self, group: DepthGroup) -> Int32Array:
        items = self.items
        low, high = np.searchsorted(self.depth, (group.first, group.last + 1)).tolist()
        when, latest = self._times(group, low, high)
        own = items.own[low:high]
        feeds = own >= 0
        when[own[feeds]] = latest[feeds]
        # items are numbered by depth, and so are sources: stable sorts put what is due at once in order of depth
        used = np.flatnonzero((self.feeds_from < group.last) & (self.feeds_to >= group.first))
        order = used[np.argsort(when[used], kind="stable")].astype(np.int32)
        start, target = items.by_source
        if group.early == 1:
            return streamed(order, start, target, items.in_sources, low, high)
        if group.early:
            return self._between(group, low, high, when, latest)
        turn = np.argsort(latest, kind="stable")
        size = np.diff(items.start[low : high + 1])[turn]
        first = np.empty(high - low, np.int64)
        first[turn] = np.cumsum(size) - size
        return streamed(order, start, target, items.in_sources, low, high, first)

    def _between(self, group: DepthGroup, low: int, high: int, when: Int64Array, latest: Int64Array) -> Int32Array:
        """Return the places where targets begin before their last source comes by: at both ends' later event."""
        items = self.items
        first, last = items.start[low], items.start[high]
        source, target = items.source[first:last], items.target[first:last] - low
        earliest = np.minimum.reduceat(when[source], items.start[low:high] - first)
        strip = latest - latest % int(FINE)
        begin = latest - (group.early * (latest - np.maximum(earliest, strip))).astype(np.int64)
        # events by time: at equal times by depth, there first the items that begin, then the sources that come by
        used = np.flatnonzero((self.feeds_from < group.last) & (self.feeds_to >= group.first))
        depth = np.concatenate((2 * self.depth[low:high], 2 * self.feeds_from[used] + 1))
        events = np.argsort(depth, kind="stable")
        events = events[np.argsort(np.concatenate((begin, when[used]))[events], kind="stable")]
        rank = np.empty(len(events), np.int32)
        rank[events] = np.arange(len(events), dtype=np.int32)
        comes = np.zeros(len(when), np.int32)
        comes[used] = rank[high - low :]
        at = np.maximum(comes[source], rank[: high - low][target])
        return grouped(at, len(events)) + first


def on_rows(place: FloatArray) -> FloatArray:
    """Return places float64[n], each moved to the middle of its row where they lie in rows of equal size.

    Eigenvectors put neurons of one row close to each other, but not at one place, as kept weights differ. Rows are
    there if all gaps between them are wide; their number is the largest of that kind, unless gaps inside are as wide.
    """
    n = len(place)
    order = np.argsort(place, kind="stable")
    gap = np.diff(place[order])
    counts = [rows for rows in range(FEWEST_ROWS, n // FEWEST_ROWS + 1) if n % rows == 0]
    between = {rows: gap[n // rows - 1 :: n // rows][: rows - 1] for rows in counts}
    rows = max((rows for rows in counts if between[rows].min() >= WIDE * gap.mean()), default=1)
    inside = [between[more].mean() for more in counts if more > rows and more % rows == 0]
    if rows == 1 or max(inside, default=0) > AS_WIDE * between[rows].mean():
        return place
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
