"""What a point is: its work, the order of that work, how it lies in memory, the machine, and what is measured.

The fields of the five parts are the keys of a record's `config`; `Point.config` is that mapping, its hash the point's
name. Files and devices are named by content. A field added later is declared with `later`, so that older points keep
their hashes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import marshal
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from edgewatt.results.record import canonical_json, content_hash
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.controller import ControllerSpec
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import BusSpec, EngineSpec, Machine
from traces.base.errors import InputError
from traces.base.files import Stamp, stamp_of
from traces.layout.settings import Layout
from traces.trace.partition import EnginesSpec

ADDED_FIELD = "later"
"""Field metadata: this field came after records were written. It is absent from the JSON form while it has its default,
so that the hashes of all points that do not use it stay as they were. Any dataclass of a point may say so:
``field(default=0, metadata={"later": True})``."""

FILE = "file"
"""Field metadata: this parameter of a member names a file, which a point names by its content."""

OMIT = "omit"
"""Field metadata: names inside the field's own dataclass that its JSON form leaves out."""


def added_field(default: Any) -> Any:
    return dataclasses.field(default=default, metadata={ADDED_FIELD: True})


@dataclasses.dataclass(frozen=True)
class Member:
    """One member of a registry and all its parameters, as JSON values."""

    kind: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.parameters}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Member:
        return cls(value["kind"], {key: item for key, item in value.items() if key != "kind"})


def to_json(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    fields = _fields(value.__class__)
    if fields is not None:
        plain, state = {}, value.__dict__
        if (known := state.get(_KNOWN)) is not None:
            return marshal.loads(known)  # a form of the caller's own, which may be changed
        for name, is_later, default, omitted in fields:
            item = state[name]
            if not (is_later and item == (default() if callable(default) else default)):
                plain[name] = item if type(item) in _PLAIN else _without(to_json(item), omitted)
        if _KNOWN in state:
            state[_KNOWN] = marshal.dumps(plain)
            return marshal.loads(state[_KNOWN])
        return plain
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple | list) else value


_KNOWN = "_json_form"
"""Where an object that many points share keeps its JSON form."""

_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _fields(kind: Any) -> tuple[tuple[str, bool, Any, tuple[str, ...]], ...] | None:
    if not dataclasses.is_dataclass(kind) or hasattr(kind, "to_json"):
        return None
    return tuple(
        (field.name, bool(field.metadata.get(ADDED_FIELD)), _default(field), field.metadata.get(OMIT, ()))
        for field in dataclasses.fields(kind)
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory


def _without(value: Any, names: tuple[str, ...]) -> Any:
    return {key: item for key, item in value.items() if key not in names} if names else value


def from_json(kind: Any, value: Any) -> Any:
    """Build what the type `kind` says from JSON values; keys that a dataclass does not have are left alone."""
    reader = _reader(kind)
    return value if reader is None else reader(value)


Reader = Callable[[Any], Any]


@cache
def _reader(kind: Any) -> Reader | None:
    if isinstance(kind, type) and hasattr(kind, "from_json"):
        read: Reader = kind.from_json
        return read
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and arguments[1:] == (...,):
        item = _reader(arguments[0])
        return tuple if item is None else lambda value: tuple(map(item, value))
    if origin in (typing.Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        one = _reader(inner[0]) if len(inner) == 1 else None
        return None if one is None else lambda value: None if value is None else one(value)
    return None


def _dataclass_reader(kind: Any) -> Reader:
    """Return what builds a dataclass; a frozen one is built once for the same values, of which it has its own copy."""
    hints = typing.get_type_hints(kind)
    fields = [(field.name, _reader(hints[field.name])) for field in dataclasses.fields(kind) if field.init]

    def read(value: Any) -> Any:
        return kind(
            **{key: value[key] if reader is None else reader(value[key]) for key, reader in fields if key in value}
        )

    if not kind.__dataclass_params__.frozen:
        return read
    made: dict[bytes, Any] = {}
    names = [name for name, _ in fields]

    def read_once(value: Any) -> Any:
        try:
            key = marshal.dumps({name: value[name] for name in names if name in value}, 2)  # tells 1 from 1.0 and true
        except ValueError:
            return read(value)  # no JSON value is in it
        section = made.get(key)
        if section is None:
            section = read(marshal.loads(key))
            if len(made) >= MOST_KEPT:
                made.clear()
            made[key] = section
            section.__dict__[_KNOWN] = None
        return section

    return read_once


MOST_KEPT = 1024
"""Objects of one dataclass that are kept, to be given to other points with the same values."""


@dataclass(frozen=True)
class FileIdentity:
    """A file named by its content; the same on any machine."""

    name: str
    sha256: str


@dataclass(frozen=True)
class NetworkSource:
    """A network from files (one per layer, or one for all) or from a generator, pruned if wished.

    files, one_per_layer: None for a generated network. prune: density or n_connections, scope,
    method. activation: replaces the file's. names, image, windows, shapes: as arguments of `load`. labelled: inputs
    and labels of the accuracy.
    """

    generate: Member | None
    orientation: str | None
    prune: Mapping[str, Any] | None
    activation: str | None
    files: tuple[FileIdentity, ...] | None = added_field(None)
    one_per_layer: bool | None = added_field(None)
    labelled: tuple[FileIdentity, ...] | None = added_field(None)
    names: tuple[str, ...] | None = added_field(None)
    image: tuple[int, ...] | None = added_field(None)
    windows: Mapping[str, Mapping[str, int]] | None = added_field(None)
    shapes: Mapping[str, tuple[int, ...]] | None = added_field(None)


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
    batch: int | None = added_field(None)


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
        import dataclasses

        return dataclasses.replace(self.layout, value_format=self.format)


@dataclass(frozen=True)
class PointBus:
    """Byte lanes, bytes encoded together, and the element of encoders (of all streams or by stream); None takes the
    part's, or each stream's own."""

    bus_bytes: int | None
    block_bytes: int | None
    element_bytes: int | dict[str, int] | None
    metadata: int | None = added_field(None)


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
    engine. technology: what on-chip memory and arithmetic cost; None leaves them out. idle: as `Machine.idle`.
    engines: how many share the work."""

    caches: tuple[CacheSpec, ...]
    bus: PointBus
    encoder: str
    engine: EngineSpec
    dram: Dram
    scratchpad: ScratchpadSpec | None = field(default=None, metadata={ADDED_FIELD: True})
    technology: FileIdentity | None = field(default=None, metadata={ADDED_FIELD: True})
    idle: str | float = added_field("all")
    engines: EnginesSpec = field(default=EnginesSpec(), metadata={ADDED_FIELD: True})


@dataclass(frozen=True)
class Measure:
    """measure: 'io' (the I/O model alone) or 'all'. timing: 'replay' or 'system'. seed: of every random choice.
    accuracy: whether the network's accuracy in the format is measured."""

    measure: str
    timing: str
    seed: int
    accuracy: bool = added_field(False)


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
        """Return the point that a configuration describes."""
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
    def of_task(cls, task: Mapping[str, Any]) -> Point:
        """Return the point that a task was made of: in the process that planned it the very one."""
        point = _PLANNED.get(task["hash"])
        if point is None or (point.name, point.paths) != (task["name"], task["paths"]):
            point = cls.from_config(task["config"], task["paths"], task["name"])
            vars(point).update(config=task["config"], hash=task["hash"])
        return point

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The point as plain JSON values with every default filled in and files named by content."""
        parts = (self.work, self.order, self.layout, self.machine, self.measure)
        values = {key: value for part in parts if part is not None for key, value in to_json(part).items()}
        return {**values, "plugins": to_json(self.plugins)} if self.plugins else values

    @cached_property
    def hash(self) -> str:
        name = content_hash(self.config)
        _PLANNED[name] = self
        return name

    @cached_property
    def _texts(self) -> dict[tuple[str, ...], str]:
        return {}

    def text(self, paths: tuple[str, ...]) -> str:
        """Return the fields that a step reads, as canonical JSON: to plan it, and to name it."""
        if (text := self._texts.get(paths)) is None:
            values = {path: value for path in paths if (value := self.field(path, _ABSENT)) is not _ABSENT}
            text = self._texts[paths] = canonical_json(values)
        return text

    def field(self, path: str, default: Any = None) -> Any:
        value: Any = self.config
        for step in path.split("."):
            if not isinstance(value, dict) or step not in value:
                return default
            value = value[step]
        return value


_PLANNED: WeakValueDictionary[str, Point] = WeakValueDictionary()
"""Hash -> a point of this process that has it."""


class StepResults(Protocol):
    """What a step may ask for: the result of each step before it, computed or found when it is asked for."""

    def __getitem__(self, step: str) -> Any: ...

    def worth_keeping(self, step: str) -> bool: ...


_ABSENT = object()


_PARTS: dict[tuple[int, str], tuple[Any, dict[str, str]]] = {}
"""Part (by identity: the same one while none of its files changes) and overrides -> the part, its name and content."""


def part_identity(dram: Mapping[str, Any]) -> dict[str, Any]:
    overrides = json.dumps(dram["overrides"], sort_keys=True)
    part = load_part_with(dram["part"], {})
    kept, identity = _PARTS.get((id(part), overrides), (None, None))
    if kept is not part or identity is None:
        content = part_content(load_part_with(dram["part"], dram["overrides"]))
        name = part.name if dram["part"].endswith((".yaml", ".yml")) else dram["part"]
        identity = {"part": name, "sha256": content_hash(content)}
        if len(_PARTS) >= MOST_KEPT:
            _PARTS.clear()
        _PARTS[id(part), overrides] = part, identity
    return {**dram, **identity}


def load_part_with(part: str, overrides: Mapping[str, Any]) -> Any:
    from hwmodel.parts.part_file import load_part

    base = load_part(part)
    return load_part({"extends": part, "name": base.name, **overrides}) if overrides else base


def part_content(part: Any) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            members = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
            return {f.name: plain(item) for f, item in members if not (f.metadata.get("later") and item == f.default)}
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, tuple | list) else value

    return {key: value for key, value in plain(part).items() if key not in ("constants", "note")}


def file_identity(path: str) -> dict[str, str]:
    return {"name": Path(path).name, "sha256": _content(path, stamp_of(path))}


def check_unchanged(files: tuple[FileIdentity, ...], paths: list[str]) -> None:
    for path, expected in zip(paths, files, strict=True):
        if not Path(path).exists():
            raise InputError(f"{path}: no such file")
        if file_identity(path)["sha256"] != expected.sha256:
            raise InputError(f"{path}: the file has changed since this configuration was read")


@lru_cache(maxsize=256)
def _content(path: str, stamp: Stamp) -> str:
    digest = hashlib.sha256()
    root = Path(path)
    files = sorted(p for p in root.rglob("*") if p.is_file()) if root.is_dir() else [root]
    try:
        for file in files:
            if len(files) > 1 or file != root:
                digest.update(f"{file.relative_to(root)}\0".encode("utf-8", "surrogateescape"))
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return digest.hexdigest()


_built: dict[tuple[int, str], tuple[MachineChoice, Machine]] = {}
"""Choice (by identity: alike points have the same one) and part's file -> the choice and its machine."""


def build_machine(point: Point) -> Machine:
    """Return the machine of a point, the same one for all points that describe it alike."""
    if point.machine.technology is not None:
        check_unchanged((point.machine.technology,), point.paths["technology"])
    path, dram = point.paths["part"][0], point.machine.dram
    if path.endswith((".yaml", ".yml")):
        content = part_identity({"part": path, "overrides": dram.overrides})["sha256"]
        if content != dram.sha256:
            raise InputError(f"{path}: the part has changed since this configuration was read")
    key = id(point.machine), path
    chosen, machine = _built.get(key, (None, None))
    if chosen is not point.machine or machine is None:
        machine = _build(point)
        if len(_built) >= MOST_KEPT:
            _built.clear()
        _built[key] = point.machine, machine
    return machine


def _build(point: Point) -> Machine:
    from hwmodel.energy.technology import load_technology

    chosen, part = point.machine, _part_of(point)
    lanes = part.organisation.byte_lanes
    if chosen.bus.bus_bytes not in (None, lanes):
        raise InputError(
            f"a bus of {chosen.bus.bus_bytes} byte lanes does not fit part {part.name!r}, which has {lanes}"
        )
    return Machine(
        caches=chosen.caches,
        encoder=chosen.encoder,
        element_bytes=chosen.bus.element_bytes,
        bus=BusSpec(lanes, chosen.bus.block_bytes or part.organisation.burst_bytes, chosen.bus.metadata or 0),
        part=part,
        controller=chosen.dram.controller,
        engine=chosen.engine,
        scratchpad=chosen.scratchpad,
        technology=None if chosen.technology is None else load_technology(point.paths["technology"][0]),
        idle=chosen.idle,
    )


def _part_of(point: Point) -> Any:
    dram = point.machine.dram
    return _part(point.paths["part"][0], json.dumps(dram.overrides, sort_keys=True), dram.sha256)


@lru_cache(maxsize=64)
def _part(path: str, overrides: str, sha256: str) -> Any:
    return load_part_with(path, json.loads(overrides))
