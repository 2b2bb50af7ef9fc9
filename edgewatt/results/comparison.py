"""Comparing points: what changed, by how much, which counts explain it; and which points are worth having at all."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from sys import intern
from typing import Any

from edgewatt.results.record import Record, of_our_shape
from edgewatt.results.record_rows import METRICS, Table, flat, format_value, per_inference, row_of
from edgewatt.results.store import open_records
from edgewatt.results.swept import ABSENT, Axis, Configs, swept_axes
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


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Return what changed between two records, or two results folders point by point.

    a, b: files or folders.

    Points of folders are matched by the part of their configuration that varies inside either; `alone` counts those
    that have no counterpart. Each pair is a dict: `point`, `differs` (configuration values that differ), `changes`
    (metric -> a, b, per cent; energies and times of one inference) and `because` (the counts, of whole runs, that
    explain the change in energy, in pJ an inference).
    Raises InputError where nothing can be compared.
    """
    first, second = (_Side(open_records(path)) for path in (a, b))
    with of_our_shape(f"a record of {a} or {b}"):
        of_a, of_b = _match(first, second) if len(first) > 1 or len(second) > 1 else (array("q", [0]), array("q", [0]))
    if not of_a:
        raise InputError(f"{a} and {b} have no points in common that could be compared")
    named = [key for key in _NAMED if len({first.rows.values(key)[k] for k in of_a}) > 1]
    with of_our_shape(f"a record of {a}"):
        axes = swept_axes(first.configs.only(of_a))
    return Comparison(first, second, of_a, of_b, named, axes)


_NAMED = ("network", "memory", "policy", "encoder", "part", "timing", "seed")  # in a point's name where they vary
_KEPT = ("hash", "ordering", "stride", "format", "trace", "inputs", *_NAMED, *METRICS)


class _Side:
    """What comparing needs of one side's records; each is read once. terms: of the energy, (count, pJ) by name."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.configs, self.rows = Configs(), Table()
        self.terms: list[dict[str, tuple[Any, float]]] = []
        for record in records:
            row = row_of(record)
            with of_our_shape(f"record {record.hash}"):
                self.configs.append(record.config)
                terms, inputs = record.results.get("energy_pj", {}).get("terms", {}), row.get("inputs", 1)
                self.terms.append(
                    {intern(name): (0 + t["count"], (0.0 + t["pj"]) / inputs) for name, t in terms.items()}
                )
            row = per_inference(row)
            kept = {key: row.get(key) for key in _KEPT}
            self.rows.append({**kept, "counts_version": record.counts_version})

    def __len__(self) -> int:
        return len(self.rows)

    def identities(self, keys: Sequence[str]) -> Iterator[bytes]:
        columns = [[None if v is ABSENT else v for v in self.configs.leaf(key)] for key in keys]
        for _, *values in zip(range(len(self)), *columns, strict=True):
            yield blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _match(first: _Side, second: _Side) -> tuple[array[int], array[int]]:
    keys = sorted({*first.configs.varying(), *second.configs.varying()})
    index = {identity: row for row, identity in enumerate(second.identities(keys))}
    of_a, of_b = array("q"), array("q")
    for row, identity in enumerate(first.identities(keys)):
        other = index.get(identity)
        if other is not None:
            of_a.append(row)
            of_b.append(other)
    return of_a, of_b


class Comparison(Sequence[dict[str, Any]]):
    """The points that two sides have in common, one dict a pair; alone: points (A only, B only) with no counterpart."""

    def __init__(
        self, first: _Side, second: _Side, of_a: array[int], of_b: array[int], named: Sequence[str], axes: list[Axis]
    ) -> None:
        self._first, self._second, self._of_a, self._of_b, self._axes = first, second, of_a, of_b, axes
        self._names = ("ordering", "stride", "format", "trace", *named)
        self.alone = (len(first) - len(of_a), len(second) - len(of_b))

    def __len__(self) -> int:
        return len(self._of_a)

    @property
    def says(self) -> str:
        a, b = self.alone
        if not a and not b:
            return f"all {len(self)} points are in both."
        return (
            f"only the {len(self)} points that both have are compared: A has {a} more, B {b}, whose settings the other "
            "does not have."
        )

    @property
    def counted(self) -> str:
        """Say of how many inputs the counts are, where that differs; nothing where it does not."""
        sides = ((self._first, self._of_a), (self._second, self._of_b))
        of_a, of_b = ({side.rows.values("inputs")[k] for k in of} for side, of in sides)
        if len(of_a | of_b) < 2:
            return ""
        a, b = (" or ".join(map(str, sorted(each, key=str))) for each in (of_a, of_b))
        return f"Counts are of whole runs, of {a} inputs in A and {b} in B; energies and times are of one input."

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        a, b = self._of_a[index], self._of_b[index]
        first, second = self._first.rows, self._second.rows
        differs = _differing(self._first.configs[a], self._second.configs[b])
        versions = [first.values("counts_version")[a], second.values("counts_version")[b]]
        if versions[0] != versions[1]:
            differs["counts_version"] = versions
        changes = {}
        for name in METRICS:
            x, y = first.values(name)[a], second.values(name)[b]
            if x is not None and y is not None:  # an address-only trace: no ones
                changes[name] = {"a": x, "b": y, "percent": 0.0 if x == y else 100.0 * (y - x) / x if x else None}
        return {
            "point": self._name(a, index % len(self)), "a": first.values("hash")[a], "b": second.values("hash")[b],
            "differs": differs, "changes": changes, "because": self._because(a, b),
        }  # fmt: skip

    def _name(self, a: int, at: int) -> str:
        pairs = [(key, self._first.rows.values(key)[a]) for key in self._names]
        names = [f"{_WORDS.get(key, '')}{value}" for key, value in pairs if value is not None]
        swept = [(axis.title, axis.values[at]) for axis in self._axes]
        return " / ".join([*names, *(format_value(title, value) for title, value in swept if value is not None)])

    def _because(self, a: int, b: int) -> list[dict[str, Any]]:
        mine, other = self._first.terms[a], self._second.terms[b]
        terms = []
        for name in sorted(mine.keys() | other.keys()):
            (x, pj_x), (y, pj_y) = mine.get(name, _NOTHING), other.get(name, _NOTHING)
            if (x, pj_x) != (y, pj_y) or (name in mine) != (name in other):
                terms.append({"term": name, "count_a": x, "count_b": y, "pj": pj_y - pj_x})
        return sorted(terms, key=lambda term: -abs(term["pj"]))


_NOTHING = (0, 0)
_WORDS = {"memory": "M ", "seed": "seed "}


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, list[Any]]:
    unlike = {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}
    x, y = (flat({key: value for key, value in each.items() if key in unlike}) for each in (a, b))
    return {key: [x.get(key), y.get(key)] for key in sorted(x.keys() | y.keys()) if x.get(key) != y.get(key)}
