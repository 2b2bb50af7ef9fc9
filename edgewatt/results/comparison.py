"""Comparing points: what changed, by how much, which counts explain it; and which points are worth having at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.results.record import Record, of_our_shape
from edgewatt.results.rows import METRICS, flat, row_of, value_in_words
from edgewatt.results.store import open_results
from edgewatt.results.swept import Axis, swept_axes, varying_keys
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


def load_records(path: str | Path) -> list[Record]:
    """Return the records of a results folder (in the order of its sweep), or the one record of a file."""
    path = Path(path)
    if path.is_file():
        try:
            return [Record.from_bytes(path.read_bytes(), str(path))]
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    store = open_results(path)
    _, planned = store.plan()
    finished = store.hashes()
    known = set(finished)
    order = [name for name in planned if name in known] or finished
    records = [record for record in map(store.get, order) if record is not None]
    if not records:
        raise InputError(f"{path}: no finished points yet")
    return records


@dataclass(frozen=True)
class Comparison(Sequence[dict[str, Any]]):
    """The points that two sides have in common, one dict a pair; alone: points (A only, B only) with no counterpart."""

    pairs: list[dict[str, Any]]
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
    first, second = load_records(a), load_records(b)
    if len(first) == 1 and len(second) == 1:
        return Comparison([_pair(first[0], second[0])])
    with of_our_shape(f"a record of {a} or {b}"):
        pairs = _match(first, second)
    if not pairs:
        raise InputError(f"{a} and {b} have no points in common that could be compared")
    rows = [row_of(x) for x, _ in pairs]
    named = [key for key in _NAMED if len({row.get(key) for row in rows}) > 1]
    with of_our_shape(f"a record of {a}"):
        axes = swept_axes([x.config for x, _ in pairs])
    found = [_pair(x, y, named, rows[i], [(axis, axis.values[i]) for axis in axes]) for i, (x, y) in enumerate(pairs)]
    return Comparison(found, (len(first) - len(pairs), len(second) - len(pairs)))


def _match(first: list[Record], second: list[Record]) -> list[tuple[Record, Record]]:
    """Pair points that agree in every value that varies inside either folder."""
    inside_a, inside_b = varying_keys([r.config for r in first]), varying_keys([r.config for r in second])
    keys = sorted(set(_differing(inside_a)) | set(_differing(inside_b)))

    def identities(records: list[Record]) -> list[tuple[str, ...]]:
        known: dict[tuple[str, str], dict[str, Any]] = {}

        def leaves(record: Record, section: str) -> dict[str, Any]:
            value = record.config.get(section)
            name = (section, repr(value))
            if name not in known:
                known[name] = flat(value, section)
            return known[name]

        sections = {key: key.partition(".")[0] for key in keys}
        return [tuple(repr(leaves(r, sections[key]).get(key)) for key in keys) for r in records]

    index = dict(zip(identities(second), second, strict=True))
    return [(r, index[name]) for r, name in zip(first, identities(first), strict=True) if name in index]


def _differing(leaves: list[dict[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for values in leaves for key in values)
    return [key for key in keys if len({repr(values.get(key)) for values in leaves}) > 1]


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
