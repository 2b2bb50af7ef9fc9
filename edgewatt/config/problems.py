"""From pydantic's errors to lines a user can act on: where in which file, what is wrong, what was perhaps meant."""

from __future__ import annotations

import contextlib
import marshal
import types
import typing
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from edgewatt.config.kinds import registry
from edgewatt.config.sections import KindChoice, keys_of
from traces.base.document import ConfigError, Document, Mark, Place
from traces.base.errors import InputError, did_you_mean, shown
from traces.base.units import is_size, size_in_bytes

M = TypeVar("M", bound=BaseModel)

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
        raise ConfigError(_problems(model, document, error)) from None


class KnownSections:
    """The sections of one model that were validated already, by what they say: configurations of a sweep share most."""

    def __init__(self, model: type[M]) -> None:
        self.model = model
        self._known: dict[tuple[str, bytes], Any] = {}

    def validate(self, document: Document) -> Any:
        """Validate as `validate` does; a section equal to one of an earlier document is reused."""
        given: dict[str, Any] = {}
        fresh: dict[str, tuple[str, bytes]] = {}
        for key, value in document.data.items():
            try:
                name = (key, marshal.dumps(value, 2))  # tells 1 from 1.0 and from true
            except ValueError:  # no value of a file
                return validate(self.model, document)
            if name in self._known:
                given[key] = self._known[name]
            elif isinstance(value, dict | list | str):
                fresh[key] = name
            else:
                given[key] = value
        part = {key: document.data[key] for key in fresh}
        as_meant(part)
        document.data |= part
        try:
            validated = self.model.model_validate({**given, **part})
        except ValidationError:
            return validate(self.model, document)  # says what is wrong, and where
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known |= {name: getattr(validated, key) for key, name in fresh.items()}
        return validated


_MOST_KNOWN = 4096


def _problems(model: type[BaseModel], document: Document, error: ValidationError) -> Iterable[tuple[Mark, str]]:
    by_place: dict[Place, list[dict[str, Any]]] = {}
    for problem in error.errors(include_url=False):
        place, rest = _locate(document.data, problem["loc"])
        by_place.setdefault(place, []).append({**problem, "rest": rest})
    # A union reports each of its members; what went deepest into the data says most, so ancestors' type errors go.
    for place, items in by_place.items():
        wanted = [_WANTED[item["type"]] for item in items if item["type"] in _WANTED]
        others = [item for item in items if item["type"] not in _WANTED]
        if wanted and not (others and any(item["type"] == "literal_error" for item in others) and len(items) > 1):
            value = document.get(place)
            yield document.mark(place), _wrong_type(wanted, value) + _as_mapping(place, value)
        for item in others:
            yield _one(model, document, place, item, wanted)


def _one(
    model: type[BaseModel], document: Document, place: Place, item: dict[str, Any], wanted: list[str]
) -> tuple[Mark, str]:
    kind, context = item["type"], item.get("ctx", {})
    value = document.get(place)
    if kind == "extra_forbidden":
        known = _known_keys(model, place[:-1], document.data)
        present = set(document.get(place[:-1]) or ())
        begun = {key for key in known - present if key.startswith(f"{place[-1]}_")}  # size, where size_bytes is meant
        hint = _elsewhere(model, place[-1], known) if not begun else ""
        hint = hint or _hint(place[-1], begun or known - present, known)
        return document.mark(place, key=True), f"unknown key {shown(place[-1])}{hint}"
    if kind == "missing":
        missing = item["rest"][-1] if item["rest"] else "?"
        return document.mark(place, key=True), f"missing key {shown(missing)}"
    if kind == "literal_error":
        names = [part.strip().strip("'") for part in context["expected"].replace(" or ", ", ").split(",")]
        if not isinstance(value, str):
            return document.mark(place), _wrong_type([*wanted, f"one of {', '.join(names)}"], value)
        number = _as_number(value)
        if wanted and number:
            return document.mark(place), _wrong_type([*wanted, f"one of {', '.join(names)}"], value)
        return document.mark(
            place
        ), f"{shown(place[-1] if place else '')} cannot be {shown(value)}{did_you_mean(value, names)}"
    if kind in _BOUNDS:
        key, text = _BOUNDS[kind]
        return document.mark(place), f"{text} {context[key]}, not {shown(value)}"
    message = str(context.get("error") or item["msg"]).removeprefix("Value error, ")
    return document.mark(place, key=kind == "value_error" and isinstance(value, dict)), " ".join(message.split())


def _as_mapping(place: Place, value: Any) -> str:
    """Say how a network, a matrix or a DRAM part is written, where a name or a list of files stands alone."""
    files = value if isinstance(value, list) else [value]
    key = place[-1] if place else None
    if key not in ("network", "matrix", "dram") or not files or not all(isinstance(name, str) for name in files):
        return ""
    if key == "dram":
        return f" (write {{part: {files[0]}}})" if len(files) == 1 and len(files[0]) <= 40 else ""
    many = f"files: [{', '.join(files)}]" if isinstance(value, list) and key == "network" else f"file: {files[0]}"
    return f" (write {{{many}}})" if len(many) <= 60 else f" (write {{{many.partition(':')[0]}: ...}})"


def _hint(given: object, free: set[str], known: set[str]) -> str:
    """Suggest a key that is not there yet, else one that is, else list what could be there."""
    for names in (free, known):
        hint = did_you_mean(given, names)
        if "did you mean" in hint:
            return hint
    return did_you_mean(given, free or known)


def _elsewhere(model: type[BaseModel], given: object, known: set[str]) -> str:
    """Say where a key belongs that is known in another section; options of the command line are found, too."""
    name = str(given).strip("-").replace("-", "_")
    if name in known and name == given:
        return ""
    places = [place for place in key_places(model) if place[-1] == name] or [
        place for place in key_places(model) if place[-1].rpartition("_")[0] == name
    ]
    if not places:
        return ""
    here = [".".join(place) for place in places]
    return f" (did you mean {' or '.join(map(repr, here[:3]))}?)"


@cache
def key_places(model: type[BaseModel]) -> tuple[tuple[str, ...], ...]:
    """Return the place of every key that a model and its sections have, those of kinds left out."""
    places: list[tuple[str, ...]] = []
    for key, field in keys_of(model).items():
        places.append((key,))
        for section in dict.fromkeys(_sections((field.annotation, field.metadata), None)):
            places += [(key, *place) for place in key_places(section)]
    return tuple(places)


def as_meant(data: Any, key: str = "") -> None:
    """Turn sizes in bytes and names in another case into what they mean, in place."""
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


_FREE_TEXT = ("name", "description", "source", "file", "files", "path")


@cache
def _known_names() -> frozenset[str]:
    """Return every name that a configuration may use: members of kinds, shipped files, and the words of choices."""
    from edgewatt.config.kinds import KINDS
    from edgewatt.config.models import RunConfig
    from traces.base.resources import shipped_names

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


def _wrong_type(wanted: list[str], value: Any) -> str:
    due = " or ".join(dict.fromkeys(wanted))
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


def _locate(data: Any, location: tuple[str | int, ...]) -> tuple[Place, tuple[str | int, ...]]:
    """Follow pydantic's location as far as the data goes; union tags and wrapped scalars are no steps in the data."""
    place: list[str | int] = []
    rest: list[str | int] = []
    for step in location:
        if isinstance(step, int) and not isinstance(data, list):
            continue  # a single value where a list may stand
        if not rest and _has(data, step):
            place.append(step)
            data = data[step]
        elif isinstance(data, dict):
            rest.append(step)
    return tuple(place), tuple(rest)


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and step < len(data)


def _known_keys(model: Any, place: Place, data: Any) -> set[str]:
    """Return the keys that the section at `place` may have: follow the model's annotations beside the data."""
    hints: list[Any] = [model]
    for step in (*place, None):
        sections = [section for hint in hints for section in _sections(hint, data)]
        if step is None:
            return {key for section in sections for key in keys_of(section)}
        data = data[step]
        if isinstance(step, int):
            continue  # a list: _sections looks through it
        hints = [_annotated(keys_of(section)[step]) for section in sections if step in keys_of(section)]
    return set()


def _annotated(field: Any) -> Any:
    return (field.annotation, field.metadata)


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
