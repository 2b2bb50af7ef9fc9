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

Check = Callable[[Any], Any]
"""Takes a value and returns it, NumPy's scalars as Python's; raises _WrongTypeError."""

_KINDS = "biuf"  # kinds of arrays that stand for numbers
_FAR = 1 << 63


class _WrongTypeError(Exception):
    pass


class _OutOfRangeError(Exception):
    """The type is right, the value is none that anything here can take."""


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked at each call. What its annotations leave open stays unchecked."""
    signature = inspect.signature(function)
    places, scope = signature.parameters, function.__globals__
    checks = {name: check for name, p in places.items() if (check := _check_of(p.annotation, scope)) is not None}
    wanted = {name: str(places[name].annotation) for name in checks}
    more = next((name for name, p in places.items() if p.kind is inspect.Parameter.VAR_KEYWORD), None)

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
            elif name in checks:
                try:
                    arguments[name] = checks[name](value)
                except _WrongTypeError:
                    raise InputError(_complaint(name, value, wanted[name])) from None
                except _OutOfRangeError as error:
                    raise InputError(f"{name}: {error}") from None
        return function(*given.args, **given.kwargs)

    return call


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass, frozen or not, in its ``__post_init__``; NumPy's scalars become Python's."""
    kind = type(instance)
    for name, check, wanted in _fields_of(kind):  # type: ignore[arg-type]
        value = getattr(instance, name)
        try:
            plain = check(value)
            if plain is not value:
                object.__setattr__(instance, name, plain)
        except _WrongTypeError:
            raise InputError(_complaint(f"{kind.__name__} {name}", value, wanted)) from None
        except _OutOfRangeError as error:
            raise InputError(f"{kind.__name__} {name}: {error}") from None


@functools.cache
def _fields_of(kind: type) -> list[tuple[str, Check, str]]:
    scope = vars(sys.modules[kind.__module__])
    fields = ((f.name, _check_of(str(f.type), scope), str(f.type)) for f in dataclasses.fields(kind))
    return [(name, check, wanted) for name, check, wanted in fields if check is not None]


def _complaint(name: str, value: Any, wanted: str) -> str:
    return f"{name}: {shown(value)} is a {type(value).__name__}, wanted: {wanted.replace('npt.ArrayLike', 'numbers')}"


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


def _check_of(annotation: str, scope: Mapping[str, Any]) -> Check | None:
    """Return the check of an annotation, None where it allows anything."""
    numbers = types.SimpleNamespace(ArrayLike=_Numbers, NDArray=_Numbers)
    names = _Names({**vars(builtins), **scope, "npt": numbers})
    return _check_of_type(eval(annotation, {}, names))  # our own, as typing.get_type_hints does


def _check_of_type(kind: Any) -> Check | None:
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        checks = [_check_of_type(each) for each in inside]
        if any(map(_is_path, inside)):
            checks = [_path_text if each is str else check for each, check in zip(inside, checks, strict=True)]
        return None if None in checks else _any_of([check for check in checks if check is not None])
    if kind is _Numbers or origin is np.ndarray:
        return _array
    if origin is abc.Callable:
        return _callable
    if origin is abc.Mapping:
        key, value = (_check_of_type(each) or _anything for each in inside)
        return _mapping(key, value)
    if origin in (abc.Sequence, abc.Iterable, list, tuple) and inside:
        return _sequence(origin, _check_of_type(inside[0]) or _anything)
    plain: dict[Any, Check] = {int: _int, float: _float, bool: _bool, None: _instance(types.NoneType)}
    if _is_path(kind):
        return _instance(os.PathLike)
    if kind is Any or kind in plain or not isinstance(kind, type):
        return plain.get(kind)
    if getattr(kind, "_is_protocol", False):
        return _callable if "__call__" in vars(kind) else None
    return _named(kind.__name__) if hasattr(kind, "_known_by_name") else _instance(kind)


def _is_path(kind: Any) -> bool:
    kind = typing.get_origin(kind) or kind
    return isinstance(kind, type) and issubclass(kind, os.PathLike)


def _named(name: str) -> Check:
    def check(value: Any) -> Any:
        if all(kind.__name__ != name for kind in type(value).__mro__):
            raise _WrongTypeError
        return value

    return check


def _any_of(checks: list[Check]) -> Check:
    def check(value: Any) -> Any:
        for each in checks:
            try:
                return each(value)
            except _WrongTypeError:
                continue
        raise _WrongTypeError

    return checks[0] if len(checks) == 1 else check


def _int(value: Any) -> int:
    if type(value) is int and -_FAR <= value < _FAR:
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise _WrongTypeError
    if not -_FAR <= value < _FAR:
        raise _OutOfRangeError(f"{value} is beyond 2^63")
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise _WrongTypeError
    number: float = _plain(value)
    return number


def _bool(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise _WrongTypeError
    return bool(value)


def _path_text(value: Any) -> str:
    try:
        name = os.fsencode(_instance(str)(value))
    except UnicodeEncodeError:
        raise _OutOfRangeError(f"{value!r} is no name of a file") from None
    if b"\0" in name:
        raise _OutOfRangeError(f"{value!r} is no name of a file")
    return str(value)


def _array(value: Any) -> Any:
    """Take what NumPy makes an array of numbers of."""
    if isinstance(value, str | bytes | abc.Mapping | abc.Set) or value is None:
        raise _WrongTypeError
    try:
        kind = value.dtype.kind if isinstance(value, np.ndarray) else np.asarray(value).dtype.kind
    except Exception:  # whatever a strange object raises while NumPy looks at it
        raise _WrongTypeError from None
    if kind not in _KINDS:
        raise _WrongTypeError
    return value


def _callable(value: Any) -> Any:
    if not callable(value):
        raise _WrongTypeError
    return value


def _anything(value: Any) -> Any:
    return value


def _instance(kind: type) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _WrongTypeError
        return value

    return check


def _mapping(key: Check, value: Check) -> Check:
    def check(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise _WrongTypeError
        return given if value is _anything else {key(k): value(v) for k, v in given.items()}

    return check


def _sequence(kind: type, each: Check) -> Check:
    def check(given: Any) -> Any:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, abc.Iterable):
            raise _WrongTypeError
        if kind is not abc.Iterable and not (isinstance(given, abc.Sequence) or getattr(given, "ndim", 0) > 0):
            raise _WrongTypeError
        if each is _anything:
            return given
        try:
            given = given if isinstance(given, tuple) else list(given)
        except TypeError:  # an array without dimensions
            raise _WrongTypeError from None
        items = [each(item) for item in given]
        return tuple(items) if kind is tuple or isinstance(given, tuple) else items

    return check
