"""Where the registry of each kind is: one table for configuration, lists, JSON Schema, provenance and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from importlib import import_module
from typing import Any, Final

from traces.base.registry import Registry

KINDS = {
    "orderings": ("reorder.base", "ORDERINGS"),
    "tuple-orders": ("reorder.tuples", "TUPLE_ORDERS"),
    "schedulers": ("reorder.operators.schedule.base", "SCHEDULERS"),
    "allocators": ("reorder.operators.arena.base", "ALLOCATORS"),
    "encoders": ("hwmodel.coding.stage", "ENCODERS"),
    "cache-policies": ("hwmodel.caches.policy", "CACHE_POLICIES"),
    "dram-schedulers": ("hwmodel.dram.policy", "DRAM_SCHEDULERS"),
    "page-policies": ("hwmodel.dram.policy", "PAGE_POLICIES"),
    "refresh-policies": ("hwmodel.dram.policy", "REFRESH_POLICIES"),
    "layouts": ("traces.layout.kind", "LAYOUTS"),
    "formats": ("traces.formats", "FORMATS"),
    "generators": ("traces.generators.generator", "GENERATORS"),
    "network-readers": ("traces.readers", "NETWORK_READERS"),
    "trace-readers": ("traces.trace_files", "TRACE_READERS"),
    "trace-writers": ("traces.trace_files", "TRACE_WRITERS"),
}
"""What lists call a kind -> module and name of its registry."""

DEFAULT_SYSTEM = "scratchpad-8k"
"""The machine of a network where none is named."""
BLOCKING = "tiles"
"""The ordering that is the best of a few simple blockings."""
AS_GIVEN: Final = "none"
IO_NEUTRAL: Final = "io-neutral"  # a stride: tuples change places as far as no I/O is added
"""In place of a tuple order: the tuples stay as the edge ordering gives them."""

NAMED_BY = {
    "network.generate.kind": "generators",
    "ordering.kind": "orderings",
    "stride.kind": "tuple-orders",
    "format": "formats",
    "layout.kind": "layouts",
    "trace.format": "trace-readers",
    "encoder": "encoders",
    "caches.policy": "cache-policies",
    "dram.controller.scheduler": "dram-schedulers",
    "dram.controller.page_policy": "page-policies",
    "dram.controller.refresh": "refresh-policies",
}
"""Field of a point -> kind of the member that it names (a chain of encoders names several, a list one for each)."""


@cache
def registry(kind: str) -> Registry[Any]:
    module, name = KINDS[kind]
    members: Registry[Any] = getattr(import_module(module), name)
    return members


def origins_of(named: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return {"plugins": kind -> name, distribution and version} of the outside members among those named.

    named: kind -> names. Empty where all members are edgewatt's own. A command's report holds it.
    """
    outside: dict[str, list[dict[str, str]]] = {}
    for kind, names in named.items():
        for name in names:
            entry = registry(kind).get(name) if name in registry(kind) else None
            if entry is not None and entry.origin is not None:
                outside.setdefault(kind, []).append({"name": name, **asdict(entry.origin)})
    return {"plugins": outside} if outside else {}
