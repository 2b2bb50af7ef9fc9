"""Pruning for a memory: masks, trained networks, training with PyTorch. Names load on first use."""

from importlib import import_module
from typing import Any

_NAMES = {
    "MemoryPruning": "edgewatt.prune.training",
    "capacity": "traces.pruning.windows",
    "memory_mask": "edgewatt.prune.mask",
    "order_in": "edgewatt.prune.mask",
    "prune": "edgewatt.prune.trained",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'edgewatt.prune' has no attribute {name!r}")
    return getattr(import_module(_NAMES[name]), name)
