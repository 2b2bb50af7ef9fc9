"""Which members of other distributions a point uses: they are part of what it computes, so of its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from edgewatt.config.kinds import NAMED_BY, registry
from traces.base.errors import InputError
from traces.base.registry import Entry
from traces.base.resources import outside_files


def plugins_of(
    config: Mapping[str, Any], paths: Mapping[str, list[str]], pieces: Collection[tuple[str, str]] = ()
) -> dict[str, list[dict[str, str]]]:
    """Return field -> name, distribution, version and SHA-256 of the outside members a point uses; {} without any.

    Those it names, those that a named one may try in turn, the readers of its files (paths: field -> files), and the
    files that it was put together from (pieces: (folder of configs/, name)).
    """
    plugins: dict[str, list[dict[str, str]]] = {}
    for path, kind in NAMED_BY.items():
        if not registry(kind).has_outside():
            continue
        for name in dict.fromkeys(_with_tried(kind, _named(config, path.split(".")))):
            _note(plugins, path.split(".")[0], kind, name)
    for field, (kind, reader) in _READERS.items():
        if field in paths and any(entry.origin for entry in registry(kind).sound().values()):
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
    """Yield members and, after each, the members that it may ask in turn."""
    for name in names:
        yield name
        entry = _entry(kind, name)
        tries = getattr(entry.item, "tries", None) if entry is not None else None
        yield from tries() if tries is not None else ()


def _named(value: Any, path: list[str]) -> Iterator[str]:
    """Yield the names of members at a field of the configuration."""
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
