"""From a configuration to its points: one ordering, one stride, one format each, resolved and named by content."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewatt.config.document import ConfigError, Document
from edgewatt.config.loading import complete
from edgewatt.config.models import RunConfig
from edgewatt.config.sections import Section
from edgewatt.point.files import file_identity, part_hash
from edgewatt.point.json_form import LATER
from edgewatt.point.machine import build_machine
from edgewatt.point.model import Point
from edgewatt.point.plugins import plugins_of
from traces.base.errors import InputError


def points_of(document: Document) -> list[Point]:
    """Return the points of a configuration that was read, after checking that its machine fits together.

    Raises ConfigError naming the place of every problem.
    """
    run, document = complete(document)
    place: tuple[str, ...] = ("dram", "overrides") if run.dram.overrides else ("dram", "part")
    try:
        points = expand(run)
        place = ("bus",) if "bus" in document.data else ("caches",)
        build_machine(points[0])
    except ConfigError:
        raise
    except InputError as error:
        raise ConfigError([(document.mark(place), line) for line in str(error).splitlines()]) from None
    return points


def expand(run: RunConfig) -> list[Point]:
    """Return the points of a configuration: orderings x strides x formats, in the order written."""
    shared, paths = _shared(run)
    configs = [shared]
    if run.trace is None:
        configs = [
            {**shared, "ordering": _member(ordering), "stride": _member(stride), "format": value_format}
            for ordering in run.orderings
            for stride in run.strides
            for value_format in run.formats
        ]
    return [Point.from_config(config, paths, run.name, plugins_of(config)) for config in configs]


def _member(section: Section) -> dict[str, Any]:
    """Return a kind and its parameters; one that was added later is absent while it has its default."""
    fills = getattr(section, "_fills", None)
    later = {f.name: f.default for f in dataclasses.fields(fills) if f.metadata.get(LATER)} if fills else {}
    return {key: value for key, value in section.model_dump().items() if key not in later or value != later[key]}


def _shared(run: RunConfig) -> tuple[dict[str, Any], dict[str, list[str]]]:
    paths: dict[str, list[str]] = {}
    config: dict[str, Any] = {}
    if run.trace is not None:
        paths["trace"] = [run.trace.file]
        config["trace"] = {"files": [file_identity(run.trace.file)], **run.trace.model_dump(exclude={"file"})}
    else:
        assert run.network is not None
        network = run.network.model_dump(exclude={"file", "files", "generate"})
        network["generate"] = _member(run.network.generate) if run.network.generate is not None else None
        if run.network.generate is None:
            paths["network"] = run.network.files or [str(run.network.file)]
            network["files"] = [file_identity(path) for path in paths["network"]]
            network["one_per_layer"] = run.network.files is not None
        config["network"] = network
        config |= run.model_dump(include={"fast_memory", "search", "layout", "sample"})
    config |= run.model_dump(include={"caches", "bus", "encoder", "engine", "timing", "measure", "seed"})
    config["dram"] = _dram(run.dram.model_dump())
    paths["part"] = [run.dram.part]
    return config, paths


def _dram(dram: Mapping[str, Any]) -> dict[str, Any]:
    path = dram["part"]
    name = Path(path).stem if path.endswith((".yaml", ".yml")) else path
    return {**dram, "part": name, "sha256": part_hash(path, dram["overrides"])}
