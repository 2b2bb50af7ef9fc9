"""From a configuration to its points: one ordering, one stride, one format each, resolved and named by content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from edgewatt.config.models import RunConfig
from edgewatt.results.record import content_hash
from traces.base.errors import InputError


@dataclass(frozen=True)
class Point:
    """One thing to compute.

    config: plain JSON values with every default filled in and files named by content, the same on any machine.
    paths: where the files lie here. name: the user's label; neither is part of the hash.
    """

    config: Mapping[str, Any]
    paths: Mapping[str, list[str]]
    name: str
    hash: str


def expand(run: RunConfig) -> list[Point]:
    """Return the points of a configuration: orderings x strides x formats, in the order written."""
    shared, paths = _shared(run)
    if run.trace is not None:
        return [_point(shared, paths, run.name)]
    return [
        _point(
            {**shared, "ordering": ordering.model_dump(), "stride": stride.model_dump(), "format": value_format},
            paths,
            run.name,
        )
        for ordering in run.orderings
        for stride in run.strides
        for value_format in run.formats
    ]


def _point(config: dict[str, Any], paths: dict[str, list[str]], name: str) -> Point:
    return Point(config, paths, name, content_hash(config))


def _shared(run: RunConfig) -> tuple[dict[str, Any], dict[str, list[str]]]:
    paths: dict[str, list[str]] = {}
    config: dict[str, Any] = {}
    if run.trace is not None:
        paths["trace"] = [run.trace.file]
        config["trace"] = {"files": [_identity(run.trace.file)], **run.trace.model_dump(exclude={"file"})}
    else:
        assert run.network is not None
        network = run.network.model_dump(exclude={"file", "files"})
        if run.network.generate is None:
            paths["network"] = run.network.files or [str(run.network.file)]
            network["files"] = [_identity(path) for path in paths["network"]]
            network["one_per_layer"] = run.network.files is not None
        config["network"] = network
        config |= run.model_dump(include={"fast_memory", "search", "layout", "sample"})
    config |= run.model_dump(include={"caches", "bus", "encoder", "engine", "timing", "measure", "seed"})
    config["dram"], paths["part"] = _dram(run)
    return config, paths


def _dram(run: RunConfig) -> tuple[dict[str, Any], list[str]]:
    """Name the part by its content: the constants decide the counts and energies, not the file's name."""
    dram = run.dram.model_dump()
    path = run.dram.part
    dram["part"] = Path(path).stem if path.endswith((".yaml", ".yml")) else path
    dram["sha256"] = _part_hash(path, content_hash(dram["overrides"]), run)
    return dram, [path]


_PART_HASHES: dict[tuple[str, str, tuple[int, int] | None], str] = {}


def _part_hash(path: str, overrides: str, run: RunConfig) -> str:
    key = (path, overrides, _stamp(path) if path.endswith((".yaml", ".yml")) else None)
    if key not in _PART_HASHES:
        _PART_HASHES[key] = content_hash(part_content(load_part_with(path, run.dram.overrides)))
    return _PART_HASHES[key]


def load_part_with(part: str, overrides: Mapping[str, Any]) -> Any:
    """Return the DRAM part of that name or file with some of its fields replaced."""
    from hwmodel.dram.engine import load_part

    return load_part({"extends": part, "name": Path(part).stem, **overrides}) if overrides else load_part(part)


def part_content(part: Any) -> dict[str, Any]:
    """Return all that a part says, as JSON values, without the wording of its sources."""
    import dataclasses

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, tuple | list) else value

    return {
        f.name: plain(getattr(part, f.name)) for f in dataclasses.fields(part) if f.name not in ("constants", "note")
    }


def _identity(path: str) -> dict[str, str]:
    return {"name": Path(path).name, "sha256": _content(path, _stamp(path))}


def file_identity(path: str) -> dict[str, str]:
    """Return the name and content hash of a file, or of all files in a folder. Raises InputError if unreadable."""
    return _identity(path)


def _stamp(path: str) -> tuple[int, int]:
    try:
        state = Path(path).stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=256)
def _content(path: str, stamp: tuple[int, int]) -> str:
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
