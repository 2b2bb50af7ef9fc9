"""Comparing points: what changed, by how much, which counts explain it; and which points are worth having at all."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from edgewatt.results.columns import ColumnTable
from edgewatt.results.record import Record, of_our_shape
from edgewatt.results.record_rows import METRICS, flat, row_of, value_in_words
from edgewatt.results.stored import open_records
from edgewatt.results.swept import Axis, Configs, swept_axes
from traces.base.errors import InputError


def pareto_front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Return the indices of the points that no other point beats or equals in every cost, sorted by the first cost.

    Of several points with equal costs the first is kept. O(n log n) for two costs, O(n^2) otherwise.
    """
    order = sorted(range(len(costs)), key=lambda i: (*costs[i], i))
    front: list[int] = []
    if costs and len(costs[0]) == 2:
        best = float("inf")
        for i in order:
            if costs[i][1] < best:
                best = costs[i][1]
                front.append(i)
        return front
    for i in order:  # whatever dominates i comes before it in this order
        if not any(all(a <= b for a, b in zip(costs[j], costs[i], strict=True)) for j in front):
            front.append(i)
    return front


@dataclass(frozen=True)
class Comparison(Sequence[dict[str, Any]]):
    """The points that two sides have in common, one dict a pair; alone: points (A only, B only) with no counterpart.

    A pair is read from the folders when it is asked for, so that large ones can be gone through in little memory.
    """

    pairs: Sequence[dict[str, Any]]
    alone: tuple[int, int] = (0, 0)

    def __getitem__(self, index: Any) -> Any:
        return self.pairs[index]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def says(self) -> str:
        """Which points were compared, in one sentence."""
        a, b = self.alone
        if not a and not b:
            return f"all {len(self)} points are in both."
        return (
            f"only the {len(self)} points that both have are compared: A has {a} more, B {b}, whose settings the other "
            "does not have."
        )


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Compare two records, or two results folders point by point, and say what changed.

    Points of folders are matched by the part of their configuration that varies inside either; `alone` counts those
    that have no counterpart. Each pair is a dict: `point`, `differs` (configuration values that differ), `changes`
    (metric -> a, b, per cent) and `because` (the counts that explain the change in energy and in time).
    """
    first, second = open_records(a), open_records(b)
    if len(first) == 1 and len(second) == 1:
        return Comparison([_pair(first[0], second[0])])
    sides = _Side(first), _Side(second)
    with of_our_shape(f"a record of {a} or {b}"):
        of_a, of_b = _match(*sides)
    if not of_a:
        raise InputError(f"{a} and {b} have no points in common that could be compared")
    columns = sides[0].columns.only(of_a)
    named = [key for key in _NAMED if len({*columns.values(key)}) > 1]
    with of_our_shape(f"a record of {a}"):
        axes = swept_axes(sides[0].configs.only(of_a))
    pairs = _Pairs(first, second, of_a, of_b, named, axes)
    return Comparison(pairs, (len(first) - len(pairs), len(second) - len(pairs)))


class _Side:
    """What matching needs of one side's records."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.configs, self.columns = Configs(), ColumnTable()
        for record in records:
            row = row_of(record)
            with of_our_shape(f"record {record.hash}"):
                self.configs.append(record.config)
            self.columns.append({key: row[key] for key in _NAMED if key in row})

    def identities(self, keys: Sequence[str]) -> Iterator[bytes]:
        """Yield for each point what stands for its values of some keys."""
        leaves = self.configs.leaves
        for _, *values in zip(range(len(leaves)), *map(leaves.values, keys), strict=True):
            yield blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _match(first: _Side, second: _Side) -> tuple[array[int], array[int]]:
    """Pair points that agree in every value that varies inside either folder; return their places in both."""
    keys = sorted({*first.configs.varying(), *second.configs.varying()})
    index = {identity: place for place, identity in enumerate(second.identities(keys))}
    of_a, of_b = array("q"), array("q")
    for place, identity in enumerate(first.identities(keys)):
        other = index.get(identity)
        if other is not None:
            of_a.append(place)
            of_b.append(other)
    return of_a, of_b


@dataclass(frozen=True)
class _Pairs(Sequence[dict[str, Any]]):
    """The pairs, each made when it is asked for. of_a, of_b: the places of its two points."""

    first: Sequence[Record]
    second: Sequence[Record]
    of_a: array[int]
    of_b: array[int]
    named: Sequence[str]
    axes: Sequence[Axis]

    def __len__(self) -> int:
        return len(self.of_a)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        a, b = self.first[self.of_a[index]], self.second[self.of_b[index]]
        at = index % len(self)
        return _pair(a, b, self.named, None, [(axis, axis.values[at]) for axis in self.axes])


_NAMED = ("network", "memory", "policy", "encoder", "part", "timing", "seed")  # in a point's name where they vary


def _pair(
    a: Record,
    b: Record,
    named: Sequence[str] = (),
    row: Mapping[str, Any] | None = None,
    swept: Sequence[tuple[Axis, Any]] = (),
) -> dict[str, Any]:
    with of_our_shape(f"record {a.hash} or {b.hash}"):
        return _pair_of(a, b, named, row or row_of(a), swept)


def _pair_of(
    a: Record, b: Record, named: Sequence[str], row_a: Mapping[str, Any], swept: Sequence[tuple[Axis, Any]]
) -> dict[str, Any]:
    row_b = row_of(b)
    sections = [key for key in a.config.keys() | b.config.keys() if a.config.get(key) != b.config.get(key)]
    flat_a, flat_b = (flat({key: r.config[key] for key in sections if key in r.config}) for r in (a, b))
    differs = {
        key: [flat_a.get(key), flat_b.get(key)]
        for key in sorted(flat_a.keys() | flat_b.keys())
        if flat_a.get(key) != flat_b.get(key)
    }
    if a.counts_version != b.counts_version:
        differs["counts_version"] = [a.counts_version, b.counts_version]
    changes = {
        name: {"a": row_a[name], "b": row_b[name], "percent": _percent(row_a[name], row_b[name])}
        for name in METRICS
        if row_a.get(name) is not None and row_b.get(name) is not None  # an address-only trace has no ones
    }
    keys = ("ordering", "stride", "format", "trace", *named)
    words = {"memory": "M ", "seed": "seed "}
    names = [f"{words.get(key, '')}{row_a[key]}" for key in keys if key in row_a]
    names += [value_in_words(axis.title, value) for axis, value in swept if value is not None]
    because = _because(a, b)
    return {
        "point": " / ".join(names), "a": a.hash, "b": b.hash, "differs": differs, "changes": changes, "because": because
    }  # fmt: skip


def _percent(a: float, b: float) -> float | None:
    return 0.0 if a == b else 100.0 * (b - a) / a if a else None


def _because(a: Record, b: Record) -> list[dict[str, Any]]:
    """Return the energy terms by the size of their change; each is a count times a constant."""
    terms_a, terms_b = (r.results.get("energy_pj", {}).get("terms", {}) for r in (a, b))
    found = []
    for name in sorted(terms_a.keys() | terms_b.keys()):
        x, y = terms_a.get(name, {"count": 0, "pj": 0.0}), terms_b.get(name, {"count": 0, "pj": 0.0})
        if x != y:
            found.append({"term": name, "count_a": x["count"], "count_b": y["count"], "pj": y["pj"] - x["pj"]})
    return sorted(found, key=lambda term: -abs(term["pj"]))
