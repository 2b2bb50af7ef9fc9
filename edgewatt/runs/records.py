"""Records in a session: a list of them that shows itself in few words, and becomes a table or charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from edgewatt.results.record import Record
from edgewatt.results.record_rows import row_of
from edgewatt.results.store import open_records
from edgewatt.results.swept import Configs, rows_with_axes
from traces.base.errors import InputError
from traces.base.reprs import OneLineRepr

if TYPE_CHECKING:
    from edgewatt.pages.figures import Plots

_LOOKED_AT = 2_000  # records of which what varies is found out; a line must not take seconds
_COSTS = ("io", "energy_pj", "time_ns")


class Records(OneLineRepr, list[Record]):
    """A list of records, with `frame()` and `plot`; a slice of it is one, too."""

    __repr__ = OneLineRepr.__repr__

    @overload
    def __getitem__(self, index: SupportsIndex) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Records: ...

    def __getitem__(self, index: Any) -> Any:
        chosen = super().__getitem__(index)
        return Records(chosen) if isinstance(index, slice) else chosen

    def _repr_fields(self) -> dict[str, object]:
        from traces.base.units import duration, energy

        facts: dict[str, object] = {"points": len(self)}
        if not self or len(self) > _LOOKED_AT:
            return facts
        try:
            rows = [row_of(record) for record in self]
            axes = rows_with_axes(rows, Configs(record.config for record in self))
        except InputError:  # to show what is wrong never fails
            return {**facts, "content": "not edgewatt's"}
        titles = _TITLES | {axis.key: axis.title for axis in axes}
        several = [title for key, title in titles.items() if len({row.get(key) for row in rows}) > 1]
        facts["differ in"] = ", ".join(several) or None
        words = {"io": lambda value: f"{value:,}", "energy_pj": energy, "time_ns": duration}
        for key, title in zip(_COSTS, ("I/Os", "energy", "time"), strict=True):
            values = [row[key] for row in rows if row.get(key) is not None]
            ends = list(dict.fromkeys(words[key](value) for value in (min(values), max(values)))) if values else []
            facts[title] = " to ".join(ends) or None
        return facts

    def frame(self) -> Any:
        from edgewatt.results.collection import frame

        return frame(self)

    @property
    def plot(self) -> Plots:
        """The report's charts of them, as Altair charts: ``records.plot.tradeoff()``."""
        from edgewatt.pages.figures import Plots

        return Plots(self)


_TITLES = {
    "network": "network", "trace": "trace", "ordering": "ordering", "stride": "stride", "format": "format",
    "memory": "M", "policy": "policy", "encoder": "encoder", "part": "part", "timing": "timing", "seed": "seed",
}  # fmt: skip


def load_records(path: str | Path) -> Records:
    """Return the records of a results folder's last sweep in its order (`collect` has all), or the one of a file.

    path: of either. The list shows itself in few words and has `frame()` and `plot`. Raises InputError if damaged.
    """
    return Records(open_records(path))
