"""Where a record came from: enough to repeat it elsewhere, and nothing that changes its counts."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any

_LIBRARIES = ("numpy", "scipy", "simpy", "ml_dtypes", "ortools", "pydantic", "PyYAML")


@cache
def environment() -> dict[str, Any]:
    """Return versions and machine, the same for every point that this process computes."""
    import platform
    from importlib import import_module
    from importlib.metadata import PackageNotFoundError, version

    from edgewatt._version import COUNTS_VERSION, __version__

    cpu = import_module("cython_ext.common.cpu")

    def version_of(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    return {
        "edgewatt": __version__,
        "counts_version": COUNTS_VERSION,
        "python": platform.python_version(),
        "libraries": {name: version_of(name) for name in _LIBRARIES},
        "platform": platform.platform(),
        "machine": platform.machine(),
        "host": platform.node(),
        "simd": cpu.simd_level(),
        "debug_kernels": bool(cpu.debug_build()),
    }


def now() -> str:
    """Return the time of day in UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
