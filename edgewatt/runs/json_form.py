"""Frozen dataclasses as plain JSON values and back: the canonical form that names a point by its content."""

from __future__ import annotations

import dataclasses
import marshal
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

LATER = "later"
"""Field metadata: this field came after records were written. It is absent from the JSON form while it has its default,
so that the hashes of all points that do not use it stay as they were. Any dataclass of a point may say so:
``field(default=0, metadata={"later": True})``."""

FILE = "file"
"""Field metadata: this parameter of a member names a file, which a point names by its content."""

OMIT = "omit"
"""Field metadata: names inside the field's own dataclass that its JSON form leaves out."""


def later(default: Any) -> Any:
    """Declare a field with LATER."""
    return dataclasses.field(default=default, metadata={LATER: True})


@dataclasses.dataclass(frozen=True)
class Member:
    """One member of a registry and all its parameters, as JSON values."""

    kind: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return ``{kind: ..., parameter: ...}``."""
        return {"kind": self.kind, **self.parameters}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Member:
        """Return the member that `to_json` wrote."""
        return cls(value["kind"], {key: item for key, item in value.items() if key != "kind"})


def to_json(value: Any) -> Any:
    """Return dataclasses, mappings and sequences as plain JSON values."""
    if type(value) in _PLAIN:
        return value
    fields = _fields(value.__class__)
    if fields is not None:
        plain, state = {}, value.__dict__
        if (known := state.get(_KNOWN)) is not None:
            return dict(known)
        for name, is_later, default, omitted in fields:
            item = state[name]
            if not (is_later and item == (default() if callable(default) else default)):
                plain[name] = item if type(item) in _PLAIN else _without(to_json(item), omitted)
        if _KNOWN in state:
            state[_KNOWN] = plain
            return dict(plain)
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
    """Return name, whether it was added later, default (or what makes it) and omitted names of a dataclass's fields."""
    if not dataclasses.is_dataclass(kind) or hasattr(kind, "to_json"):
        return None
    return tuple(
        (field.name, bool(field.metadata.get(LATER)), _default(field), field.metadata.get(OMIT, ()))
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
    """Return what builds a type from JSON values; None for plain values, which stay as they are."""
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
            said = marshal.dumps({name: value[name] for name in names if name in value}, 2)  # tells 1 from 1.0 and true
        except ValueError:
            return read(value)  # no JSON value is in it
        kept = made.get(said)
        if kept is None:
            kept = read(marshal.loads(said))
            if len(made) >= MOST_KEPT:
                made.clear()
            made[said] = kept
            kept.__dict__[_KNOWN] = None
        return kept

    return read_once


MOST_KEPT = 1024
"""Objects of one dataclass that are kept, to be given to other points with the same values."""
