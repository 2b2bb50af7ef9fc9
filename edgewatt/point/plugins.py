"""Which members of other distributions a point uses: they are part of what it computes, so of its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from edgewatt.config.kinds import registry
from traces.base.errors import InputError
from traces.base.registry import Registry


def _named(config: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (field of the point, kind, name of a member) for every member that a configuration names."""
    if "network" in config:
        yield "network", "generators", (config["network"].get("generate") or {}).get("kind")
        yield "ordering", "orderings", config["ordering"]["kind"]
        yield "stride", "tuple-orders", config["stride"]["kind"]
        yield "format", "formats", config["format"]
        yield "layout", "layouts", config["layout"]["kind"]
    else:
        yield "trace", "trace-readers", config["trace"]["format"]
    for name in config["encoder"].split("+"):
        yield "encoder", "encoders", name
    for cache in config["caches"]:
        yield "caches", "cache-policies", cache["policy"]
        yield "caches", "prefetchers", (cache.get("prefetch") or {}).get("kind")


def plugins_of(config: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Return field -> name, distribution, version and SHA-256 of the outside members it names; {} without any."""
    found: dict[str, list[dict[str, str]]] = {}
    for field, kind, name in _named(config):
        origin = _origin(registry(kind), name)
        if origin is not None:
            found.setdefault(field, []).append({"name": name, **origin})
    return found


def _origin(registry: Registry[Any], name: Any) -> dict[str, str] | None:
    if name is None or name not in registry:
        return None
    try:
        origin = registry[name].origin
    except InputError:
        return None  # it cannot be loaded: whoever computes with it says so
    return dataclasses.asdict(origin) if origin is not None else None
