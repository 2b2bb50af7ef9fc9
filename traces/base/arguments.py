"""Arguments are what their annotations say, or an InputError names the one that is not.

NumPy's scalars, unsigned ones among them, become Python's here: nothing behind wraps around. Annotations are read once,
into checks that return the value to go on with, or raise TypeError (InputError where only its range is wrong).
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, shown

Check = Callable[[Any], Any]


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked at each call. What its annotations leave open stays unchecked."""
    checks = _checks(function)
    positional = [checks[name] for name in inspect.getfullargspec(function).args]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        plain = [check(value) for check, value in zip(positional, args, strict=False)]
        named = {name: checks.get(name, _plain)(value) for name, value in kwargs.items()}
        return function(*plain, *args[len(plain) :], **named)

    return call


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass, frozen or not, in its ``__post_init__``; NumPy's scalars become Python's."""
    for name, check in _checks(instance.__class__).items():
        object.__setattr__(instance, name, check(getattr(instance, name)))


class _KnownByName(type):
    """Kind of a class that is imported for the type checker alone."""

    def __instancecheck__(cls, value: object) -> bool:
        return any(each.__name__ == cls.__name__ for each in type(value).__mro__)


@cache
def _checks(owner: Any) -> dict[str, Check]:
    prefix, texts = "", owner.__annotations__
    if isinstance(owner, type):
        prefix, texts = f"{owner.__name__} ", {field.name: field.type for field in dataclasses.fields(owner)}
    names: Any = {"npt": SimpleNamespace(ArrayLike=np.ndarray, NDArray=npt.NDArray)}  # the real ArrayLike is a union
    while True:
        try:
            kinds = get_type_hints(owner, localns=names)
            return {name: partial(_taken, prefix + name, text, _check(kinds[name])) for name, text in texts.items()}
        except NameError as error:
            names[error.name] = _KnownByName(str(error.name), (), {})


def _taken(name: str, text: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except TypeError:
        problem = f"{shown(value)} is a {type(value).__name__}, wanted: {text.replace('npt.ArrayLike', 'numbers')}"
    except InputError as error:
        problem = str(error)
    raise InputError(f"{name}: {problem}")


@cache
def _check(kind: Any) -> Check:
    if kind in _CHECKS:
        return _CHECKS[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        checks = [_file_name if each is str and Path in inside else _check(each) for each in inside]
        return _plain if Any in inside else partial(_one_of, checks, NoneType in inside)
    if origin is Mapping and inside[1] is not Any:
        key, item = map(_check, inside)
        return lambda value: {key(name): item(each) for name, each in _instance(Mapping, value).items()}
    if origin in (Iterable, Sequence, list, tuple):
        checks = [_check(each) for each in inside if each is not ...]
        return partial(_items, origin, checks, origin is tuple and ... not in inside)
    return partial(_instance, origin or kind)


def _instance(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value.item() if isinstance(value, np.generic) else value


def _one_of(checks: list[Check], optional: bool, value: Any) -> Any:
    if value is None and optional:
        return None
    for check in checks:
        with suppress(TypeError):
            return check(value)
    raise TypeError


def _items(kind: type, checks: list[Check], fixed: bool, value: Any) -> Any:
    many = isinstance(value, Sequence) or (isinstance(value, Iterable) and (kind is Iterable or hasattr(value, "ndim")))
    if not many or isinstance(value, str | bytes | Mapping) or (fixed and len(value) != len(checks)):
        raise TypeError
    items = (check(item) for check, item in zip(checks, value, strict=True)) if fixed else map(checks[0], value)
    return tuple(items) if kind is tuple or isinstance(value, tuple) else list(items)


def _int(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, (bool, np.timedelta64)):  # which are integers, too
        raise TypeError
    whole = int(value)
    if not -(2**63) <= whole < 2**63:
        raise InputError(f"{shown(value)} is beyond 2^63")
    return whole


def _file_name(value: Any) -> str:
    _instance(str, value)
    with suppress(UnicodeEncodeError):
        if b"\0" not in os.fsencode(value):
            return str(value)
    raise InputError(f"{value!r} is not the name of a file")


def _numbers(value: Any) -> Any:
    with suppress(Exception):  # whatever a strange object raises while NumPy looks at it
        if np.asarray(value).dtype.kind in "biuf" and not isinstance(value, Mapping):
            return value
    raise TypeError


_plain = partial(_instance, object)
_CHECKS: dict[Any, Check] = {
    Any: _plain,
    bool: partial(_instance, (bool, np.bool_)),
    int: _int,
    float: lambda value: _plain(value) if isinstance(value, (float, np.floating)) else _int(value),
    Path: partial(_instance, os.PathLike),
    np.ndarray: _numbers,
}
