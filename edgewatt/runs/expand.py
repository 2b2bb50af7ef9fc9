"""From a configuration to its points: one ordering, one stride, one format each, resolved and named by content."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from edgewatt.config.document import ConfigError, Document
from edgewatt.config.kinds import registry
from edgewatt.config.loading import complete
from edgewatt.config.models import RunConfig
from edgewatt.config.problems import KnownSections
from edgewatt.config.sections import Section
from edgewatt.runs.files import file_identity, load_part_with, part_hash
from edgewatt.runs.json_form import FILE, LATER
from edgewatt.runs.machine import build_machine
from edgewatt.runs.model import Point
from edgewatt.runs.plugins import plugins_of
from traces.base.errors import InputError
from traces.base.resources import shipped_path


def points_of(document: Document, known: KnownSections | None = None) -> list[Point]:
    """Return the points of a configuration that was read, after checking that its machine fits together.

    known: sections of configurations like this one; the document itself may then be changed. Raises ConfigError naming
    the place of every problem.
    """
    run, document = complete(document, known)
    place: tuple[str, ...] = ("dram", "overrides") if run.dram.overrides else ("dram", "part")
    try:
        points = expand(run, document.pieces)
        place = ("bus",) if "bus" in document.data else ("caches",)
        build_machine(points[0])
    except ConfigError:
        raise
    except InputError as error:
        raise ConfigError([(document.mark(place), line) for line in str(error).splitlines()]) from None
    return points


def expand(run: RunConfig, pieces: Collection[tuple[str, str]] = ()) -> list[Point]:
    """Return the points of a configuration: orderings x layouts x strides x formats, in the order written.

    pieces: (folder of configs/, name) of the named files that it was put together from.
    """
    shared, paths = _shared(run)
    configs = [({**shared, **memory}, paths) for memory in _memories(run)]
    if run.trace is None:
        configs = [
            (
                {
                    **config,
                    "fast_memory": _fast_memory(run, layout),
                    "layout": _layout(run, layout),
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
    return [Point.from_config(config, files, run.name, plugins_of(config, files, pieces)) for config, files in configs]


def _memories(run: RunConfig) -> list[dict[str, Any]]:
    """Return the on-chip memories to compare: caches and scratchpad of each."""
    if run.gpu is not None:
        return [{"caches": [], "scratchpad": None}]
    if run.onchip is not None:
        return [each.plain for each in run.onchip]
    if run.scratchpad is not None:
        return [{"caches": [], "scratchpad": run.scratchpad.plain}]
    return [{"caches": [cache.plain for cache in run.caches], "scratchpad": None}]


def _fast_memory(run: RunConfig, layout: Any) -> dict[str, Any]:
    """Return the fast memory that orders are made for: that of the first scratchpad, but for what the user says."""
    said = run.fast_memory.plain
    pads = [each.scratchpad for each in run.onchip or ()] if run.onchip is not None else [run.scratchpad]
    pad = next((pad for pad in pads if pad is not None), None)
    if pad is None:
        return said
    spec, given = pad.build(), run.fast_memory.model_fields_set
    row_pitch = layout.build().row_pitch
    own = {"policy": spec.policy, "pinning": spec.pinning}
    if "size" not in given:
        own["size"] = spec.memory(row_pitch)
    return {**said, **{key: value for key, value in own.items() if key not in given}}


def _layout(run: RunConfig, layout: Any) -> dict[str, Any]:
    """Return a layout of the run; `auto` is one for all orderings: rows if all keep them whole, else tuples."""
    from traces.layout.settings import AUTO, AUTO_CHOICE

    said: dict[str, Any] = dict(layout.plain)
    if said["kind"] == AUTO and len(run.orderings) > 1 and run.measure == "all":
        members = [registry("orderings")[section.kind].item for section in run.orderings]
        said["kind"] = AUTO_CHOICE[0] if all(member.whole_rows for member in members) else AUTO_CHOICE[-1]
    return said


def _member(section: Section) -> dict[str, Any]:
    """Return a kind and its parameters: files by content; later versions' parameters only if not at their default."""
    member = dict(section.plain)
    for field in _special_fields(type(section)):
        if field.metadata.get(LATER) and member.get(field.name) == field.default:
            del member[field.name]
        elif field.metadata.get(FILE) and member.get(field.name) is not None:
            member[field.name] = file_identity(member[field.name])
    return member


@cache
def _special_fields(section: type[Section]) -> list[dataclasses.Field[Any]]:
    """Return the fields of a section's dataclass that were added later or name files."""
    fills = getattr(section, "_fills", None)
    fields = dataclasses.fields(fills) if fills else ()
    return [field for field in fields if field.metadata.get(LATER) or field.metadata.get(FILE)]


def _files(section: Section) -> dict[str, list[str]]:
    """Return where the files lie that an ordering's parameters name."""
    names = [field.name for field in _special_fields(type(section)) if field.metadata.get(FILE)]
    files = [getattr(section, name) for name in names if getattr(section, name) is not None]
    return {"ordering": files} if files else {}


def _shared(run: RunConfig) -> tuple[dict[str, Any], dict[str, list[str]]]:
    paths: dict[str, list[str]] = {}
    config: dict[str, Any] = {}
    if run.trace is not None:
        paths["trace"] = [run.trace.file]
        config["trace"] = {"files": [file_identity(run.trace.file)], **_without(run.trace, "file")}
    else:
        assert run.network is not None
        network = _without(run.network, "file", "files", "generate")
        network["generate"] = _member(run.network.generate) if run.network.generate is not None else None
        if run.network.generate is None:
            paths["network"] = run.network.files or [str(run.network.file)]
            network["files"] = [file_identity(path) for path in paths["network"]]
            network["one_per_layer"] = run.network.files is not None
        config["network"] = network
        config |= {"search": run.search.plain, "sample": run.sample, "batch": run.batch}
    config |= {
        "bus": run.bus.plain, "engine": run.engine.plain, "engines": run.engines.plain,
        "gpu": None if run.gpu is None else run.gpu.plain, "encoder": run.encoder, "timing": run.timing,
        "measure": run.measure, "seed": run.seed, "accuracy": run.accuracy,
    }  # fmt: skip
    if run.technology is not None:
        technology = run.technology
        path = technology if technology.endswith((".yaml", ".yml")) else str(shipped_path("onchip", technology))
        paths["technology"] = [path]
        config["technology"] = file_identity(path)
    config["dram"] = _dram(run.dram.plain)
    paths["part"] = [run.dram.part]
    return config, paths


def _without(section: Section, *names: str) -> dict[str, Any]:
    return {key: value for key, value in section.plain.items() if key not in names}


def _dram(dram: Mapping[str, Any]) -> dict[str, Any]:
    path = dram["part"]
    name = load_part_with(path, {}).name if path.endswith((".yaml", ".yml")) else path
    return {**dram, "part": name, "sha256": part_hash(path, dram["overrides"])}
