"""`edgewatt list` and `edgewatt doctor`: what there is here, names of a configuration and the installation."""

from __future__ import annotations

import typer

from edgewatt.cli.parts.arguments import json_option, kinds
from edgewatt.cli.parts.output import say, show_table, write_json


def list_names(
    what: str = typer.Argument(
        None,
        autocompletion=kinds,
        help="A list, such as orderings (without one: all lists); 'schema' writes the JSON Schema.",
    ),
    names: list[str] = typer.Argument(None, metavar="[NAME...]", help="Only these names (default: all)."),
    json_file: str = json_option("the list"),
) -> None:
    """List the names that a configuration may use.

    Example:  edgewatt list orderings

    Example:  edgewatt list parts lpddr5-6400

    Example:  edgewatt list schema > edgewatt.schema.json
    """
    from edgewatt.catalogue import catalogue, lists, schema
    from traces.base.errors import unknown_name

    if what is None:
        if not write_json([*lists(), "schema"], json_file):
            say("\n".join([*lists(), "schema"]))
        return
    if what == "schema":
        write_json(schema(), json_file or "-")
        return
    entries = catalogue(what)
    for name in names or ():
        if name not in {entry["name"] for entry in entries}:
            raise unknown_name(f"name of {what}", name, [entry["name"] for entry in entries])
    entries = [entry for entry in entries if not names or entry["name"] in names]
    if write_json(entries, json_file):
        return
    columns = {
        what: [entry["name"] for entry in entries],
        "what": [entry["summary"] for entry in entries],
        "parameters": ["\n".join(entry["parameters"]) for entry in entries],
        "from": [f"{entry['distribution']} {entry['version']}" if "distribution" in entry else "" for entry in entries],
    }
    shown = [name for name, cells in columns.items() if name in (what, "what") or any(cells)]
    show_table(shown, list(zip(*(columns[name] for name in shown), strict=True)))


def doctor(json_file: str = json_option("the report")) -> None:
    """Report versions, SIMD level and extras of this installation.

    Packages that clash with edgewatt are named."""
    from edgewatt.installation import diagnose
    from traces.base.errors import install_command

    report = diagnose()
    if write_json(report, json_file):
        return
    missing = [name for name, version in report["packages"].items() if version is None]
    rows = [
        ("edgewatt", report["edgewatt"], "ok"),
        ("python", report["python"], "ok"),
        ("platform", report["platform"], "ok"),
        ("traces package", report["traces_package"], "ok, ours"),
        ("shipped configs", report["configs"], "ok"),
        ("SIMD level", report["simd_level"], "debug build" if report["kernels_debug_build"] else "ok"),
        *((name, version or "-", "ok" if version else "MISSING") for name, version in report["packages"].items()),
    ]
    for extra, names in report["extras"].items():
        absent = [name for name, version in names.items() if not version]
        present = ", ".join(f"{name} {version}" for name, version in names.items() if version)
        rows.append((f"extra {extra}", present or "-", install_command(extra) if absent else "ok"))
    reference = report["reference_data"]
    found = "ok" if reference["found"] else "not found (its tests are skipped)"
    rows.append(("reference data", reference["EDGEWATT_REFERENCE"] or "EDGEWATT_REFERENCE is not set", found))
    show_table(("part", "found", "state"), rows, title="edgewatt doctor")
    if missing:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_names)
    app.command()(doctor)
