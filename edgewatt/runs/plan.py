"""What a sweep file expands to.

    base     a run configuration, or the path of one        exclude  points to leave out
    grid     key: [values], every combination               list     further points, each a mapping of key: value
    zip      key: [values], side by side

Keys are dotted (``dram.part``); ``orderings``, ``strides`` and ``formats`` of each result expand as in a run.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import NAMED_BY, registry
from edgewatt.config.loading import Known, as_document, base_of, changes_of, complete, validate
from edgewatt.config.models import RunConfig, SweepConfig
from edgewatt.evaluation.costs import rows_in
from edgewatt.results.record import canonical_json
from edgewatt.runs.model import ADDED_FIELD, FILE, Point, build_machine, file_identity, part_identity, to_json
from edgewatt.runs.steps import has_tuple_order
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from traces.base.document import MAX_DEPTH, Change, ConfigError, Document, Loc, Mark
from traces.base.errors import IgnoredSettingWarning, InputError, WastedRoomWarning
from traces.base.memory import claim
from traces.base.registry import Entry
from traces.base.reprs import OneLineRepr
from traces.base.resources import outside_files, shipped_path
from traces.base.schema import Section, keys_of

MAX_POINTS = 1_000_000
_POINT_BYTES = 8000  # of memory, with its configuration
_SHOWN_PROBLEMS = 40


@dataclass(frozen=True)
class SweepPlan(OneLineRepr):
    name: str
    points: list[Point]

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        return {"name": self.name, "points": len(self.points)}


def load_sweep(config: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> SweepPlan:
    """Return the plan of a sweep file (or of a run file: its small grid is a sweep too).

    config: a file, a shipped name or a mapping. overrides: KEY=VALUE texts.

    Raises ConfigError with every problem at its file, line and column.
    """
    return load_sweep_document(as_document(config), overrides)


def load_sweep_document(document: Document, overrides: Iterable[str] = ()) -> SweepPlan:
    changes = changes_of(overrides, document)
    if "base" not in document.data:
        document.apply(changes)
        run = points_of(document)
        return SweepPlan(run[0].name, _unique(run))
    own = [change for change in changes if change[0][0] in keys_of(SweepConfig)]
    every = [change for change in changes if change not in own]  # which each of the runs takes
    document.apply(own)
    settings = validate(SweepConfig, document)
    base = base_of(document)
    points: list[Point] = []
    problems: set[tuple[Mark, str]] = set()
    known: Known = {}
    for variant in _variants(document, settings):
        try:
            changed = base.copy()
            changed.apply([*variant, *every])
            points += points_of(changed, known)
        except ConfigError as error:
            problems.update(error.problems)
            if len(problems) > _SHOWN_PROBLEMS:
                break
        if len(points) > MAX_POINTS:
            raise document.fail((), f"more than {MAX_POINTS} points: cut the grid into several sweeps")
        _claim_points(len(points), "a sweep", document.mark(()))
    if problems:
        raise ConfigError(problems)
    points = _without(points, document, settings)
    if not points:
        raise document.fail(("exclude",), "every point is excluded", key=True)
    return SweepPlan(settings.name or base.data.get("name", ""), _unique(points))


def _variants(document: Document, settings: SweepConfig) -> Iterator[list[Change]]:
    def change(loc: Loc, key: str) -> Change:
        return tuple(key.split(".")), document.at(loc), document.mark(loc)

    swept = [*(("grid", key) for key in settings.grid), *(("zip", key) for key in settings.side_by_side)]
    first_at = {key: i for i, (_, key) in reversed([*enumerate(swept)])}
    clashes = [
        (first_at[outer], i)
        for i, (_, key) in enumerate(swept)
        for outer in itertools.accumulate(key.split(".")[:MAX_DEPTH], "{}.{}".format)
        if first_at.get(outer, i) != i
    ]
    if clashes:
        first, second = min(clashes)
        one, (kind, other) = swept[first][1], swept[second]
        what = "is swept twice" if one == other else f"is part of {one}, which is swept, too"
        raise document.fail((kind, other), f"{other} {what}: the later one would replace it", key=True)
    lengths = {key: len(values) for key, values in settings.side_by_side.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{key} has {n}" for key, n in lengths.items())
        raise document.fail(
            ("zip",), f"lists under 'zip' go side by side and must be equally long, but {text}", key=True
        )
    axes = [[[change(("grid", key, i), key)] for i in range(len(values))] for key, values in settings.grid.items()]
    if lengths:
        axes.append(
            [
                [change(("zip", key, i), key) for key in settings.side_by_side]
                for i in range(next(iter(lengths.values())))
            ]
        )
    total = 1
    for axis in axes:
        total *= len(axis)
    if total > MAX_POINTS:
        raise document.fail(("grid",), f"{total} combinations: cut the grid into several sweeps", key=True)
    _claim_points(total, "the grid", document.mark(("grid",), key=True))
    if axes or not settings.further:
        for combination in itertools.product(*axes):
            yield [item for part in combination for item in part]
    for i, entry in enumerate(settings.further):
        yield [change(("list", i, key), key) for key in entry]


def _without(points: list[Point], document: Document, settings: SweepConfig) -> list[Point]:
    used = [False] * len(settings.exclude)
    kept = []
    for point in points:
        hits = [
            i for i, rule in enumerate(settings.exclude) if all(_agrees(point.config, k, v) for k, v in rule.items())
        ]
        for i in hits:
            used[i] = True
        if not hits:
            kept.append(point)
    for i, hit in enumerate(used):
        if not hit:
            raise document.fail(
                ("exclude", i),
                "leaves out nothing: no point has these values (the name of a system, cache or technology stands for "
                "what it holds: name that)",
            )
    return kept


_SINGULAR = {"orderings": "ordering", "strides": "stride", "formats": "format"}


def _agrees(config: Mapping[str, Any], key: str, query: Any) -> bool:
    value: Any = config
    for step in key.split("."):
        try:
            value = value[int(step)] if isinstance(value, tuple | list) else value[_SINGULAR.get(step, step)]
        except (KeyError, IndexError, TypeError, ValueError):
            return False
    if isinstance(value, Mapping) and isinstance(query, Mapping):
        return all(item in value and value[item] == expected for item, expected in query.items())
    if isinstance(value, Mapping):
        return query in (value.get("kind"), value.get("stride"), value.get("count"))
    return bool(value == query) and isinstance(value, bool) == isinstance(query, bool)


def _unique(points: list[Point]) -> list[Point]:
    return list({point.hash: point for point in reversed(points)}.values())[::-1]


def points_of(document: Document, known: Known | None = None) -> list[Point]:
    run, document = complete(document, known)
    total = math.prod(map(len, (run.onchip or (0,), run.orderings, run.layout, run.strides, run.formats)))
    _claim_points(total, "a run", document.mark(()))
    changed = [("overrides", run.dram.overrides)] if run.dram.overrides else []
    for key, overrides in [("part", {}), *changed]:
        try:
            part_identity({"part": run.dram.part, "overrides": overrides})
        except InputError as error:
            raise _placed(document, ("dram", key), error) from None
    loc: Loc = ("dram", "part")
    try:
        points = expand(run, document.pieces)
        loc = ("bus",) if "bus" in document.data else ("caches",)
        build_machine(points[0])
    except ConfigError:
        raise
    except InputError as error:
        raise _placed(document, loc, error) from None
    return points


def _claim_points(n: int, what: str, mark: Mark) -> None:
    claim(_POINT_BYTES * n, str(mark), f"{what} of {n} points")


def _placed(document: Document, loc: Loc, error: InputError) -> ConfigError:
    return ConfigError((document.mark(loc), line) for line in str(error).splitlines())


def expand(run: RunConfig, pieces: Collection[tuple[str, str]] = ()) -> list[Point]:
    shared, paths = _shared(run)
    configs = [({**shared, **memory}, paths) for memory in _memories(run)]
    if run.trace is None:
        configs = [
            (
                {
                    **config,
                    "fast_memory": _fast_memory(run, layout, config),
                    "layout": layout.plain,
                    "ordering": _member(ordering),
                    "stride": _member(stride),
                    "format": value_format,
                },
                {**files, **_files(ordering)},
            )
            for config, files in configs
            for ordering in run.orderings
            for layout in run.layout
            for stride in run.strides
            for value_format in run.formats
        ]
    plugins = [plugins_of(config, files, pieces) for config, files in configs]
    return [Point.from_config(*each, run.name, outside) for each, outside in zip(configs, plugins, strict=True)]


def _memories(run: RunConfig) -> list[dict[str, Any]]:
    if run.onchip is not None:
        return [each.plain for each in run.onchip]
    if run.scratchpad is not None:
        return [{"caches": [], "scratchpad": run.scratchpad.plain}]
    return [{"caches": [cache.plain for cache in run.caches], "scratchpad": None}]


def _fast_memory(run: RunConfig, layout: Any, memories: Mapping[str, Any]) -> dict[str, Any]:
    found, given = run.fast_memory.plain, run.fast_memory.model_fields_set
    own: dict[str, Any] = {}
    pad = None if memories["scratchpad"] is None else ScratchpadSpec(**memories["scratchpad"])
    if pad is not None:
        own = {"policy": pad.policy, "pinning": pad.pinning}
    if run.measure == "all" and "size" not in given and (pad is not None or memories["caches"]):
        first = memories["caches"][0]["size_bytes"] if memories["caches"] else 0
        own["size"] = rows_in(pad, first, layout.build())
    return {**found, **{key: value for key, value in own.items() if key not in given}}


def _member(section: Section) -> dict[str, Any]:
    """Return a kind and its parameters: files by content; later versions' parameters only if not at their default."""
    member = dict(section.plain)
    for field in _special_fields(type(section)):
        if field.metadata.get(ADDED_FIELD) and member.get(field.name) == field.default:
            del member[field.name]
        elif field.metadata.get(FILE) and member.get(field.name) is not None:
            member[field.name] = file_identity(member[field.name])
    return member


@cache
def _special_fields(section: type[Section]) -> list[dataclasses.Field[Any]]:
    fills = getattr(section, "_fills", None)
    fields = dataclasses.fields(fills) if fills else ()
    return [field for field in fields if field.metadata.get(ADDED_FIELD) or field.metadata.get(FILE)]


def _files(section: Section) -> dict[str, list[str]]:
    names = [field.name for field in _special_fields(type(section)) if field.metadata.get(FILE)]
    files = [getattr(section, name) for name in names if getattr(section, name) is not None]
    return {"ordering": files} if files else {}


def _shared(run: RunConfig) -> tuple[dict[str, Any], dict[str, list[str]]]:
    paths: dict[str, list[str]] = {}
    config: dict[str, Any] = {
        "bus": run.bus.plain, "engine": run.engine.plain, "engines": run.engines.plain,
        "encoder": run.encoder, "timing": run.timing,
        "measure": run.measure, "seed": run.seed, "accuracy": run.accuracy, "idle": run.idle,
    }  # fmt: skip
    if run.trace is not None:
        work = config["trace"] = _others(run.trace, "file")
        paths["trace"] = [run.trace.file]
    else:
        assert run.network is not None
        work = config["network"] = _others(run.network, "file", "files", "generate", "labelled")
        work["generate"] = None if run.network.generate is None else _member(run.network.generate)
        if run.network.generate is None:
            work["one_per_layer"] = run.network.files is not None
            paths["network"] = run.network.files or [str(run.network.file)]
        aim = run.search.objective or ("energy" if run.on_a_machine else "io")
        config |= {"search": {**run.search.plain, "objective": aim}, "sample": run.sample, "batch": run.batch}
    if run.technology is not None:
        named = not run.technology.endswith((".yaml", ".yml"))
        paths["technology"] = [str(shipped_path("onchip", run.technology)) if named else run.technology]
    identities = {field: [file_identity(path) for path in files] for field, files in paths.items()}
    if "technology" in identities:
        (config["technology"],) = identities.pop("technology")
    for files in identities.values():
        work["files"] = files
    if run.network is not None and (prune := run.network.prune) is not None:
        usual = {"method": "magnitude", "memory": None, "calibration": None}
        work["prune"] = {key: value for key, value in prune.plain.items() if value != usual.get(key, ...)}
        if prune.calibration is not None:
            paths["calibration"] = [prune.calibration]
            work["prune"]["calibration"] = file_identity(prune.calibration)
    if run.network is not None and run.network.labelled is not None:
        paths["labelled"] = [run.network.labelled]
        work["labelled"] = [file_identity(run.network.labelled)]
    config["dram"] = part_identity(run.dram.plain)
    return config, {**paths, "part": [run.dram.part]}


def _others(section: Section, *names: str) -> dict[str, Any]:
    return {key: value for key, value in section.plain.items() if key not in names}


def plugins_of(
    config: Mapping[str, Any], paths: Mapping[str, list[str]], pieces: Collection[tuple[str, str]] = ()
) -> dict[str, list[dict[str, str]]]:
    """Return field -> name, distribution and version of the outside members a point uses; {} without any."""
    plugins: dict[str, list[dict[str, str]]] = {}
    for path, kind in NAMED_BY.items():
        if not registry(kind).has_outside():
            continue
        for name in dict.fromkeys(_with_tried(kind, _named(config, path.split(".")))):
            _note(plugins, path.split(".")[0], kind, name)
    for field, (kind, reader) in _READERS.items():
        if field not in paths or not (known := registry(kind)).has_outside():
            continue
        if any(entry.origin for entry in known.loadable().values()):
            for name in {reader(config[field], paths[field])} - {one["name"] for one in plugins.get(field, ())}:
                _note(plugins, field, kind, name)
    for folder, name in sorted({*pieces, ("dram", config["dram"]["part"]), ("onchip", _technology(paths))}):
        if name in outside_files(folder):
            origin = outside_files(folder)[name][1]
            plugins.setdefault(_FILES[folder], []).append({"name": name, **dataclasses.asdict(origin)})
    return plugins


def pieces_of(plugins: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the (folder, name) of the outside files that a recorded point was put together from, as far as they are
    still here."""
    return {
        (folder, one["name"])
        for folder, field in _FILES.items()
        for one in plugins.get(field, ())
        if one["name"] in outside_files(folder)
    }


_FILES = {"dram": "dram", "onchip": "technology", "systems": "system", "cache": "caches", "bus": "bus"}
"""Folder of configs/ -> the field of a configuration that names its files."""


def _technology(paths: Mapping[str, list[str]]) -> str:
    (path,) = paths.get("technology", [""])
    return next((name for name, (file, _) in outside_files("onchip").items() if str(file) == path), "")


def _note(plugins: dict[str, list[dict[str, str]]], field: str, kind: str, name: str) -> None:
    entry = _entry(kind, name)
    if entry is not None and entry.origin is not None:
        plugins.setdefault(field, []).append({"name": name, **dataclasses.asdict(entry.origin)})


def _with_tried(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        entry = _entry(kind, name)
        tries = getattr(entry.item, "tries", None) if entry is not None else None
        yield from tries() if tries is not None else ()


def _named(value: Any, path: list[str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _named(item, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _named(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield from value.split("+")


def _entry(kind: str, name: str) -> Entry[Any] | None:
    try:
        return registry(kind)[name]
    except InputError:
        return None  # it cannot be loaded: whoever computes with it says so


def _network_reader(source: Mapping[str, Any], files: list[str]) -> str:
    from traces.readers import reader_name

    try:
        return reader_name(files if source["one_per_layer"] else files[0], "network")
    except (InputError, OSError):
        return ""  # whoever reads it says why it cannot be read


def _trace_reader(source: Mapping[str, Any], files: list[str]) -> str:
    from traces.trace_files.reader import guess_format

    try:
        return source["format"] or guess_format(files[0])
    except (InputError, OSError):
        return ""


_READERS: Mapping[str, tuple[str, Callable[[Mapping[str, Any], list[str]], str]]] = {
    "network": ("network-readers", _network_reader),
    "trace": ("trace-readers", _trace_reader),
}
"""Field of a point with files -> kind and name of the member that reads them."""


_UNSEEN = {
    "engine.outstanding_misses": "has no influence on it",
    "engines": "has no influence on it: one engine makes all accesses",
    "dram.controller": "changes commands and energy, but no engine waits for what it delays",
}


def ignored_settings(points: Iterable[Point]) -> list[str]:
    """Return a sentence for each setting that varies between points of issue time and that issue time does not see."""
    alike = {(id(p.machine), id(p.order), p.measure.timing, p.measure.measure): p for p in points}
    points = list(alike.values())  # what follows sees no more of them, and sections that are alike are one object
    replayed = [p for p in points if p.measure.timing == "replay" and p.measure.measure == "all"]
    ignored = []
    for key, why in _UNSEEN.items():
        settings = [p.field(key) for p in replayed]
        values = {canonical_json(setting) for setting in settings if setting is not None}
        without = any(p.field(key) is None for p in replayed)
        if len(values) + without > 1 or (key == "engines" and values):
            ignored.append(f"{key} {why}")
    found = _without_effect(points)
    if not ignored:
        return found
    return found + [f"timing 'replay' is issue time: {text}; use timing 'system'" for text in ignored]


def _without_effect(points: Sequence[Point]) -> list[str]:
    """Say which settings vary that the machines of some points do not see: strides that no encoder uses, M of a cache
    that stays as it is."""
    played = [p for p in points if p.measure.measure == "all" and p.order is not None]
    found = []
    if len({canonical_json(p.config["stride"]) for p in played}) > 1:
        plain = sorted({p.machine.encoder for p in played if has_tuple_order(p) and not _compares(p.machine.encoder)})
        if plain:
            found.append(f"strides order tuples for Base+XOR: with encoder {' or '.join(plain)} they save nothing")
    sizes: dict[str, set[int]] = {}
    for p in played:
        if p.machine.scratchpad is None and p.order is not None:
            caches = canonical_json([to_json(each) for each in p.machine.caches])
            sizes.setdefault(caches, set()).add(p.order.fast_memory.size)
    if any(len(each) > 1 for each in sizes.values()):
        found.append(
            "fast_memory.size varies while the cache does not: it changes what I/Os are counted and orders made for"
        )
    return found


@cache
def _compares(encoder: str) -> bool:
    from hwmodel.coding.chain import parse_chain
    from hwmodel.coding.stage import ENCODERS, Role

    return any(ENCODERS[name].item.role == Role.SIMILARITY for name in parse_chain(encoder))


def wasted_room(points: Iterable[Point]) -> list[str]:
    layouts = {p.layout.layout for p in points if p.layout is not None and p.machine.caches}
    pitches = {(layout.row_bytes, layout.row_pitch) for layout in layouts if layout.row_bytes < layout.row_pitch}
    return [
        f"rows of {row} bytes begin every {pitch} bytes: {1 - row / pitch:.0%} of what they take in caches is empty; "
        f"set layout.alignment_bytes to {row & -row} to pack them"
        for row, pitch in sorted(pitches)
    ]


def warn_of_ignored(points: Iterable[Point]) -> None:
    points = list(points)
    for text in ignored_settings(points):
        warnings.warn(text, IgnoredSettingWarning, stacklevel=3)
    for text in wasted_room(points):
        warnings.warn(text, WastedRoomWarning, stacklevel=3)
