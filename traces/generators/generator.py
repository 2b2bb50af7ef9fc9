"""The registry of network generators; parameters and defaults come from the functions' own signatures."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from traces.base.registry import Registry
from traces.work.network import Network

Function = TypeVar("Function", bound=Callable[..., Network])

GENERATORS: Registry[Callable[..., Network]] = Registry(
    "network generator", "edgewatt.generators", folder="traces.generators"
)


def generator(function: Function) -> Function:
    """Register a function under its name (with dashes), its first line as summary and its arguments as parameters."""
    summary = (inspect.getdoc(function) or "").split("\n")[0].rstrip(".")
    name = function.__name__.replace("_", "-")
    GENERATORS.register(name, summary=summary, parameters=_parameters(function), module=function.__module__)(function)
    return function


def _as_list(hint: Any) -> Any:
    """A YAML list fills a Sequence or an array."""
    if hint == npt.ArrayLike:
        return list[int]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Sequence:
        return list[_as_list(arguments[0])]  # type: ignore[misc]
    if origin in (typing.Union, type(int | None)):
        return typing.Union[tuple(map(_as_list, arguments))]  # noqa: UP007 - built at run time
    return hint


def _parameters(function: Callable[..., Network]) -> type:
    hints = typing.get_type_hints(function)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "name":
            continue
        hint = _as_list(hints[name])
        if parameter.default is inspect.Parameter.empty:
            fields.append((name, hint))
        else:
            fields.append((name, hint, dataclasses.field(default=parameter.default)))
    return dataclasses.make_dataclass(f"{function.__name__}_parameters", fields, frozen=True, kw_only=True)
