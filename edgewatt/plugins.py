"""What a plug-in imports: the registries of all kinds, and the types that a member of each is made of."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from edgewatt.config.kinds import KINDS as _CONFIGURED
from traces.base.registry import Registry

KINDS = _CONFIGURED | {
    "charts": ("edgewatt.pages.chart", "CHARTS"),
    "part-readers": ("hwmodel.part_readers.reader", "PART_READERS"),
    "peers": ("edgewatt.checks.peer", "PEERS"),
}
"""What lists call a kind -> module and name of its registry."""

_TYPES = {
    "Entry": "traces.base.registry",
    "Origin": "traces.base.registry",
    "Registry": "traces.base.registry",
    "InputError": "traces.base.errors",
    "Progress": "traces.base.progress",
    "Network": "traces.networks.network",
    "Trace": "traces.trace.chunks",
    "Chunk": "traces.trace.chunks",
    "Memory": "traces.trace.chunks",
    "Method": "reorder.base",
    "Ordering": "reorder.base",
    "Task": "reorder.base",
    **dict.fromkeys(("ScheduleTask", "SearchResult"), "reorder.operators.schedule.base"),
    **dict.fromkeys(("Allocator", "Placement"), "reorder.operators.arena.base"),
    "TupleOrderMethod": "reorder.tuples.base",
    "Coded": "hwmodel.bus",
    **dict.fromkeys(("ElementStage", "Geometry", "LaneStage", "Role", "Stage"), "hwmodel.coding.stage"),
    "aligned_empty": "cython_ext.wires.encode",
    **dict.fromkeys(("packed_flags", "same_bytes"), "hwmodel.coding.stage"),
    "Policy": "hwmodel.caches.policy",
    "EnginePolicy": "hwmodel.dram.policy",
    "LayoutKind": "traces.layout.kind",
    "Format": "traces.formats.format",
    "FloatFormat": "traces.formats.floats",
    "IntegerFormat": "traces.formats.integers",
    "generator": "traces.generators.generator",
    "NetworkReader": "traces.readers",
    "MatrixReader": "traces.readers",
    "Matrix": "traces.readers.parts.layers",
    **dict.fromkeys(("Source", "TraceReader"), "traces.trace_files.reader"),
    **dict.fromkeys(("PlainLine", "Record", "Refused", "TextReader"), "traces.trace_files.text"),
    **dict.fromkeys(("access_size", "need", "number", "operation"), "traces.trace_files.text"),
    **dict.fromkeys(("TraceWriter", "columns"), "traces.trace_files.writer"),
    **dict.fromkeys(("Chart", "Spec", "base", "category", "quantity", "tooltip"), "edgewatt.pages.chart"),
    "ReportData": "edgewatt.pages.data",
    **dict.fromkeys(("NumberSection", "PartReader", "Specification"), "hwmodel.part_readers.reader"),
    **dict.fromkeys(("MissingPeer", "Step"), "edgewatt.checks.peer"),
    "MatrixLayer": "edgewatt.checks.peer",
}

_LOCATIONS = {name: (module, name) for name, module in _TYPES.items()} | {
    kind.upper().replace("-", "_"): location for kind, location in KINDS.items()
}

__all__ = sorted(["KINDS", "registry", *_LOCATIONS])


def registry(kind: str) -> Registry[Any]:
    """Return the registry of a kind of KINDS."""
    module, name = KINDS[kind]
    members: Registry[Any] = getattr(import_module(module), name)
    return members


def __getattr__(name: str) -> Any:
    if name not in _LOCATIONS:
        raise AttributeError(f"module 'edgewatt.plugins' has no attribute {name!r}")
    module, inner = _LOCATIONS[name]
    value = getattr(import_module(module), inner)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
