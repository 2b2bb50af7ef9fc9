"""Is this installation sound, and what does it use? It imports none of our packages before it has looked at them."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

RUNTIME = ("numpy", "scipy", "simpy", "PyYAML", "pydantic", "typer", "rich", "ml_dtypes", "safetensors")
EXTRAS = {
    "exact": ("ortools",),
    "models": ("tflite", "flatbuffers", "onnx", "networkx"),
    "train": ("scikit-learn",),
    "report": ("vl-convert-python",),
    "parquet": ("pyarrow",),
    "frame": ("pandas",),
    "waves": ("pyvcd",),
    "dask": ("distributed",),
    "optimize": ("optuna",),
    "learn": ("torch",),
}


class ForeignTracesError(ImportError):
    """The package `traces` that Python finds is another distribution's."""


def check_traces_package() -> str:
    """Return the folder of our `traces` package, without importing it.

    `traces` is also the name of an unrelated distribution. Raises ForeignTracesError, which says where that one lies
    and the way out, if Python finds it first.
    """
    loaded = sys.modules.get("traces")
    if getattr(loaded, "__edgewatt__", False):
        return str(Path(str(getattr(loaded, "__file__", ""))).parent)
    spec = find_spec("traces")
    path = Path(spec.origin) if spec is not None and spec.origin is not None else None
    if path is not None and "__edgewatt__ = True" in path.read_text("utf-8", "replace"):
        return str(path.parent)
    where = path or (list(spec.submodule_search_locations or ()) if spec is not None else "nowhere")
    raise ForeignTracesError(
        f"the package 'traces' found at {where} is not edgewatt's: another distribution, PYTHONPATH or the current "
        "folder has that name.\nMend it with:  pip uninstall traces; pip install --force-reinstall --no-deps edgewatt\n"
        "or leave that folder, or install edgewatt in an environment of its own.",
        name="traces",
    )


def version_of(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def platform_name() -> str:
    """Return system, release, machine and C library; `platform.platform` starts a process to learn one word more."""
    import platform

    return " ".join([platform.system(), platform.release(), platform.machine(), *platform.libc_ver()])


def diagnose() -> dict[str, Any]:
    """Return versions, kernel build, SIMD level, package clash and reference data as one plain dict."""
    import os
    import platform

    from edgewatt._version import __version__
    from traces.base.resources import config_root

    cpu = import_module("cython_ext.common.cpu")
    reference = os.environ.get("EDGEWATT_REFERENCE") or None
    return {
        "edgewatt": __version__,
        "python": platform.python_version(),
        "platform": platform_name(),
        "traces_package": check_traces_package(),
        "configs": str(config_root()),
        "simd_level": cpu.simd_level(),
        "kernels_debug_build": cpu.debug_build(),
        "packages": {name: version_of(name) for name in RUNTIME},
        "extras": {extra: {name: version_of(name) for name in names} for extra, names in EXTRAS.items()},
        "reference_data": {
            "EDGEWATT_REFERENCE": reference,
            "found": bool(reference) and (Path(str(reference)) / "iomodel" / "results.csv").is_file(),
        },
    }
