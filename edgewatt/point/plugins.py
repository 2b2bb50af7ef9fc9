"""Which members of other distributions a point uses: they are part of what it computes, so of its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from edgewatt.config.kinds import KINDS, NAMED_BY, registry
from traces.base.errors import InputError
from traces.base.registry import Origin, Registry
from traces.base.resources import outside_files


def plugins_of(config: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Return field -> name, distribution, version and SHA-256 of the outside members it names; {} without any."""
    found: dict[str, list[dict[str, str]]] = {}
    for path, kind in NAMED_BY.items():
        for name in dict.fromkeys(_named(config, path.split("."))):
            origin = _origin(registry(kind), name) if kind in KINDS else None
            if origin is not None:
                found.setdefault(path.split(".")[0], []).append({"name": name, **dataclasses.asdict(origin)})
    part = config["dram"]["part"]
    if part in outside_files("dram"):
        found["dram"] = [{"name": part, **dataclasses.asdict(outside_files("dram")[part][1])}]
    return found


def _named(value: Any, path: list[str]) -> Iterator[str]:
    """Yield the names of members at a field of the configuration."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _named(value[path[0]], path[1:])
    elif isinstance(value, str):
        yield from value.split("+")


def _origin(members: Registry[Any], name: str) -> Origin | None:
    try:
        return members[name].origin if name in members else None
    except InputError:
        return None  # it cannot be loaded: whoever computes with it says so
