"""Plans of what to fuse: groups of neighbouring depths, one after another, each in strips of its own.

Few depths in wide strips cost what lies between groups, many depths in narrow strips what lies between strips: which is
best depends on the size of fast memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from reorder.edges.search.budget import Best
from reorder.edges.search.edge_moves import applies, horizons
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import neuron_coordinates
from reorder.edges.search.strips import CORNERS, DepthGroup, Plan, Strips, linked
from traces.networks.network import Int64Array

MOST_DEPTHS, MOST_RANGES = 64, 400  # of networks whose depths are fused in part; of their ranges, about
EXTENDED_UP_TO = 1.1  # a range that leaves so many times what its parts leave above its bound is not made longer
WIDER = (1.15, 1.33)  # strips of the best plan for a search to start from, whose slots are fewer
CHEAPEST = 4  # plans that are counted as a whole
NARROW = (4, 8, 16)  # strips of a single depth to begin with, besides one: narrow ones may be best where a few are not
LINKED = 2  # plans that are begun in every corner
EARLY = (0.0, 1.0, 0.5)
SLANTS = (0.0, 1 / 16, 1 / 4)
# Of a first strip that is wider: steps, the first of single depths, twice as much of longer groups; and the most.
LEAD, MOST_LEAD = 0.25, 1.0

# Above so many connections a second is enough for some tens of counts of single depths: first only one sweep of all
# depths is tried, and strips of half and of twice the number, from those of the depth before.
LARGE = 1 << 18

Limit = Callable[[int], bool]  # whether so many plans are enough, or time is up


def _widths(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield a group in narrower strips, also as one depth more takes room, in wider ones, and the other way."""
    strips, depths = group.strips, group.last - group.first + 1
    for other in dict.fromkeys((2 * strips, strips + -(-strips // depths), strips + 1, strips - 1, strips // 2)):
        if other >= 1:
            yield replace(group, strips=other)
    yield replace(group, early=0.0 if group.early else 1.0)


def _halves(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield a group in twice as many strips, and in half as many."""
    for strips in (2 * group.strips, group.strips // 2):
        if strips >= 1:
            yield replace(group, strips=strips)


def _sweeps(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield other ways to sweep a group."""
    for strips in (group.strips - 1, group.strips + 1, group.strips + 2):
        if strips >= 1:
            yield replace(group, strips=strips)
    yield replace(group, across=1 - group.across)
    for early, late in itertools.product(EARLY, (False, True)):
        yield replace(group, early=early, late=late)
    for slant in SLANTS:
        yield replace(group, slant=slant)
    yield replace(group, turns=not group.turns)
    for lead in (group.lead + LEAD, group.lead - LEAD):  # a wider and a narrower first strip
        if group.strips > 1 and 0 <= lead <= MOST_LEAD:
            yield replace(group, lead=lead)


def _refreshed(group: DepthGroup) -> Iterator[DepthGroup]:
    """Yield other ways to sweep a group under LRU: with another horizon, first in wider strips, which now fit."""
    if group.horizon:
        yield replace(group, strips=max(1, round(group.strips / WIDER[0])))
        for horizon in (2 * group.horizon, group.horizon // 2):
            yield replace(group, horizon=horizon)
    yield from _sweeps(group)


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
        self.has_single_depths = False  # whether the plan of single depths is among the values
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
        large = len(self.strips.items.edges) > LARGE
        ages = applies(best)
        for late, slant, early in itertools.islice(itertools.product(lates, SLANTS[:2], EARLY), 1 if large else None):
            self._value((replace(whole, early=early, slant=slant, late=late),), best, limit)
        ranges: dict[tuple[int, int], DepthGroup] = {}
        for depths in range(1, deepest + 1):
            if depths * deepest > (MOST_RANGES if depths > 1 else MOST_DEPTHS):
                break
            for first in range(1, deepest - depths + 2):
                if limit(len(self.values)) and not (large and depths == 1):
                    return
                last = first + depths - 1
                shorter = [ranges.get(part) for part in ((first, last - 1), (first + 1, last), (first - 1, last - 1))]
                seeds = [replace(part, first=first, last=last, lead=2 * LEAD) for part in shorter if part is not None]
                if depths == 1 and not large:
                    seeds += [DepthGroup(first, last, early=early, turns=True) for early in EARLY[:2]]
                if depths == 1 and not (large and seeds):
                    seeds += [DepthGroup(first, last, strips, turns=True, lead=LEAD) for strips in NARROW]
                if seeds:
                    least = self.strips.least(first, last)
                    near = _halves if large and depths == 1 else _widths
                    sweep = self._climb(seeds, best, near, limit, least)
                    over = self._part(sweep, best) - least
                    if over < EXTENDED_UP_TO * (self._least_split(ranges, first, last, best) - least):
                        ranges[first, last] = sweep
            of_singles = large and depths == 1  # one count a depth and one of all: else nothing is known of any plan
            single = linked(self._cheapest(ranges, best)[0], CORNERS[0])
            self._value(single, best, (lambda tried: False) if of_singles else limit)
            self.has_single_depths = True
        for corner in CORNERS[1:] if self.has_single_depths else ():
            self._value(linked(self.plan, corner), best, limit)
        if ages and self.has_single_depths:
            for group in self._refreshed_plan(best, limit):
                ranges[group.first, group.last] = group
        refined: set[tuple[int, int]] = set()
        while ranges and not limit(len(self.values)):
            plans = self._cheapest(ranges, best)
            for plan in plans:
                self._value(linked(plan, self.plan[0].back), best, limit)
            of_best = (replace(group, back=CORNERS[0]) for group in self.plan if ages)
            ends = {(group.first, group.last): group for group in (*of_best, *plans[0])}
            new = [group for of, group in ends.items() if of not in refined]
            if not new:
                break
            if ages:
                new.sort(key=lambda group: self.strips.least(group.first, group.last) - self._part(group, best))
            for group in new:
                refined.add((group.first, group.last))
                ranges[group.first, group.last] = self._climb([group], best, _refreshed if ages else _sweeps, limit)
        if not self.has_single_depths:
            return
        for plan in sorted(self.values, key=self.values.__getitem__)[:LINKED]:
            for corner in CORNERS:
                self._value(linked(plan, corner), best, limit)
        for wider, slant in itertools.product(WIDER, SLANTS[:2]):
            plan = tuple(_wider(group, wider, slant) for group in self.plan)
            self._value(linked(plan, plan[0].back), best, limit)

    def _refreshed_plan(self, best: Best, limit: Limit) -> Plan:
        """Return the groups of the best plan after those with horizons, and then in wider strips, have been tried."""
        plain = self.plan
        for horizon in horizons(self.strips.items.network, self.strips.memory):
            plan = tuple(replace(group, horizon=horizon) for group in plain)
            self._value(linked(plan, plain[0].back), best, limit)
        for wider in WIDER:
            if self.plan[0].horizon:
                plan = tuple(_wider(group, wider, 0.0) for group in self.plan)
                self._value(linked(plan, plan[0].back), best, limit)
        return tuple(replace(group, back=CORNERS[0]) for group in self.plan)

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
        self, seeds: list[DepthGroup], best: Best, near: Callable[[DepthGroup], Iterator[DepthGroup]], limit: Limit,
        least: float = -np.inf,
    ) -> DepthGroup:  # fmt: skip
        """Return the best sweep of a group by its own count: from the best of some, step by step while that pays.

        least: what no sweep of it goes below.
        """
        current, improved = seeds[0], True
        for group in seeds[1:]:
            if self._part(current, best) <= least:
                break
            current = min(current, group, key=lambda group: self._part(group, best))
        while improved and self._part(current, best) > least and not limit(len(self.values)):
            improved = False
            for group in near(current):
                if self._part(group, best) < self._part(current, best):
                    current, improved = group, True
                    break
        return current

    def _part(self, group: DepthGroup, best: Best) -> float:
        """Return the objective of a group alone: what feeds it is read, what others need of it is written."""
        if group not in self._parts:
            self._parts[group] = best.score.of_part(*self.strips.ends(group), self.strips.outputs(group.last))
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
                    self._value(linked(other, other[0].back), best, limit)
                k += self.plan == plan or k + 1 >= len(self.plan)
            improved = self.values[self.plan] < before

    def _value(self, plan: Plan, best: Best, limit: Limit) -> None:
        """Note the objective of a plan, offered to the best, unless the limit is reached."""
        if plan in self.values or limit(len(self.values)):
            return
        best.work += 1
        self.values[plan] = best.offer(self.strips.edges(plan), way="strips", groups=len(plan))
        if not self.plan or self.values[plan] < self.values[self.plan]:
            self.plan = plan


def plan_search(items: Items, memory: int) -> PlanSearch | None:
    """Return the search over the network's plans, kept with the items; None where the network has no locality."""
    positions = neuron_coordinates(items)
    if positions is None:
        return None
    if "plans" not in items.facts:
        items.facts["plans"] = PlanSearch(Strips(items, positions, memory))
    kept: PlanSearch = items.facts["plans"]
    return kept
