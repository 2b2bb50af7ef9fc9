"""A network source: files, how they are read, and how much of them stays. Commands and configurations share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from traces.base.errors import InputError
from traces.networks.network import Network
from traces.networks.prune import prune_magnitude
from traces.readers import load

READING = ("orientation", "names", "image", "windows", "shapes")
"""Keys of `network` in a configuration that say how files are read: arguments of `load`, whose defaults they have."""


@dataclass(frozen=True)
class NetworkFiles:
    """The files of a network (one, or one a layer) and how a command line says they are read.

    Fields are keys of `network` in a configuration. density: share of the connections to keep, heaviest first; None
    keeps all. scope: 'global' (None) or 'layer'. activation: None leaves the file's.
    """

    files: tuple[str, ...]
    orientation: str | None = None
    names: tuple[str, ...] | None = None
    image: tuple[int, ...] | None = None
    windows: Mapping[str, Mapping[str, int]] | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    activation: str | None = None
    density: float | None = None
    scope: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        pruning = {key: values.pop(key) for key in ("density", "scope")}
        given = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items() if value}
        prune = {key: value for key, value in pruning.items() if value is not None}
        return {**given, "prune": prune} if prune else given

    @property
    def section(self) -> dict[str, Any]:
        return (
            {"file": self.files[0], **self.options}
            if len(self.files) == 1
            else {"files": list(self.files), **self.options}
        )

    def network(self, command: str) -> Network:
        if self.scope is not None and self.density is None:
            raise InputError("--scope says where --density SHARE keeps the heaviest: give both")
        read = read_network(self.files if len(self.files) > 1 else self.files[0], self, command)
        if self.density is None:
            return read
        return prune_magnitude(read, density=self.density, scope=self.scope or "global")


def read_network(path: Any, how: Any, command: str = "run") -> Network:
    loaded = load(path, kind="network", **{key: getattr(how, key) for key in READING if getattr(how, key) is not None})
    if not isinstance(loaded, Network):
        raise InputError(f"{path}: `edgewatt {command}` needs a network of neurons, not an operator graph")
    return loaded if how.activation is None else loaded.with_(activation=how.activation)
