"""`edgewatt doctor`: is this installation sound, and what does it use?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

RUNTIME = (
    "numpy",
    "scipy",
    "simpy",
    "bitarray",
    "ortools",
    "PyYAML",
    "pydantic",
    "typer",
    "rich",
    "ml_dtypes",
    "safetensors",
)
EXTRAS = {
    "models": ("tflite", "flatbuffers", "onnx", "networkx"),
    "train": ("scikit-learn",),
    "report": ("vl-convert-python",),
    "parquet": ("pyarrow",),
    "dask": ("distributed",),
    "optimize": ("optuna",),
    "partition": ("mtkahypar",),
}


def diagnose() -> dict[str, Any]:
    """Collect versions, kernel build, SIMD level, package clash and reference data as one plain dict."""
    import os
    import platform
    from importlib import import_module
    from importlib.metadata import PackageNotFoundError, version

    import edgewatt
    from edgewatt.clash import check_traces_package
    from traces.base.resources import config_root

    def found(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    cpu = import_module("cython_ext.common.cpu")
    reference = os.environ.get("EDGEWATT_REFERENCE") or None
    return {
        "edgewatt": edgewatt.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "traces_package": check_traces_package(),
        "configs": str(config_root()),
        "simd_level": cpu.simd_level(),
        "kernels_debug_build": cpu.debug_build(),
        "packages": {name: found(name) for name in RUNTIME},
        "extras": {extra: {name: found(name) for name in names} for extra, names in EXTRAS.items()},
        "reference_data": {
            "EDGEWATT_REFERENCE": reference,
            "found": bool(reference) and (Path(str(reference)) / "iomodel" / "results.csv").is_file(),
        },
    }


def doctor(
    json_file: str = typer.Option(
        None, "--json", metavar="FILE", help="Write the report as JSON ('-': standard output)."
    ),
) -> None:
    """Report versions, SIMD level, package clashes and optional parts of this installation."""
    from edgewatt.cli.output import show_table, write_json

    report = diagnose()
    if write_json(report, json_file):
        return
    missing = [name for name, found in report["packages"].items() if found is None]
    rows = [
        ("edgewatt", report["edgewatt"], "ok"),
        ("python", report["python"], "ok"),
        ("platform", report["platform"], "ok"),
        ("traces package", report["traces_package"], "ok, ours"),
        ("shipped configs", report["configs"], "ok"),
        ("SIMD level", report["simd_level"], "debug build" if report["kernels_debug_build"] else "ok"),
        *((name, found or "-", "ok" if found else "MISSING") for name, found in report["packages"].items()),
    ]
    for extra, names in report["extras"].items():
        absent = [name for name, found in names.items() if not found]
        present = ", ".join(f"{name} {found}" for name, found in names.items() if found)
        rows.append((f"extra {extra}", present or "-", f"pip install 'edgewatt[{extra}]'" if absent else "ok"))
    reference = report["reference_data"]
    rows.append(
        (
            "reference data",
            reference["EDGEWATT_REFERENCE"] or "EDGEWATT_REFERENCE is not set",
            "ok" if reference["found"] else "not found (its tests are skipped)",
        )
    )
    show_table(("part", "found", "state"), rows, title="edgewatt doctor")
    if missing:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(doctor)
