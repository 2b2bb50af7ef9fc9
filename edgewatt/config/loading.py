"""From files and ``-s key=value`` to one validated configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import registry
from edgewatt.config.models import RunConfig, SystemFile
from edgewatt.config.problems import KnownSections, validate
from traces.base.document import (
    ConfigError,
    Document,
    Mark,
    Place,
    dotted,
    parse_document,
    places_in,
    read_document,
    undotted,
    value_at,
)
from traces.base.errors import InputError, did_you_mean, printable
from traces.base.files import need_regular
from traces.base.resources import shipped_names, shipped_path

_FILE_KEYS = (
    "network.file",
    "network.files",
    "network.labelled",
    "network.prune.calibration",
    "trace.file",
)  # always paths
_NAME_OR_FILE_KEYS = (
    "dram.part",
    "system",
    "bus",
    "caches",
    "technology",
    "base",
)  # paths only where they end in .yaml
_SYSTEM_KEYS = (
    "fast_memory",
    "caches",
    "scratchpad",
    "technology",
    "bus",
    "encoder",
    "dram",
    "engine",
    "engines",
    "gpu",
)
_ONCHIP_KEYS = ("caches", "scratchpad", "onchip", "gpu")  # a configuration that has one does not take the system's


def complete(document: Document, known: KnownSections | None = None) -> tuple[RunConfig, Document]:
    """Put named pieces (system, caches, bus) into a document; return the validated configuration and the document.

    known: sections of configurations like this one; the document itself is then changed, not a copy of it.
    """
    if known is None:
        document = resolve(document.copy())
        return validate(RunConfig, document), document
    document = resolve(document)
    return known.validate(document), document


def read_with_paths(path: str | Path) -> Document:
    """Read a file and make the paths in it absolute, so that parts of it can be put into other documents."""
    document = read_document(path)
    if not isinstance(document.data, dict):
        raise document.fail((), "a configuration is a mapping: lines such as 'network:' and 'orderings:'")
    absolute_paths(document, Path(os.path.realpath(path)).parent)
    return document


def as_document(config: str | Path | Mapping[str, Any]) -> Document:
    """Return a configuration as a document: a file, a shipped sweep's or example's name, or a mapping."""
    if not isinstance(config, Mapping):
        return read_with_paths(_shipped_file(config))
    document = Document(_plain(config, 0))
    for place in places_in(document.data):
        mark = Mark("config" + "".join(f"[{step!r}]" for step in place))
        document.keys[place] = document.values[place] = mark
    absolute_paths(document, Path.cwd())
    return document


def _shipped_file(name: str | Path) -> Path:
    """Return the file of a shipped sweep's or example's name; anything else is a path already."""
    path = Path(name)
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    known = {each: folder for folder in ("examples", "sweeps") for each in shipped_names(folder)}
    if path.name not in known:
        raise InputError(
            f"{printable(path.name)}: no such file, and no shipped sweep or example of that name"
            f"{did_you_mean(path.name, known)}"
        )
    return shipped_path(known[path.name], path.name)


def _plain(value: Any, depth: int) -> Any:
    if depth > 32:
        raise InputError("the configuration is nested more than 32 levels deep")
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") else value


def absolute_paths(document: Document, folder: Path, prefix: Place = ()) -> None:
    """Resolve every path in the document against `folder`; `prefix` is where the document will be put."""
    for place in list(places_in(document.data)):
        if not isinstance(value := document.get(place), str):
            continue
        key = dotted(tuple(step for step in prefix + place if isinstance(step, str)))
        is_path = any(key == k or key.endswith(f".{k}") for k in _FILE_KEYS)
        is_path |= value.endswith((".yaml", ".yml")) and any(
            key == k or key.endswith(f".{k}") for k in _NAME_OR_FILE_KEYS
        )
        is_path |= _is_order_file(document.data, place, key)
        if is_path and value:
            resolved = str(folder / value)
            if place:
                document.get(place[:-1])[place[-1]] = resolved
            else:
                document.data = resolved


def _is_order_file(data: Any, place: Place, key: str) -> bool:
    """Whether an ordering declares that its parameter `key` names a file: the one beside it there, or else any."""
    section, _, name = key.rpartition(".")
    if not (section == "orderings" or section.endswith(".orderings")) or name == "kind":
        return False
    data = value_at(data, place[:-1])
    said, orderings = data.get("kind") if place and isinstance(data, dict) else None, registry("orderings")
    members = [orderings[said]] if isinstance(said, str) and said in orderings else [*orderings.sound().values()]
    return any(
        field.name == name and field.metadata.get("file")
        for member in members
        for field in (fields(member.parameters) if member.parameters else ())
    )


def apply_overrides(document: Document, overrides: Iterable[str]) -> None:
    """Apply ``key=value`` texts; values are YAML, paths in them are relative to the working folder."""
    for text in overrides:
        key, equals, value = text.partition("=")
        mark = Mark(f"-s {printable(text)}")
        if not equals or not key or not all(key.split(".")):
            raise ConfigError([(mark, "expected KEY=VALUE, such as -s dram.part=lpddr4-3200")])
        try:
            part = parse_document(value or "~", mark.file)
        except ConfigError as error:
            raise ConfigError([(mark, message) for _, message in error.problems]) from None
        place = _overridden(document, key)
        absolute_paths(part, Path.cwd(), place)
        document.put(place, Document(part.data, dict.fromkeys(part.keys, mark), dict.fromkeys(part.values, mark)), mark)


def _overridden(document: Document, key: str) -> Place:
    """Return the place a dotted key means; the keys under a sweep's `grid` and `zip` hold dots of their own."""
    section, _, rest = key.partition(".")
    if section not in ("grid", "zip") or not rest or "base" not in document.data:
        return undotted(key)
    axes = document.data.get(section)
    for axis in axes if isinstance(axes, dict) else ():
        if rest.startswith(f"{axis}."):
            return (section, axis, *undotted(rest[len(axis) + 1 :]))
    return (section, rest)


def resolve(document: Document) -> Document:
    """Replace `system`, and the names in `caches` and `bus`, by what they name; return the document, or a new one."""
    if not isinstance(document.data, dict):
        raise document.fail((), "a configuration is a mapping")
    if "system" in document.data:
        piece = _piece(document, ("system",), "systems")
        validate(SystemFile, piece)
        under = Document({}, {(): document.mark((), key=True)}, {(): document.mark(())}, document.pieces)
        own = any(key in document.data for key in _ONCHIP_KEYS)
        for key in _SYSTEM_KEYS:
            if key in piece.data and not (own and key in _ONCHIP_KEYS and key not in document.data):
                under.put((key,), piece.at((key,)), piece.mark((key,), key=True))
        document.take(("system",))
        merge(under, document)
        document = under
    if isinstance(document.data.get("bus"), str):
        document.put(("bus",), _described(_piece(document, ("bus",), "bus")), document.mark(("bus",), key=True))
    onchip = document.data.get("onchip")
    for index in range(len(onchip) if isinstance(onchip, list) else 0):
        _put_caches(document, ("onchip", index))
    _put_caches(document, ())
    return document


def _put_caches(document: Document, at: Place) -> None:
    """Replace the names in the `caches` of one memory by what they name."""
    data, here = document.get(at), (*at, "caches")
    caches = data.get("caches") if isinstance(data, dict) else None
    if isinstance(caches, str):
        caches = [caches]
        document.put(here, Document(caches, {}, {(0,): document.mark(here)}))
    for index, cache in enumerate(caches if isinstance(caches, list) else ()):
        if isinstance(cache, str):
            place = (*here, index)
            document.put(place, _described(_piece(document, place, "cache")), document.mark(place))


def merge(under: Document, over: Document, place: Place = ()) -> None:
    """Lay `over` on `under`: mappings key by key, everything else replaced."""
    data = over.get(place)
    for key in data:
        here = (*place, key)
        if isinstance(data[key], dict) and isinstance(under.get(place).get(key), dict):
            under.values[here] = over.mark(here)
            merge(under, over, here)
        else:
            under.put(here, over.at(here), over.mark(here, key=True))


def _described(piece: Document) -> Document:
    for key in ("description", "source"):
        if key in piece.data:
            piece.take((key,))
    return piece


def _piece(document: Document, place: Place, folder: str) -> Document:
    name = document.get(place)
    if not isinstance(name, str):
        raise document.fail(place, f"expected the name of a file under configs/{folder}, or a path ending in .yaml")
    try:
        of_user = name.endswith((".yaml", ".yml"))
        path = Path(name) if of_user else shipped_path(folder, name)
        need_regular(path)
    except InputError as error:
        raise document.fail(place, str(error)) from None
    if not of_user:
        document.pieces.add((folder, path.stem))
    try:
        return _read_piece(path).copy()
    except ConfigError as error:
        if not path.exists():
            raise document.fail(place, f"no such file: {printable(path)}") from None
        raise error


@lru_cache(maxsize=256)
def _read_piece(path: Path) -> Document:
    return read_with_paths(path)
