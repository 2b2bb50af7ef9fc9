"""`edgewatt doctor`: is this installation sound, and what does it use?"""

from __future__ import annotations

import typer


def doctor(
    json_file: str = typer.Option(
        None, "--json", metavar="FILE", help="Write the report as JSON ('-': standard output)."
    ),
) -> None:
    """Report versions, SIMD level, package clashes and optional parts of this installation."""
    from edgewatt.cli.output import show_table, write_json
    from edgewatt.installation import diagnose

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
