"""edgewatt: for this sparse network and this memory system, what does the order of the work cost?

The names below are the stable façade. Each loads its module on first use, so ``import edgewatt`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from edgewatt._version import __version__

_FACADE = {
    "EdgewattError": "traces.errors",
    "run": "edgewatt.compute",
    "sweep": "edgewatt.sweeps",
    "collect": "edgewatt.collection",
    "rerun": "edgewatt.compute",
    "report": "edgewatt.reporting",
    "compare": "edgewatt.comparison",
    "optimize": "edgewatt.optimization",
    "InputError": "traces.errors",
    "Network": "traces.network",
    "from_matrices": "traces.readers.scipy_sparse",
    "load": "traces.readers",
    "count_io": "hwmodel.iomodel",
    "order": "reorder.order",
    "io_bounds": "hwmodel.iomodel",
    "io_curve": "hwmodel.iomodel",
    "Ordering": "reorder.base",
    "core_energy": "hwmodel.energy",
    "interface_energy": "hwmodel.energy",
    "load_part": "hwmodel.dram",
    "simulate_dram": "hwmodel.dram",
    "simulate_cache": "hwmodel.cache",
    "encode": "hwmodel.encoders",
    "decode": "hwmodel.encoders",
}

__all__ = ["__version__", *_FACADE]


def __getattr__(name: str) -> Any:
    if name not in _FACADE:
        raise AttributeError(f"module 'edgewatt' has no attribute {name!r}")
    value = getattr(import_module(_FACADE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
