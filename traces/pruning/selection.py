"""Which connections stay: the best that windows allow, so that every neuron that stays has inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.pruning.windows import Int64Array, pairs_of

Mask = npt.NDArray[np.bool_]
_ROUNDS = 4  # of choosing again among the neurons that stay


class Candidates:
    """The connections allowed, with their scores: layer, target, source (numbered through all layers), one array each.

    block: consecutive outputs that keep the same connections; a candidate then stands for all of them. groups: (kept,
    of): at most `kept` of `of` consecutive inputs of an output, the best ones.
    """

    def __init__(
        self,
        widths: Sequence[int],
        pairs: Sequence[tuple[Int64Array, Int64Array]],
        scores: Sequence[npt.NDArray[np.floating]],
        *,
        block: int = 1,
        groups: tuple[int, int] | None = None,
    ) -> None:
        self.widths, self.block = tuple(widths), block
        first = np.cumsum((0, *widths))
        self.first = first
        parts = []
        for k, ((targets, sources), score) in enumerate(zip(pairs, scores, strict=True)):
            value = score[targets, sources].astype(np.float32)
            if block > 1:
                key, inverse = np.unique(targets // block * widths[k] + sources, return_inverse=True)
                value = np.bincount(inverse, value, len(key)).astype(np.float32)
                targets, sources = key // widths[k] * block, key % widths[k]
            if groups is not None:
                kept = best_of_groups(targets, sources, value, *groups)
                targets, sources, value = targets[kept], sources[kept], value[kept]
            counts = np.minimum(block, widths[k + 1] - targets)
            ends = ((targets + first[k + 1]).astype(np.int32), (sources + first[k]).astype(np.int32))
            parts.append((np.full(len(targets), k, np.int32), *ends, value, counts.astype(np.int32)))
        self.layer, self.target, self.source, self.score, self.count = map(np.concatenate, zip(*parts, strict=True))

    def masks(self, chosen: Int64Array) -> list[Mask]:
        """Return bool[outputs, inputs] of each layer, from the indices of candidates."""
        masks = []
        for k, (a, b) in enumerate(pairs_of(self.widths)):
            pick = chosen[self.layer[chosen] == k]
            mask = np.zeros((b, a), bool)
            for step in range(self.block):
                rows = self.target[pick] - self.first[k + 1] + step
                mask[rows[rows < b], (self.source[pick] - self.first[k])[rows < b]] = True
            masks.append(mask)
        return masks


def best_of_groups(
    targets: Int64Array, sources: Int64Array, scores: npt.NDArray[np.floating], kept: int, of: int
) -> Int64Array:
    """Return the indices of the `kept` best of `of` consecutive sources of each target."""
    group = (targets * ((int(sources.max(initial=0)) // of) + 1)) + sources // of
    order = np.lexsort((-scores, group))
    sorted_groups = group[order]
    start = np.r_[True, sorted_groups[1:] != sorted_groups[:-1]]
    rank = np.arange(len(order)) - np.maximum.accumulate(np.where(start, np.arange(len(order)), 0))
    return np.sort(order[rank < kept])


def choose(candidates: Candidates, connections: int, *, neurons: int | None = None) -> list[Mask]:
    """Return the masks of the best `connections` candidates with which every neuron that stays is computed and used.

    Outputs stay, each with an input. A hidden neuron that would lose all its inputs or all its outputs goes, and its
    connections go to others. neurons: how many may stay in all layers together (inputs without a connection do not
    count); None: as many as do. With blocks the number is that of whole blocks, at most `connections`.
    Raises InputError where so few connections cannot feed the outputs, or so many are not allowed.
    """
    return candidates.masks(_Choice(candidates, connections, neurons).chosen())


class _Choice:
    """One run of `choose`. A group is what stays or goes together: an input, or a block of outputs of a layer."""

    def __init__(self, candidates: Candidates, connections: int, neurons: int | None) -> None:
        c, self.c, self.n, self.neurons = candidates, candidates, connections, neurons
        total = int(c.first[-1])
        group = np.arange(total, dtype=np.int32)
        for k in range(1, len(c.widths)):
            local = np.arange(c.widths[k])
            group[c.first[k] : c.first[k + 1]] = c.first[k] + local // c.block * c.block
        self.group, self.hidden = group, np.zeros(total, bool)
        self.hidden[c.first[1] : c.first[-2]] = True
        self.outputs = slice(int(c.first[-2]), total)
        self.from_group = group[c.source]

    def viable(self, alive: Mask) -> Mask:
        """Return the candidates between neurons that may stay: those of `alive` that can still be fed and used."""
        alive = alive.copy()
        while True:
            usable: Mask = alive[self.c.target] & alive[self.from_group]
            fed, used = (self._any(ends[usable]) for ends in (self.c.target, self.c.source))
            lost = self.hidden & alive & ~(fed[self.group] & used)
            lost = self.hidden & alive & self._any(self.group[lost])[self.group]
            if not lost.any():
                return usable
            alive[lost] = False

    def _any(self, ids: npt.NDArray[np.integer[Any]]) -> Mask:
        return np.bincount(ids, minlength=len(self.group)) > 0

    def best(self, usable: Mask, need: int) -> Int64Array:
        """Return the best usable candidates, as many as make up `need` connections."""
        at = np.flatnonzero(usable)
        if self.c.block == 1:
            return at[np.argpartition(-self.c.score[at], need - 1)[:need]] if 0 < need < len(at) else at[: max(0, need)]
        at = at[np.argsort(-self.c.score[at] / self.c.count[at], kind="stable")]
        return at[np.cumsum(self.c.count[at]) <= need]

    def backbone(self, usable: Mask) -> Int64Array:
        """Return the best candidate into each block and out of each hidden neuron among usable ones."""
        at = np.flatnonzero(usable)
        at = at[np.argsort(-self.c.score[at], kind="stable")]
        into = at[np.unique(self.c.target[at], return_index=True)[1]]
        # A neuron that a connection into another one uses already needs no other.
        out = at[self.hidden[self.c.source[at]] & ~self._any(self.c.source[into])[self.c.source[at]]]
        return np.union1d(into, out[np.unique(self.c.source[out], return_index=True)[1]])

    def chosen(self) -> Int64Array:
        c, alive = self.c, np.ones(len(self.group), bool)
        usable = self.viable(alive)
        room = int(c.count[usable].sum())
        if room < self.n:
            raise InputError(f"{self.n} connections are more than the {room} that these windows and groups allow")
        limit = self.neurons or len(self.group)
        for _ in range(_ROUNDS):  # those that the best connections leave without inputs or outputs make room
            kept = self.best(usable, self.n)
            fed, used = self._any(c.target[kept]), self._any(c.source[kept])
            stay = fed[self.group] & self._any(self.from_group[kept])[self.group]
            stay[: c.first[1]] = used[: c.first[1]]
            whole = bool(fed[self.group[self.outputs]].all())
            stay[self.outputs] = True
            if stay.sum() > limit:
                stay &= self.strongest(self.worth(kept), limit)
            if np.array_equal(stay, alive) and whole and self.c.block == 1:
                return kept
            if np.array_equal(stay, alive):
                break
            smaller = self.viable(stay)
            fed = self._any(c.target[smaller])
            if c.count[smaller].sum() < self.n or not fed[self.group[self.outputs]].all():
                break
            alive, usable = stay, smaller
        must = self.backbone(usable)
        if (least := int(c.count[must].sum())) > self.n:
            usable, must, least = self.fewer(usable)
        rest = usable.copy()
        rest[must] = False
        return np.concatenate([must, self.best(rest, self.n - least)])

    def fewer(self, usable: Mask) -> tuple[Mask, Int64Array, int]:
        """Return usable candidates, their backbone and its size for the most neurons whose backbone is small enough."""
        cover, worth = self.cover(usable), self.worth(np.flatnonzero(usable))
        most = int(np.count_nonzero(worth))
        while True:
            tried = self.viable(self.strongest(worth, most) | cover)
            must = self.backbone(tried)
            least, room = int(self.c.count[must].sum()), int(self.c.count[tried].sum())
            if least <= self.n <= room:
                return tried, must, least
            if most <= 1:
                near = f"{least} do" if least > self.n else f"at most {room} do between the neurons they feed"
                raise InputError(f"{self.n} connections cannot feed the {self.c.widths[-1]} outputs: {near}")
            most = most * 7 // 8

    def cover(self, usable: Mask) -> Mask:
        """Return a few neurons that feed every output: from the last layer back, those that feed the most."""
        c, alive = self.c, np.zeros(len(self.group), bool)
        alive[self.outputs] = True
        for k in range(len(c.widths) - 2, -1, -1):
            at = np.flatnonzero(usable & (c.layer == k) & alive[c.target])
            source, target = self.from_group[at], c.target[at]
            while len(target):
                best = np.argmax(np.bincount(source))
                alive |= self.group == best
                left = ~self._any(target[source == best])[target]
                source, target = source[left], target[left]
        return alive

    def worth(self, kept: Int64Array) -> npt.NDArray[np.float64]:
        """Return the sum of the scores at each neuron (its block's), 0 without a candidate; outputs have the most."""
        total = np.bincount(self.c.target[kept], self.c.score[kept] + 1e-30, len(self.group))
        total += np.bincount(self.from_group[kept], self.c.score[kept] + 1e-30, len(self.group))
        worth = total.astype(np.float64)[self.group]
        worth[self.outputs] = np.inf
        return worth

    def strongest(self, worth: npt.NDArray[np.float64], most: int) -> Mask:
        """Return which neurons stay if `most` may: outputs, then those worth most; blocks stay or go as a whole."""
        stay = np.zeros(len(worth), bool)
        stay[np.argsort(-worth, kind="stable")[:most]] = True
        stay &= ~self._any(self.group[~stay & (worth > 0)])[self.group]
        stay[self.outputs] = True
        return stay
