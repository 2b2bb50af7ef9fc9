"""Arguments are what their annotations say, or an InputError names the one that is not.

NumPy's scalars, unsigned ones among them, become Python's numbers here, so that nothing behind wraps around.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import inspect
import os
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from traces.base.errors import InputError, shown

_KINDS = "biuf"  # kinds of arrays that stand for numbers
_FAR = 1 << 63
_origin: Callable[[Any], Any] = functools.cache(typing.get_origin)
_inside: Callable[[Any], Any] = functools.cache(typing.get_args)


class _WrongTypeError(Exception):
    pass


class _OutOfRangeError(Exception):
    """The type is right, the value is none that anything here can take."""


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked at each call. What its annotations leave open stays unchecked."""
    signature = inspect.signature(function)
    known, scope = signature.parameters, function.__globals__
    kinds = {name: _kind(p.annotation, scope) for name, p in known.items()}
    more = next((name for name, p in known.items() if p.kind is inspect.Parameter.VAR_KEYWORD), None)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}(): {error}") from None
        arguments = given.arguments
        for name, value in arguments.items():
            if name == more:
                arguments[name] = {key: _plain(each) for key, each in value.items()}
            else:
                arguments[name] = _named(name, value, kinds[name], known[name].annotation)
        return function(*given.args, **given.kwargs)

    return call


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass, frozen or not, in its ``__post_init__``; NumPy's scalars become Python's."""
    own = type(instance)
    for name, kind, expected in _fields_of(own):  # type: ignore[arg-type]
        value = getattr(instance, name)
        plain = _named(f"{own.__name__} {name}", value, kind, expected)
        if plain is not value:
            object.__setattr__(instance, name, plain)


@functools.cache
def _fields_of(own: type) -> list[tuple[str, Any, str]]:
    scope = vars(sys.modules[own.__module__])
    return [(f.name, _kind(str(f.type), scope), str(f.type)) for f in dataclasses.fields(own)]


def _named(name: str, value: Any, kind: Any, expected: str) -> Any:
    try:
        return _taken(value, kind)
    except _WrongTypeError:
        expected = expected.replace("npt.ArrayLike", "numbers")
        raise InputError(f"{name}: {shown(value)} is a {type(value).__name__}, wanted: {expected}") from None
    except _OutOfRangeError as error:
        raise InputError(f"{name}: {error}") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class _Numbers:
    """Stands for arrays, and what NumPy makes arrays of, while an annotation is read: the real ones are unions."""

    def __class_getitem__(cls, item: object) -> type[_Numbers]:
        return cls


class _Names(dict[str, Any]):
    """The names of a module's annotations; one imported for the type checker alone is a class, known by its name."""

    def __missing__(self, name: str) -> type:
        return type(name, (), {"_known_by_name": True})


def _kind(annotation: str, scope: Mapping[str, Any]) -> Any:
    numbers = types.SimpleNamespace(ArrayLike=_Numbers, NDArray=_Numbers)
    names = _Names({**vars(builtins), **scope, "npt": numbers})
    return eval(annotation, {}, names)  # our own, as typing.get_type_hints does


def _taken(value: Any, kind: Any) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    origin, inside = _origin(kind), _inside(kind)
    if origin is np.ndarray:
        return _array(value)
    if origin in (types.UnionType, typing.Union):
        return _one_of(value, inside)
    if origin is abc.Mapping:
        _need(isinstance(value, Mapping))
        if _is_open(inside[1]):
            return value
        return {_taken(key, inside[0]): _taken(each, inside[1]) for key, each in value.items()}
    if origin in (abc.Sequence, abc.Iterable, list, tuple) and inside:
        return _sequence(value, origin, inside[0])
    if origin is abc.Callable or (getattr(kind, "_is_protocol", False) and "__call__" in vars(kind)):
        _need(callable(value))
    elif _is_path(kind):
        _need(isinstance(value, os.PathLike))
    elif hasattr(kind, "_known_by_name"):
        _need(any(each.__name__ == kind.__name__ for each in type(value).__mro__))
    elif not _is_open(kind):
        _need(isinstance(value, kind))
    return value


@functools.cache
def _is_open(kind: Any) -> bool:
    if typing.get_origin(kind) not in (None, typing.Literal) or _is_path(kind):
        return False
    protocol = getattr(kind, "_is_protocol", False) and "__call__" not in vars(kind)
    return kind is Any or not isinstance(kind, type) or protocol


def _need(fits: bool) -> None:
    if not fits:
        raise _WrongTypeError


@functools.cache
def _is_path(kind: Any) -> bool:
    kind = typing.get_origin(kind) or kind
    return isinstance(kind, type) and issubclass(kind, os.PathLike)


def _one_of(value: Any, kinds: tuple[Any, ...]) -> Any:
    if (value is None and types.NoneType in kinds) or any(map(_is_open, kinds)):
        return value
    path = any(map(_is_path, kinds))
    for kind in kinds:
        try:
            return _path_text(value) if path and kind is str else _taken(value, kind)
        except _WrongTypeError:
            continue
    raise _WrongTypeError


def _int(value: Any) -> int:
    if type(value) is int and -_FAR <= value < _FAR:
        return value
    _need(isinstance(value, int | np.integer) and not isinstance(value, bool))
    if not -_FAR <= value < _FAR:
        raise _OutOfRangeError(f"{shown(value)} is beyond 2^63")
    return int(value)


def _float(value: Any) -> Any:
    if type(value) is float:
        return value
    _need(isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool))
    return _int(value) if isinstance(value, int) else _plain(value)


def _bool(value: Any) -> bool:
    _need(isinstance(value, bool | np.bool_))
    return bool(value)


def _path_text(value: Any) -> str:
    _need(isinstance(value, str))
    try:
        name = os.fsencode(value)
    except UnicodeEncodeError:
        name = b"\0"
    if b"\0" in name:
        raise _OutOfRangeError(f"{value!r} is not the name of a file")
    return str(value)


def _array(value: Any) -> Any:
    _need(value is not None and not isinstance(value, str | bytes | abc.Mapping | abc.Set))
    try:
        kind = value.dtype.kind if isinstance(value, np.ndarray) else np.asarray(value).dtype.kind
    except Exception:  # whatever a strange object raises while NumPy looks at it
        raise _WrongTypeError from None
    _need(kind in _KINDS)
    return value


_PLAIN: dict[Any, Callable[[Any], Any]] = {int: _int, float: _float, bool: _bool, _Numbers: _array}


def _sequence(value: Any, kind: Any, each: Any) -> Any:
    _need(isinstance(value, abc.Iterable) and not isinstance(value, str | bytes | Mapping))
    _need(kind is abc.Iterable or isinstance(value, abc.Sequence) or getattr(value, "ndim", 0) > 0)
    if _is_open(each):
        return value
    try:
        value = value if isinstance(value, tuple) else list(value)
    except TypeError:  # an array without dimensions
        raise _WrongTypeError from None
    items = [_taken(item, each) for item in value]
    return tuple(items) if kind is tuple or isinstance(value, tuple) else items
