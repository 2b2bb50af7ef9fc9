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
from cython_ext.edges.intervals import grouped
from reorder.search.budget import Best
from reorder.search.intervals import Items
from reorder.search.spectrum import places

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt8Array = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]

FINE = float(1 << 36)  # steps of time in a strip
KNOTS = 13  # of the curve that makes places evenly dense
KEPT = 1 << 26  # connections in kept orders of groups
MOST_DEPTHS, MOST_RANGES = 64, 400  # of networks whose depths are fused in part; of their ranges, about
HOPELESS = 1.02  # a range that costs so many times its parts is not made longer
WIDER = (1.15, 1.33)  # strips of the best plan for a search to start from, whose slots are fewer
CHEAPEST = 4  # plans that are counted as a whole
EARLY = (0.0, 1.0, 0.5)
SLANTS = (0.0, 1 / 16, 1 / 4)
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
    wait for nothing, and would all be complete at once.
    """

    first: int
    last: int
    strips: int = 1
    across: int = 1
    early: float = 0.0
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

    def outputs(self, last: int) -> UInt8Array:
        """Return uint8[N]: what a group up to this depth has to leave behind, outputs and values needed later."""
        network = self.items.network
        needed = network.is_output.copy()
        needed[self.items.sources[self.feeds_to > last]] = True
        return needed.astype(np.uint8)

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


def _widths(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield a group in narrower strips, also as one depth more takes room, in wider ones, and the other way."""
    strips, depths = group.strips, group.last - group.first + 1
    for other in dict.fromkeys((2 * strips, strips + -(-strips // depths), strips + 1, strips - 1, strips // 2)):
        if other >= 1:
            yield replace(group, strips=other)
    yield replace(group, early=0.0 if group.early else 1.0)


def _sweeps(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield other ways to sweep a group."""
    for strips in (group.strips - 1, group.strips + 1, group.strips + 2):
        if strips >= 1:
            yield replace(group, strips=strips)
    for early, late, across in itertools.product(EARLY, (False, True), (0, 1)):
        yield replace(group, early=early, late=late, across=across)
    for slant in SLANTS:
        yield replace(group, slant=slant)


def _wider(group: DepthGroup, factor: float, slant: float) -> DepthGroup:
    """Return a group in strips so many times as wide, with this slant if it has none."""
    return replace(group, strips=max(1, round(group.strips / factor)), slant=group.slant or slant)


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
    """Finds out which depths to fuse and how to sweep each group, and changes the best plan by exact counts."""

    def __init__(self, strips: Strips) -> None:
        self.strips = strips
        self.values: dict[Plan, float] = {}
        self.plan: Plan = ()
        self.judged = False  # whether the plan of single depths is among the values
        self._parts: dict[DepthGroup, float] = {}

    def orders(self, count: int) -> list[Int64Array]:
        """Return the orders int64[W] of the best plans, no two of which have the same groups and strips."""
        chosen: dict[tuple[tuple[int, int], ...], Plan] = {}
        for plan in sorted(self.values, key=self.values.__getitem__):
            chosen.setdefault(tuple((group.last, group.strips) for group in plan), plan)
        return [self.strips.edges(plan) for plan in list(chosen.values())[:count]]

    def fused(self, best: Best, limit: Limit) -> None:
        """Find which depths to fuse: the ranges of neighbouring depths that together cost least.

        A group alone costs what it does in a plan, but for the values that fast memory keeps across its ends. So each
        range is looked at once by its own count, not in every plan; longer ones begin with the strips of their parts,
        and those that cost more than their parts are not made longer. How a group is swept besides is looked for in the
        groups of the best plan, until that stays.
        """
        deepest = self.strips.deepest
        whole = DepthGroup(1, deepest)
        lates = (False,) if best.task.sees_future else (False, True)
        for late, slant, early in itertools.product(lates, SLANTS[:2], EARLY):
            self._value((replace(whole, early=early, slant=slant, late=late),), best, limit)
        ranges: dict[tuple[int, int], DepthGroup] = {}
        for depths in range(1, deepest + 1):
            if depths * deepest > (MOST_RANGES if depths > 1 else MOST_DEPTHS):
                break
            for first in range(1, deepest - depths + 2):
                if limit(len(self.values)):
                    return
                last = first + depths - 1
                beside = [ranges.get(part) for part in ((first, last - 1), (first + 1, last), (first - 1, last - 1))]
                seeds = [replace(part, first=first, last=last) for part in beside if part is not None]
                if depths == 1:
                    seeds += [DepthGroup(first, last, early=early) for early in EARLY[:2]]
                if seeds:
                    found = self._climb(seeds, best, _widths, limit)
                    if self._part(found, best) < HOPELESS * self._least_split(ranges, first, last, best):
                        ranges[first, last] = found
            self._value(self._cheapest(ranges, best)[0], best, limit)
            self.judged = True
        refined: set[tuple[int, int]] = set()
        while ranges and not limit(len(self.values)):
            plans = self._cheapest(ranges, best)
            for plan in plans:
                self._value(plan, best, limit)
            new = [group for group in plans[0] if (group.first, group.last) not in refined]
            if not new:
                break
            for group in new:
                refined.add((group.first, group.last))
                ranges[group.first, group.last] = self._climb([group], best, _sweeps, limit)
        for wider, slant in itertools.product(WIDER, SLANTS[:2]) if self.judged else ():
            self._value(tuple(_wider(group, wider, slant) for group in self.plan), best, limit)

    def _least_split(self, ranges: dict[tuple[int, int], DepthGroup], first: int, last: int, best: Best) -> float:
        """Return the least value of a range cut in two known ones; infinite if there are none."""
        cuts = [((first, k), (k + 1, last)) for k in range(first, last)]
        known = [(ranges[one], ranges[two]) for one, two in cuts if one in ranges and two in ranges]
        return min((self._part(one, best) + self._part(two, best) for one, two in known), default=np.inf)

    def _cheapest(self, ranges: dict[tuple[int, int], DepthGroup], best: Best) -> list[Plan]:
        """Return the plans of known ranges that cost least by their groups' own counts, the best first."""
        until: list[list[tuple[float, Plan]]] = [[(0.0, ())]]  # the best ones up to each depth
        for last in range(1, self.strips.deepest + 1):
            ways = [
                (value + self._part(ranges[first, last], best), (*plan, ranges[first, last]))
                for first in range(1, last + 1)
                if (first, last) in ranges
                for value, plan in until[first - 1]
            ]
            until.append(sorted(ways, key=lambda way: way[0])[:CHEAPEST])
        return [plan for _, plan in until[-1]]

    def _climb(
        self, seeds: list[DepthGroup], best: Best, near: Callable[[DepthGroup], Iterator[DepthGroup]], limit: Limit
    ) -> DepthGroup:
        """Return the best sweep of a group by its own count: from the best of some, step by step while that pays."""
        found = min(dict.fromkeys(seeds), key=lambda group: self._part(group, best))
        improved = True
        while improved and not limit(len(self.values)):
            improved = False
            for group in near(found):
                if self._part(group, best) < self._part(found, best):
                    found, improved = group, True
                    break
        return found

    def _part(self, group: DepthGroup, best: Best) -> float:
        """Return the objective of a group alone: what feeds it is read, what others need of it is written."""
        if group not in self._parts:
            edges = self.strips.items.edges[self.strips.places(group)]
            self._parts[group] = best.score.of_part(edges, self.strips.outputs(group.last))
        return self._parts[group]

    def walk(self, best: Best, limit: Limit) -> None:
        """Find what to fuse, then change one group of the best plan at a time for as long as that pays."""
        self.fused(best, limit)
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
