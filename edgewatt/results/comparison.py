"""Comparing points: what changed, by how much, which counts explain it; and which points are worth having at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewatt.results.record import Record
from edgewatt.results.rows import METRICS, row_of
from edgewatt.results.store import open_results
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


def compare(a: str | Path, b: str | Path) -> list[dict[str, Any]]:
    """Compare two records, or two results folders point by point, and say what changed.

    Points of folders are matched by the part of their configuration that the two folders have in common. Returns one
    dict a pair: `point`, `differs` (configuration values that differ), `changes` (metric -> a, b, per cent) and
    `because` (the counts that explain the change in energy and in time).
    """
    first, second = load_records(a), load_records(b)
    if len(first) == 1 and len(second) == 1:
        return [_pair(first[0], second[0])]
    pairs = _match(first, second)
    if not pairs:
        raise InputError(f"{a} and {b} have no points in common that could be compared")
    rows = [row_of(x) for x, _ in pairs]
    named = [key for key in _NAMED if len({row.get(key) for row in rows}) > 1]
    return [_pair(x, y, named) for x, y in pairs]


def _match(first: list[Record], second: list[Record]) -> list[tuple[Record, Record]]:
    """Pair points that agree in every value that varies inside either folder."""
    flat_a, flat_b = [flat(r.config) for r in first], [flat(r.config) for r in second]
    varying = [
        key
        for key in sorted({key for values in (*flat_a, *flat_b) for key in values})
        if len({repr(f.get(key)) for f in flat_a}) > 1 or len({repr(f.get(key)) for f in flat_b}) > 1
    ]
    identity = lambda values: tuple(repr(values.get(key)) for key in varying)  # noqa: E731
    index = {identity(values): record for values, record in zip(flat_b, second, strict=True)}
    return [(r, index[identity(f)]) for f, r in zip(flat_a, first, strict=True) if identity(f) in index]


_NAMED = ("network", "memory", "policy", "encoder", "part", "timing", "seed")  # in a point's name where they vary


def _pair(a: Record, b: Record, named: Sequence[str] = ()) -> dict[str, Any]:
    row_a, row_b = row_of(a), row_of(b)
    flat_a, flat_b = flat(a.config), flat(b.config)
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
    point = " / ".join(f"{words.get(key, '')}{row_a[key]}" for key in keys if key in row_a)
    return {"point": point, "a": a.hash, "b": b.hash, "differs": differs, "changes": changes, "because": _because(a, b)}


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


def flat(value: Any, key: str = "") -> dict[str, Any]:
    """Return nested JSON values as one mapping with dotted keys."""
    if isinstance(value, Mapping):
        items = [(f"{key}.{name}" if key else str(name), item) for name, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        items = [(f"{key}.{index}", item) for index, item in enumerate(value)]
    else:
        return {key: value}
    return {name: leaf for sub, item in items for name, leaf in flat(item, sub).items()}
