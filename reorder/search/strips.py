"""Plans of what to fuse: groups of neighbouring depths, each swept strip by strip along the network's coordinates.

Inside a group nothing is spilled but what two strips share; between groups everything is. So few depths in wide strips
cost what lies between groups, many depths in narrow strips what lies between strips: which is best depends on the size
of fast memory. Strips lean with depth: a neuron belongs to the last strip that it depends on, so nothing is computed
twice and no strip waits for a later one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cython_ext.edges.geometry import latest_of_sources, streamed
from reorder.search.budget import Best
from reorder.search.intervals import Items
from reorder.search.spectrum import places

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

FINE = float(1 << 36)  # steps of time in a strip
KNOTS = 13  # of the curve that makes places evenly dense
KEPT = 1 << 26  # connections in kept orders of groups
SIZES, WIDTHS, REFINED = (
    (1, 2, 3, 4, 6, 8, 12),
    (1, 2, 3, 4, 6, 8, 12, 16),
    3,
)  # depths of a group and strips that are tried first
PATIENCE = 2  # widths in a row that found nothing better, from which on only the best size is tried
SLANTS = (0.0, 1 / 16, 1 / 4)
MOST_GROUPS = 64
# Rows of a picture: the fewest, gaps between them against the mean gap, gaps inside them that are none.
FEWEST_ROWS, WIDE, AS_WIDE = 4, 3.0, 0.7


@dataclass(frozen=True)
class DepthGroup:
    """Depths first to last, swept in `strips` strips of equal size.

    across: which coordinate cuts the strips; the other one is swept along. by_target: targets one after another, each
    when all that it needs is there; else sources one after another, each used up when it comes. slant: of the front
    of the sweep, as a share of the length for one width of a strip. late: no item is complete sooner after its own
    place has come by than most items of its depth are, as if the picture went on beyond its edges: at the edges items
    wait for nothing, and would all be complete at once.
    """

    first: int
    last: int
    strips: int = 1
    across: int = 1
    by_target: bool = True
    slant: float = 0.0
    late: bool = False


Plan = tuple[DepthGroup, ...]
Limit = Callable[[int], bool]  # whether so many plans are enough, or time is up


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
        across = self.place[group.across] * group.strips
        strip = np.minimum(np.floor(across), group.strips - 1)
        along = (self.place[1 - group.across] + group.slant * (across - strip)) / (1 + group.slant)
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
        if not group.by_target:
            return streamed(order, start, target, items.in_sources, low, high)
        turn = np.argsort(latest, kind="stable")
        size = np.diff(items.start[low : high + 1])[turn]
        first = np.empty(high - low, np.int64)
        first[turn] = np.cumsum(size) - size
        return streamed(order, start, target, items.in_sources, low, high, first)


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


def _uniform(deepest: int, depths: int, group: DepthGroup) -> Plan:
    """Return the plan of groups of so many depths that are all like `group`."""
    return tuple(
        replace(group, first=first, last=min(deepest, first + depths - 1)) for first in range(1, deepest + 1, depths)
    )


def _sweeps(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield other ways to sweep a group."""
    for strips in (group.strips - 1, group.strips + 1, group.strips + 2):
        if strips >= 1:
            yield replace(group, strips=strips)
    yield replace(group, by_target=not group.by_target)
    yield replace(group, late=not group.late)
    yield replace(group, across=1 - group.across)
    for slant in SLANTS:
        if slant != group.slant:
            yield replace(group, slant=slant)


def changes(plan: Plan, k: int) -> Iterator[Plan]:
    """Yield the plans that differ in the k-th group: in how it is swept, in where it ends, split, or merged."""
    group, before, after = plan[k], plan[:k], plan[k + 1 :]
    for other in _sweeps(group):
        yield (*before, other, *after)
    if after:
        other, rest = after[0], after[1:]
        for like in (group, other):
            for strips in {like.strips, like.strips + 1, like.strips * 2}:
                yield (*before, replace(like, first=group.first, last=other.last, strips=strips), *rest)
        for end in (group.last - 1, group.last + 1):
            if group.first <= end < other.last:
                yield (*before, replace(group, last=end), replace(other, first=end + 1), *rest)
    for end in range(group.first, group.last):
        for strips in {group.strips, max(1, group.strips - 1)}:
            one, two = replace(group, last=end, strips=strips), replace(group, first=end + 1, strips=strips)
            yield (*before, one, two, *after)


class PlanSearch:
    """Walks from the best of the plans whose groups are alike to better ones, change by change, by exact counts."""

    def __init__(self, strips: Strips) -> None:
        self.strips = strips
        self.values: dict[Plan, float] = {}
        self.plan: Plan = ()

    def orders(self, count: int) -> list[Int64Array]:
        """Return the orders int64[W] of the best plans, no two of which have the same groups and strips."""
        chosen: dict[tuple[tuple[int, int], ...], Plan] = {}
        for plan in sorted(self.values, key=self.values.__getitem__):
            chosen.setdefault(tuple((group.last, group.strips) for group in plan), plan)
        return [self.strips.edges(plan) for plan in list(chosen.values())[:count]]

    def alike(self, best: Best, limit: Limit) -> None:
        """Try plans whose groups are alike: all sizes and some widths of strips, then what is near the best ones."""
        deepest = self.strips.deepest
        sizes = [deepest, *(size for size in SIZES if size < deepest <= size * MOST_GROUPS)]
        tried: dict[tuple[int, DepthGroup], float] = {}

        def value(depths: int, group: DepthGroup) -> float:
            tried[depths, group] = self._value(_uniform(deepest, depths, group), best, limit)
            return tried[depths, group]

        worse = 0
        for strips in WIDTHS:
            before = min(tried.values(), default=np.inf)
            for depths in sizes if worse < PATIENCE else (min(tried, key=tried.__getitem__)[0],):
                for by_target in (True, False):
                    value(depths, DepthGroup(1, 1, strips, by_target=by_target))
            worse = 0 if min(tried.values()) < before else worse + 1
        for depths, group in sorted(tried, key=tried.__getitem__)[:REFINED]:
            for change in _sweeps(group):
                value(depths, change)

    def walk(self, best: Best, limit: Limit) -> None:
        """Try plans whose groups are alike, then change one group of the best at a time for as long as that pays."""
        self.alike(best, limit)
        improved = bool(self.plan)
        while improved and not limit(len(self.values)):
            before, k = self.values[self.plan], 0
            while k < len(self.plan) and not limit(len(self.values)):
                plan = self.plan
                for other in changes(plan, k):
                    self._value(other, best, limit)
                k += self.plan == plan or k + 1 >= len(self.plan)
            improved = self.values[self.plan] < before

    def _value(self, plan: Plan, best: Best, limit: Limit) -> float:
        """Return the objective of a plan, offered to the best; infinite once the limit is reached."""
        if plan not in self.values:
            if limit(len(self.values)):
                return np.inf
            best.work += 1
            value = best.offer(self.strips.edges(plan), way="strips", groups=len(plan))
            self.values[plan] = value
            if not self.plan or value < self.values[self.plan]:
                self.plan = plan
        return self.values[plan]


def plan_search(items: Items) -> PlanSearch | None:
    """Return the search over the network's plans, kept with the items; None where the network has no locality."""
    found = places(items)
    if found is None:
        return None
    if "plans" not in items.facts:
        items.facts["plans"] = PlanSearch(Strips(items, found))
    kept: PlanSearch = items.facts["plans"]
    return kept
