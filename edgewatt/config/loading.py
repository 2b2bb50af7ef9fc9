"""From files and ``-s key=value`` to one validated configuration."""

from __future__ import annotations

import contextlib
import marshal
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from edgewatt.config.kinds import KINDS, registry
from edgewatt.config.models import SYSTEM_KEYS, RunConfig, SystemFile
from traces.base.checks import is_whole
from traces.base.document import (
    Change,
    ConfigError,
    Document,
    Loc,
    Mark,
    locs_in,
    parse_document,
    read_document,
)
from traces.base.errors import InputError, did_you_mean, printable, shown
from traces.base.files import Stamp, need_regular, stamp_of
from traces.base.resources import network_file, shipped_names, shipped_path
from traces.base.schema import M, refusal, sections_in
from traces.base.units import is_size, size_in_bytes
from traces.layout.settings import MACHINE_LANES

_FILE_KEYS = ("network.file", "network.files", "network.labelled", "network.prune.calibration", "trace.file")
_NAME_OR_FILE_KEYS = ("dram.part", "system", "bus", "caches", "technology", "base")  # files where they end in .yaml
_ONCHIP_KEYS = ("caches", "scratchpad", "onchip")  # a configuration that has one does not take the system's


def complete(document: Document, known: Known | None = None) -> tuple[RunConfig, Document]:
    """Return the configuration of a document, which this changes, and the document with all that its names stand for.

    known: of the configurations before it in a sweep.
    """
    document = resolve(document)
    return validate(RunConfig, document, known), document


def read_with_paths(path: str | Path) -> Document:
    document = read_document(path)
    if not isinstance(document.data, dict):
        raise document.fail((), "a configuration is a mapping: lines such as 'network:' and 'orderings:'")
    document.data = _absolute(document.data, Path(os.path.realpath(path)).parent, "", None)
    return document


def as_document(config: str | Path | Mapping[str, Any]) -> Document:
    if not isinstance(config, Mapping):
        return read_with_paths(_shipped_file(config))
    document = Document(_absolute(_plain(config, 0), Path.cwd(), "", None))
    for loc in locs_in(document.data):
        mark = Mark("config" + "".join(f"[{step!r}]" for step in loc))
        document.keys[loc] = document.values[loc] = mark
    return document


def _shipped_file(name: str | Path) -> Path:
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
    return value.tolist() if hasattr(value, "tolist") else value  # of NumPy


def _absolute(value: Any, folder: Path, key: str, mapping: Any) -> Any:
    """Return a value with every path in it resolved against `folder`.

    key: where it stands, dotted, without indices of lists. mapping: the one that it stands in; None in a list.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            value[name] = _absolute(item, folder, f"{key}.{name}" if key else name, value)
    elif isinstance(value, list):
        value[:] = [_absolute(item, folder, key, None) for item in value]
    elif isinstance(value, str) and value:
        names = (*_FILE_KEYS, *(_NAME_OR_FILE_KEYS if value.endswith((".yaml", ".yml")) else ()))
        is_path = f".{key}".endswith(tuple(f".{name}" for name in names))
        if f".{key}".endswith(".network.file"):
            value = network_file(value, folder)
        return str(folder / value) if is_path or _is_order_file(key, mapping) else value
    return value


def _is_order_file(key: str, mapping: Any) -> bool:
    """Whether an ordering declares that its parameter `key` names a file: the one beside it there, or else any."""
    section, _, name = key.rpartition(".")
    if not (section == "orderings" or section.endswith(".orderings")) or name == "kind":
        return False
    kind, orderings = mapping.get("kind") if mapping is not None else None, registry("orderings")
    members = [orderings[kind]] if isinstance(kind, str) and kind in orderings else [*orderings.loadable().values()]
    return any(
        field.name == name and field.metadata.get("file")
        for member in members
        for field in (fields(member.parameters) if member.parameters else ())
    )


def changes_of(overrides: Iterable[str], document: Document) -> list[Change]:
    """Read ``key=value`` texts; values are YAML, paths in them are relative to the working folder."""
    changes: list[Change] = []
    for text in overrides:
        key, equals, value = text.partition("=")
        mark = Mark(f"-s {printable(text)}")
        if not equals or not key or not all(key.split(".")):
            raise ConfigError([(mark, "expected KEY=VALUE, such as -s dram.part=lpddr4-3200")])
        try:
            part = parse_document(value or "~", mark.file)
        except ConfigError as error:
            raise ConfigError([(mark, message) for _, message in error.problems]) from None
        made = {loc[:2] for loc, _, _ in changes}  # axes that a text before this one adds
        loc = _overridden(document, key, [axis for axis in made if len(axis) == 2])
        data = _absolute(part.data, Path.cwd(), ".".join(step for step in loc if not is_whole(step)), None)
        changes.append((loc, Document(data, dict.fromkeys(part.keys, mark), dict.fromkeys(part.values, mark)), mark))
    return changes


def _overridden(document: Document, key: str, made: Iterable[Loc]) -> tuple[str, ...]:
    section, _, rest = key.partition(".")
    if section not in ("grid", "zip") or not rest or "base" not in document.data:
        return tuple(key.split("."))
    axes = document.data.get(section)
    for axis in (*(axes if isinstance(axes, dict) else ()), *(str(name) for where, name in made if where == section)):
        if rest.startswith(f"{axis}."):
            return (section, axis, *rest[len(axis) + 1 :].split("."))
    return (section, rest)


def resolve(document: Document) -> Document:
    """Replace `system`, and the names in `caches` and `bus`, by what they name; return the document, or a new one."""
    if "system" in document.data:
        document = _on_system(document)
    for loc, folder in list(_named_pieces(document.data)):
        piece = _piece(document, loc, folder)
        document.put(loc, piece, document.mark(loc, key=True))
    return document


def _named_pieces(data: Any) -> Iterator[tuple[Loc, str]]:
    """Yield the loc of each name of a bus or cache, with the folder of configs/ that holds what it names."""
    if isinstance(data.get("bus"), str):
        yield ("bus",), "bus"
    onchip = data.get("onchip")
    memories = [
        ((), data),
        *((("onchip", i), each) for i, each in enumerate(onchip if isinstance(onchip, list) else ())),
    ]
    for loc, memory in memories:
        if isinstance(memory, dict) and isinstance(memory.get("caches"), str):
            memory["caches"] = [memory["caches"]]
        levels = memory.get("caches") if isinstance(memory, dict) else None
        for i, level in enumerate(levels if isinstance(levels, list) else ()):
            if isinstance(level, str):
                yield (*loc, "caches", i), "cache"


def _on_system(document: Document) -> Document:
    """Return a document with what its system names laid under it."""
    system = _piece(document, ("system",), "systems")
    validate(SystemFile, system)
    own = any(key in document.data for key in _ONCHIP_KEYS)
    for key in [*system.data]:
        if key not in SYSTEM_KEYS or (own and key in _ONCHIP_KEYS and key not in document.data):
            system.take((key,))
    del document.data["system"]
    if "trace" not in document.data:
        batch, layout = document.data.get("batch"), document.data.get("layout", {})
        lanes = min(MACHINE_LANES, batch) if isinstance(batch, int) and batch > 0 else MACHINE_LANES
        layouts = [_with_lanes(each, lanes) for each in (layout if isinstance(layout, list) else [layout])]
        document.data["layout"] = layouts if isinstance(layout, list) else layouts[0]
    system.values[()], system.pieces = document.mark(()), document.pieces  # what is missing is missing in the user's
    system.lay(document)
    return system


def _with_lanes(layout: Any, lanes: int) -> Any:
    layout = {"kind": layout} if isinstance(layout, str) else layout
    return {"lanes": lanes, **layout} if isinstance(layout, dict) else layout


def _piece(document: Document, loc: Loc, folder: str) -> Document:
    """Return what the name at `loc` stands for; who made a cache or a bus, and why, is not part of it."""
    name = document.get(loc)
    if not isinstance(name, str):
        raise document.fail(loc, f"expected the name of a file under configs/{folder}, or a path ending in .yaml")
    try:
        of_user = name.endswith((".yaml", ".yml"))
        path = Path(name) if of_user else shipped_path(folder, name)
    except InputError as error:
        raise document.fail(loc, str(error)) from None
    if not of_user:
        document.pieces.add((folder, path.stem))
    piece = _named_file(document, loc, path, _read_piece).copy()
    for key in ("description", "source") if folder != "systems" else ():
        piece.data.pop(key, None)
    return piece


def base_of(document: Document) -> Document:
    base = document.data["base"]
    if isinstance(base, str) and base.endswith((".yaml", ".yml")):
        return _named_file(document, ("base",), Path(base), read_with_paths)
    if not isinstance(base, dict):
        given = f", not {shown(base)}" if isinstance(base, str) else ""
        raise document.fail(("base",), f"expected a mapping or the path of a .yaml file{given}")
    return document.at(("base",))


def _named_file(document: Document, loc: Loc, path: Path, read: Callable[[Path], Document]) -> Document:
    try:
        need_regular(path)
        return read(path)
    except InputError as error:
        if not path.exists():
            raise document.fail(loc, f"no such file: {printable(path)}") from None
        if isinstance(error, ConfigError):
            raise
        raise document.fail(loc, str(error)) from None


def _read_piece(path: Path) -> Document:
    return _read_once(path, stamp_of(path))


@lru_cache(maxsize=256)
def _read_once(path: Path, stamp: Stamp) -> Document:
    return read_with_paths(path)


Known = dict[tuple[str, bytes], Any]
"""Key of a section and what it says, 1 apart from 1.0 and from true -> the valid section."""


def validate(model: type[M], document: Document, known: Known | None = None) -> M:
    """Validate a document. Raises ConfigError with every problem at its file, line and column.

    Sizes such as '8 KiB' become bytes, and names are taken in any case: the document then holds them as they are.
    known: sections of documents like this one, which share most of theirs; new ones are added.
    """
    data, texts = document.data, {}
    if known is not None:
        with contextlib.suppress(ValueError):  # no value of a file is in it
            texts = {key: (key, marshal.dumps(of, 2)) for key, of in data.items() if isinstance(of, dict | list)}
    old = {key: known[what] for key, what in texts.items() if known and what in known}
    new = {key: value for key, value in data.items() if key not in old} if old else data
    as_meant(new)
    try:
        valid = model.model_validate({**new, **old} if old else data)
    except ValidationError as error:
        document.data = {**data, **new} if old else data
        raise refusal(model, document, error, lambda loc, text: text + _as_mapping(document, loc, text)) from None
    if known is not None:
        known.update((what, getattr(valid, key)) for key, what in texts.items() if key not in old)
    return valid


def _as_mapping(document: Document, loc: Loc, text: str) -> str:
    """Say how a network, a matrix or a DRAM part is written, where a name or a list of files stands alone."""
    key = loc[-1] if loc else None
    if key not in ("network", "matrix", "dram") or not text.startswith("expected "):
        return ""
    value = document.get(loc)
    files = value if isinstance(value, list) else [value]
    if not files or not all(isinstance(name, str) for name in files):
        return ""
    if key == "dram":
        return f" (write {{part: {files[0]}}})" if len(files) == 1 and len(files[0]) <= 40 else ""
    many = f"files: [{', '.join(files)}]" if isinstance(value, list) and key == "network" else f"file: {files[0]}"
    return f" (write {{{many}}})" if len(many) <= 60 else f" (write {{{many.partition(':')[0]}: ...}})"


def as_meant(data: Any, key: str = "") -> None:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in list(items):
        here = step if isinstance(step, str) else key
        if not isinstance(value, str):
            if isinstance(value, dict | list):
                as_meant(value, here)
        elif here.endswith("_bytes") and is_size(value):
            with contextlib.suppress(InputError):
                data[step] = size_in_bytes(value)
        elif value != value.lower() and here not in _FREE_TEXT and not {"/", "\\", "."} & set(value):
            parts = value.lower().split("+")
            if all(part in _known_names() for part in parts):
                data[step] = value.lower()


_FREE_TEXT = ("name", "names", "description", "source", "file", "files", "path")


@cache
def _known_names() -> frozenset[str]:
    names = {name for kind in KINDS for name in registry(kind)}
    names |= {name for folder in ("dram", "cache", "bus", "systems", "onchip") for name in shipped_names(folder)}
    return frozenset(names | set(_words(RunConfig)))


def _words(model: type[BaseModel]) -> Iterator[str]:
    for field in model.model_fields.values():
        for hint in (field.annotation, *typing.get_args(field.annotation)):
            if typing.get_origin(hint) is typing.Literal:
                yield from (word for word in typing.get_args(hint) if isinstance(word, str))
        for section in dict.fromkeys(sections_in((field.annotation, field.metadata), None)):
            yield from _words(section)
