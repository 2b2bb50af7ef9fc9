"""From files and ``-s key=value`` to one validated configuration."""

from __future__ import annotations

import contextlib
import os
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from edgewatt.config.kinds import KINDS, registry
from edgewatt.config.models import SYSTEM_KEYS, RunConfig, SystemFile
from edgewatt.config.sections import KindChoice, keys_of
from edgewatt.config.source import network_file
from traces.base.checks import is_whole
from traces.base.document import ConfigError, Document, Loc, Mark, locs_in, parse_document, read_document
from traces.base.errors import InputError, did_you_mean, printable, shown
from traces.base.files import need_regular
from traces.base.resources import shipped_names, shipped_path
from traces.base.units import is_size, size_in_bytes
from traces.layout.settings import MACHINE_LANES

M = TypeVar("M", bound=BaseModel)

_FILE_KEYS = ("network.file", "network.files", "network.labelled", "network.prune.calibration", "trace.file")
_NAME_OR_FILE_KEYS = ("dram.part", "system", "bus", "caches", "technology", "base")  # files where they end in .yaml
_ONCHIP_KEYS = ("caches", "scratchpad", "onchip")  # a configuration that has one does not take the system's


def complete(document: Document) -> tuple[RunConfig, Document]:
    document = resolve(document.copy())
    return validate(RunConfig, document), document


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
    return value.item() if hasattr(value, "item") else value


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
        loc = _overridden(document, key)
        within = ".".join(step for step in loc if not is_whole(step))
        data = _absolute(part.data, Path.cwd(), within, None)
        document.put(loc, Document(data, dict.fromkeys(part.keys, mark), dict.fromkeys(part.values, mark)), mark)


def _overridden(document: Document, key: str) -> tuple[str, ...]:
    section, _, rest = key.partition(".")
    if section not in ("grid", "zip") or not rest or "base" not in document.data:
        return tuple(key.split("."))
    axes = document.data.get(section)
    for axis in axes if isinstance(axes, dict) else ():
        if rest.startswith(f"{axis}."):
            return (section, axis, *rest[len(axis) + 1 :].split("."))
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
        for key in SYSTEM_KEYS:
            if key in piece.data and not (own and key in _ONCHIP_KEYS and key not in document.data):
                under.put((key,), piece.at((key,)), piece.mark((key,), key=True))
        mark = document.mark(("system",))
        document.take(("system",))
        under.lay(document)
        document = under
        _put_lanes(document, mark)
    if isinstance(document.data.get("bus"), str):
        document.put(("bus",), _piece(document, ("bus",), "bus"), document.mark(("bus",), key=True))
    onchip = document.data.get("onchip")
    for index in range(len(onchip) if isinstance(onchip, list) else 0):
        _put_caches(document, ("onchip", index))
    _put_caches(document, ())
    return document


def _put_lanes(document: Document, mark: Mark) -> None:
    if "trace" in document.data:
        return
    given, batch = document.data.get("layout", {}), document.data.get("batch")
    lanes = min(MACHINE_LANES, batch) if isinstance(batch, int) and batch > 0 else MACHINE_LANES
    for at in [("layout", k) for k in range(len(given))] if isinstance(given, list) else [("layout",)]:
        layout = document.get(at) if "layout" in document.data else {}
        if isinstance(layout, str):
            where = document.mark(at)
            document.put(at, Document({"kind": layout}, {("kind",): where}, {(): where, ("kind",): where}), where)
        if isinstance(layout, str) or (isinstance(layout, dict) and "lanes" not in layout):
            document.put((*at, "lanes"), Document(lanes, {}, {(): mark}), mark)


def _put_caches(document: Document, at: Loc) -> None:
    data, here = document.get(at), (*at, "caches")
    caches = data.get("caches") if isinstance(data, dict) else None
    if isinstance(caches, str):
        caches = [caches]
        document.put(here, Document(caches, {}, {(0,): document.mark(here)}))
    for index, level in enumerate(caches if isinstance(caches, list) else ()):
        if isinstance(level, str):
            loc = (*here, index)
            document.put(loc, _piece(document, loc, "cache"), document.mark(loc))


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
    except ConfigError as error:
        if not path.exists():
            raise document.fail(loc, f"no such file: {printable(path)}") from None
        raise error
    except InputError as error:
        raise document.fail(loc, str(error)) from None


@lru_cache(maxsize=256)
def _read_piece(path: Path) -> Document:
    return read_with_paths(path)


_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def validate(model: type[M], document: Document) -> M:
    """Validate a document. Raises ConfigError with every problem at its file, line and column.

    Sizes such as '8 KiB' become bytes, and names are taken in any case: the document then holds them as they are.
    """
    as_meant(document.data)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        problems = _problems(model, document.data, error)
    raise ConfigError((document.mark(loc, key=key), text) for loc, key, text in problems)


Problem = tuple[Loc, bool, str]
"""Where it stands, whether its key is meant rather than its value, and what is wrong."""


def _problems(model: type[BaseModel], data: Any, error: ValidationError) -> list[Problem]:
    by_loc: dict[Loc, list[dict[str, Any]]] = {}
    for problem in error.errors(include_url=False):
        loc, rest, value = _locate(data, problem["loc"])
        by_loc.setdefault(loc, []).append({**problem, "rest": rest, "value": value})
    # A union reports each of its members; what went deepest into the data says most, so ancestors' type errors go.
    problems: list[Problem] = []
    for loc, items in by_loc.items():
        expected = [_WANTED[item["type"]] for item in items if item["type"] in _WANTED]
        others = [item for item in items if item["type"] not in _WANTED]
        if expected and not (others and any(item["type"] == "literal_error" for item in others) and len(items) > 1):
            value = items[0]["value"]
            problems.append((loc, False, _wrong_type(expected, value) + _as_mapping(loc, value)))
        problems += [_one(model, data, loc, item, expected) for item in others]
    return problems


def _one(model: type[BaseModel], data: Any, loc: Loc, item: dict[str, Any], expected: list[str]) -> Problem:
    kind, context, value = item["type"], item.get("ctx", {}), item["value"]
    if kind == "extra_forbidden":
        known, present = _known_keys(model, loc[:-1], data)
        begun = {key for key in known - present if key.startswith(f"{loc[-1]}_")}  # size, where size_bytes is meant
        hint = _elsewhere(model, loc[-1], known) if not begun else ""
        hint = hint or _hint(loc[-1], begun or known - present, known)
        return loc, True, f"unknown key {shown(loc[-1])}{hint}"
    if kind == "missing":
        missing = item["rest"][-1] if item["rest"] else "?"
        return loc, True, f"missing key {shown(missing)}"
    if kind == "literal_error":
        names = [part.strip().strip("'") for part in context["expected"].replace(" or ", ", ").split(",")]
        if not isinstance(value, str) or (expected and _as_number(value)):
            return loc, False, _wrong_type([*expected, f"one of {', '.join(names)}"], value)
        what = shown(loc[-1] if loc else "")
        return loc, False, f"{what} cannot be {shown(value)}{did_you_mean(value, names)}"
    if kind in _BOUNDS:
        key, text = _BOUNDS[kind]
        return loc, False, f"{text} {context[key]}, not {shown(value)}"
    message = str(context.get("error") or item["msg"]).removeprefix("Value error, ")
    return loc, kind == "value_error" and isinstance(value, dict), " ".join(message.split())


def _as_mapping(loc: Loc, value: Any) -> str:
    """Say how a network, a matrix or a DRAM part is written, where a name or a list of files stands alone."""
    files = value if isinstance(value, list) else [value]
    key = loc[-1] if loc else None
    if key not in ("network", "matrix", "dram") or not files or not all(isinstance(name, str) for name in files):
        return ""
    if key == "dram":
        return f" (write {{part: {files[0]}}})" if len(files) == 1 and len(files[0]) <= 40 else ""
    many = f"files: [{', '.join(files)}]" if isinstance(value, list) and key == "network" else f"file: {files[0]}"
    return f" (write {{{many}}})" if len(many) <= 60 else f" (write {{{many.partition(':')[0]}: ...}})"


def _hint(given: object, free: set[str], known: set[str]) -> str:
    """Suggest a key that is not there yet, else one that is, else list all that are known."""
    for names in (free, known):
        hint = did_you_mean(given, names)
        if "did you mean" in hint:
            return hint
    return did_you_mean(given, known)


def _elsewhere(model: type[BaseModel], given: object, known: set[str]) -> str:
    """Say where a key belongs that is known in another section; options of the command line are found, too."""
    name = str(given).strip("-").replace("-", "_")
    if name in known and name == given:
        return ""
    locs = [loc for loc in key_locs(model) if loc[-1] == name] or [
        loc for loc in key_locs(model) if loc[-1].rpartition("_")[0] == name
    ]
    if not locs:
        return ""
    here = [repr(".".join(loc)) + " at the top" * (len(loc) == 1) for loc in locs]
    return f" (did you mean {' or '.join(here[:3])}?)"


@cache
def key_locs(model: type[BaseModel]) -> tuple[tuple[str, ...], ...]:
    locs: list[tuple[str, ...]] = []
    for key, field in keys_of(model).items():
        locs.append((key,))
        for section in dict.fromkeys(_sections((field.annotation, field.metadata), None)):
            locs += [(key, *loc) for loc in key_locs(section)]
    return tuple(locs)


def as_meant(data: Any, key: str = "") -> None:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in list(items):
        here = step if isinstance(step, str) else key
        if not isinstance(value, str):
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
        for section in dict.fromkeys(_sections((field.annotation, field.metadata), None)):
            yield from _words(section)


def _as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _wrong_type(expected: list[str], value: Any) -> str:
    due = " or ".join(dict.fromkeys(expected))
    names = {dict: "a mapping", list: "a list", type(None): "nothing", bool: "true or false", str: "the text"}
    what = names.get(type(value), "")
    if isinstance(value, (str, int, float)):
        what = f"{what} {shown(value)}".strip() if not isinstance(value, bool) else str(value).lower()
    hint = ""
    if isinstance(value, str) and "number" in due and _as_number(value):
        hint = " (remove the quotes)"
    elif isinstance(value, str) and "true" in due and value.lower() in ("yes", "no", "on", "off"):
        hint = f" (write {'true' if value.lower() in ('yes', 'on') else 'false'})"
    return f"expected {due}, not {what}{hint}"


def _locate(data: Any, location: tuple[str | int, ...]) -> tuple[Loc, tuple[str | int, ...], Any]:
    """Follow pydantic's location as far as the data goes; return the loc, the steps left over and the value there."""
    loc: list[str | int] = []
    rest: list[str | int] = []
    for step in location:
        if isinstance(step, int) and not isinstance(data, list):
            continue  # a single value where a list may stand
        if not rest and _has(data, step):
            loc.append(step)
            data = data[step]
        elif isinstance(data, dict):
            rest.append(step)
    return tuple(loc), tuple(rest), data


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and step < len(data)


def _known_keys(model: Any, loc: Loc, data: Any) -> tuple[set[str], set[str]]:
    """Return the keys that the section at `loc` may have, and those that it has."""
    hints: list[Any] = [model]
    for step in loc:
        data, above = data[step], data
        if not isinstance(step, int):  # of a list, _sections looks through it
            sections = [section for hint in hints for section in _sections(hint, above)]
            known = [keys_of(section)[step] for section in sections if step in keys_of(section)]
            hints = [(field.annotation, field.metadata) for field in known]
    sections = [section for hint in hints for section in _sections(hint, data)]
    return {key for section in sections for key in keys_of(section)}, set(data or ())


def _sections(hint: Any, data: Any) -> list[type[BaseModel]]:
    if isinstance(hint, tuple):  # (annotation, metadata) of a field
        hint, metadata = hint
        chosen = [section for item in metadata if isinstance(item, KindChoice) for section in _chosen(item, data)]
        return chosen or _sections(hint, data)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint]
    if typing.get_origin(hint) is typing.Annotated:
        return _sections((hint.__origin__, hint.__metadata__), data)
    if typing.get_origin(hint) in (list, typing.Union, types.UnionType):
        return [section for inner in typing.get_args(hint) for section in _sections(inner, data)]
    return []


def _chosen(choice: KindChoice, data: Any) -> list[type[BaseModel]]:
    kind = data.get("kind") if isinstance(data, dict) else None
    try:
        return [choice.section(kind)] if isinstance(kind, str) else []
    except ValueError:
        return []
