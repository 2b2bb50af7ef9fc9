"""What an export is asked for and what it answers; the point of a configuration that is exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from edgewatt.results.swept import point_names
from edgewatt.runs.compute import Computation
from edgewatt.runs.memo import Memo
from edgewatt.runs.model import Point
from edgewatt.runs.plan import load_sweep
from traces.base.errors import InputError
from traces.base.progress import Progress


@dataclass(frozen=True)
class ExportRequest:
    """source: a configuration (YAML), with the number of its `point` and `overrides` (KEY=VALUE); else a trace file, of
    `source_format` and with accesses of `access_bytes` where it does not say; for C also a network.

    level: 'accesses' or 'bursts'. dtype: of a C file. line_bytes: of an object in a cache trace. first, bursts: what a
    waveform shows. channel: of a waveform or a command trace.
    """

    source: str
    format: str
    output: str
    level: str = "accesses"
    point: int = 0
    overrides: tuple[str, ...] = ()
    source_format: str | None = None
    access_bytes: int = 32
    dtype: str = "float32"
    line_bytes: int = 64
    first: int = 0
    bursts: int = 256
    channel: int = 0
    progress: Progress | None = None

    @property
    def configured(self) -> bool:
        """Whether the source is a configuration."""
        return Path(self.source).suffix in (".yaml", ".yml")

    @cached_property
    def points(self) -> Sequence[Point]:
        """The points of the configuration."""
        return load_sweep(Path(self.source), self.overrides).points

    @property
    def which(self) -> str:
        """Which of several points it is, in words; '' for the only one."""
        if not self.configured or len(self.points) < 2:
            return ""
        name = point_names([point.config for point in self.points])[self.point]
        return f"point {self.point} of 0 to {len(self.points) - 1} (--point): {name}"

    def chosen(self) -> Point:
        """Return the point of the configuration. Raises InputError where it has none of that number."""
        points = self.points
        if self.point >= len(points):
            raise InputError(
                f"{self.source}: there is no point {self.point}: it has {len(points)} (0 to {len(points) - 1})"
            )
        return points[self.point]

    def ordered_network(self, what: str) -> tuple[Any, Any]:
        """Return the point's network and order; InputError for a recorded trace, which holds no `what`."""
        point = self.chosen()
        if point.order is None:
            raise InputError(f"{self.source}: it plays a recorded trace, which holds no {what}")
        steps = Computation(point, Memo())
        return steps["network"], steps["tuple_order"]["edges"]


@dataclass(frozen=True)
class Exported:
    """summary: what was written, as JSON values. sentence: the same in words."""

    summary: Mapping[str, Any]
    sentence: str

    @classmethod
    def records(cls, request: ExportRequest, of: str, written: int) -> Exported:
        """Return what there is to say of a trace: so many records of `of`."""
        summary = {"file": request.output, "format": request.format, "level": of, "records": written}
        return cls(summary, f"{request.output}: {written} records of {of} ({request.format})")


@dataclass(frozen=True)
class Export:
    """One format. write: makes the file. networks: it also takes a network file."""

    write: Callable[[ExportRequest], Exported]
    networks: bool = False
