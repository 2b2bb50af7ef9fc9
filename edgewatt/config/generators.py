"""The network generators as a registry: parameters and defaults come from the functions' own signatures."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from traces.base.registry import Registry
from traces.generators import networks as generate
from traces.work.network import Network

GENERATORS: Registry[Callable[..., Network]] = Registry("network generator", "edgewatt.generators")


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


for _function in (getattr(generate, name) for name in generate.__all__):
    _summary = (inspect.getdoc(_function) or "").split("\n")[0].rstrip(".")
    GENERATORS.register(_function.__name__.replace("_", "-"), summary=_summary, parameters=_parameters(_function))(
        _function
    )
