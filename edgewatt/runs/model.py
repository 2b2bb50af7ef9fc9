"""What a point is: its work, the order of that work, how it lies in memory, the machine, and what is measured.

The fields of the five parts are the keys of a record's `config`; `Point.config` is that mapping, its hash the point's
name. A field added later is declared with `json_form.later`, so that older points keep their hashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from sys import intern
from typing import Any, Protocol
from weakref import WeakValueDictionary

from edgewatt.results.record import canonical_json, content_hash
from edgewatt.runs.json_form import LATER, OMIT, Member, from_json, later, to_json
from hwmodel.caches.gpu import GpuSpec
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.controller import ControllerSpec
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import EngineSpec
from traces.layout.settings import Layout
from traces.trace.partition import EnginesSpec


@dataclass(frozen=True)
class FileIdentity:
    """A file named by its content; the same on any machine."""

    name: str
    sha256: str


@dataclass(frozen=True)
class NetworkSource:
    """A network from files (one per layer, or one for all) or from a generator, pruned if wished.

    files, one_per_layer: None for a generated network. prune: density or n_connections, and scope. activation: replaces
    the file's.
    """

    generate: Member | None
    orientation: str | None
    prune: Mapping[str, Any] | None
    activation: str | None
    files: tuple[FileIdentity, ...] | None = later(None)
    one_per_layer: bool | None = later(None)


@dataclass(frozen=True)
class TraceSource:
    """A recorded trace. format: None is found by its content. access_bytes: of an access whose size the file lacks."""

    files: tuple[FileIdentity, ...]
    format: str | None
    access_bytes: int


@dataclass(frozen=True)
class NetworkWork:
    """The connections of a network. sample: the first input vector of its batch that fills the payload. batch: how many
    vectors; None is one for each lane."""

    network: NetworkSource
    sample: int
    batch: int | None = later(None)


@dataclass(frozen=True)
class TraceWork:
    """A recorded memory trace: its order and its layout are fixed already."""

    trace: TraceSource


@dataclass(frozen=True)
class PointFastMemory:
    """Fast memory of the I/O model: M values, the eviction policy, pinning's reading, sizes of the curve."""

    size: int
    policy: str
    pinning: str
    curve: tuple[int, ...]


@dataclass(frozen=True)
class Search:
    """What searching methods lower (a name or a mapping), and their wall-clock limit in seconds or None."""

    objective: Any
    time_limit_s: float | None


@dataclass(frozen=True)
class Order:
    """The order of the connections, then of the tuples inside runs (kind 'none': as the ordering gives them)."""

    ordering: Member
    stride: Member
    fast_memory: PointFastMemory
    search: Search


@dataclass(frozen=True)
class DataLayout:
    """Number format and place of everything in memory; `in_memory` is the complete Layout."""

    format: str
    layout: Layout = field(metadata={OMIT: ("value_format",)})

    @cached_property
    def in_memory(self) -> Layout:
        """Return the layout with its number format."""
        import dataclasses

        return dataclasses.replace(self.layout, value_format=self.format)


@dataclass(frozen=True)
class PointBus:
    """Byte lanes, bytes encoded together, and the element of encoders (of all streams or by stream); None takes the
    part's, or each stream's own."""

    bus_bytes: int | None
    block_bytes: int | None
    element_bytes: int | dict[str, int] | None
    metadata: int | None = later(None)


@dataclass(frozen=True)
class Dram:
    """A part by name and content (`sha256` of what its file says), fields replaced in it, its controller."""

    part: str
    overrides: Mapping[str, Any]
    controller: ControllerSpec
    sha256: str


@dataclass(frozen=True)
class MachineChoice:
    """The machine: caches from the engine outward or a scratchpad, bus, encoder chain, memory part with controller,
    engine. technology: what on-chip memory and arithmetic cost; None leaves them out. engines: how many share the work.
    gpu: computes the layers instead of engine and caches."""

    caches: tuple[CacheSpec, ...]
    bus: PointBus
    encoder: str
    engine: EngineSpec
    dram: Dram
    scratchpad: ScratchpadSpec | None = field(default=None, metadata={LATER: True})
    technology: FileIdentity | None = field(default=None, metadata={LATER: True})
    engines: EnginesSpec = field(default=EnginesSpec(), metadata={LATER: True})
    gpu: GpuSpec | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True)
class Measure:
    """measure: 'io' (the I/O model alone) or 'all'. timing: 'replay' or 'system'. seed: of every random choice.
    accuracy: whether the network's accuracy in the format is measured."""

    measure: str
    timing: str
    seed: int
    accuracy: bool = later(False)


@dataclass(frozen=True)
class Point:
    """One thing to compute.

    order, layout: None for a recorded trace. plugins: field -> the outside members it names, with distribution, version
    and the SHA-256 of their module; empty for our own. paths: where the files lie here. name: the user's label. Neither
    of the last two is part of the hash.
    """

    work: NetworkWork | TraceWork
    order: Order | None
    layout: DataLayout | None
    machine: MachineChoice
    measure: Measure
    plugins: Mapping[str, Any] = field(default_factory=dict)
    paths: Mapping[str, list[str]] = field(default_factory=dict, compare=False)
    name: str = field(default="", compare=False)

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        paths: Mapping[str, list[str]],
        name: str = "",
        plugins: Mapping[str, Any] | None = None,
    ) -> Point:
        """Return the point that a configuration describes; defaults of fields that came later may stand in it or not.

        plugins: in place of those that the configuration tells of.
        """
        recorded = "trace" in config
        return cls(
            work=from_json(TraceWork if recorded else NetworkWork, config),
            order=None if recorded else from_json(Order, config),
            layout=None if recorded else from_json(DataLayout, config),
            machine=from_json(MachineChoice, config),
            measure=from_json(Measure, config),
            plugins=config.get("plugins", {}) if plugins is None else plugins,
            paths=paths,
            name=name,
        )

    @classmethod
    def named(cls, config: dict[str, Any], paths: Mapping[str, list[str]], name: str, point_hash: str) -> Point:
        """Return the point of that `config` and `hash`, which a process took from it: in that process, itself."""
        point = _ALIVE.get(point_hash)
        if point is None or point.name != name or point.paths != paths:
            point = cls.from_config(config, paths, name)
            point.__dict__.update(config=config, hash=point_hash)
        return point

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Return the point as plain JSON values with every default filled in and files named by content."""
        parts = (self.work, self.order, self.layout, self.machine, self.measure)
        values = {key: value for part in parts if part is not None for key, value in to_json(part).items()}
        return {**values, "plugins": to_json(self.plugins)} if self.plugins else values

    @cached_property
    def hash(self) -> str:
        """Return the content hash of the configuration: the point's name in a store."""
        name = content_hash(self.config)
        _ALIVE[name] = self
        return name

    @cached_property
    def _texts(self) -> dict[tuple[str, ...], str]:
        return {}

    def text(self, paths: tuple[str, ...]) -> str:
        """Return the canonical JSON of the values of the configuration at dotted keys, those left out that it lacks."""
        known = self._texts.get(paths)
        if known is None:
            values = {path: value for path in paths if (value := self.field(path, _ABSENT)) is not _ABSENT}
            known = self._texts[paths] = intern(canonical_json(values))  # points of a sweep agree in most
        return known

    def field(self, path: str, default: Any = None) -> Any:
        """Return a value of the configuration by its dotted key; `default` if the point has none."""
        value: Any = self.config
        for step in path.split("."):
            if not isinstance(value, dict) or step not in value:
                return default
            value = value[step]
        return value


class Before(Protocol):
    """What a step may ask for: the result of each step before it, computed or found when it is asked for."""

    def __getitem__(self, step: str) -> Any: ...

    def worth_keeping(self, step: str) -> bool:
        """Return whether other points need that step's result, too."""
        ...


_ABSENT = object()
_ALIVE: WeakValueDictionary[str, Point] = WeakValueDictionary()
"""Hash -> the last point of this process that was asked for it."""
