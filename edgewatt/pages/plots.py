"""The report's charts in a notebook: the same specifications as Altair charts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgewatt.pages.chart import CHARTS, datasets
from edgewatt.pages.data import gather
from edgewatt.results.record import Record
from traces.base.errors import InputError, MissingExtraError


class Plots:
    """Charts of some records. Each method returns an `altair.Chart`, to be shown, changed or saved.

    Raises InputError where the records cannot fill a chart, MissingExtraError without the extra `report`.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = list(records)
        if not self._records:
            raise InputError("there are no finished points to plot")

    def tradeoff(self) -> Any:
        """Energy against time, with the Pareto front."""
        return self.chart("energy_time")

    def energy(self) -> Any:
        """Energy by stride and format, or by what varies."""
        return self.chart("energy_bars")

    def io(self) -> Any:
        """I/Os against the size of the fast memory."""
        return self.chart("io_memory")

    def spread(self) -> Any:
        """Points that differ in their seed alone, their median and range."""
        return self.chart("spread")

    def wires(self) -> Any:
        """How often each wire toggles."""
        return self.chart("wires")

    def searches(self) -> Any:
        """Best objective of searches against their work."""
        return self.chart("convergence")

    def chart(self, name: str) -> Any:
        """Return any chart of `edgewatt list charts` by its name, a plug-in's, too."""
        draw = CHARTS[name].item.draw
        try:
            import altair
        except ImportError as error:
            raise MissingExtraError("altair", "report") from error
        data = gather(self._records, title="", baseline=None, failed={})
        spec = draw(data)
        if spec is None:
            raise InputError(f"chart {name!r} has nothing to show of these points")
        named = spec["data"].get("name")
        rows = list(datasets(data)[named]) if named else spec["data"]["values"]
        own = ("$schema", *(("width", "height") if "facet" in spec else ()))  # a grid's cells have the size
        spec = {key: value for key, value in spec.items() if key not in own}
        return altair.Chart.from_dict({**spec, "data": {"values": rows}})
