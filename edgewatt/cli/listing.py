"""`edgewatt list`: every name that a configuration may use, with its parameters."""

from __future__ import annotations

import typer

from edgewatt.cli.output import say

_JSON = typer.Option(None, "--json", metavar="FILE", help="Write the list as JSON ('-': standard output).")


def list_names(
    what: str = typer.Argument(
        None, help="A kind, such as orderings (none: all kinds are named); 'schema' is the JSON Schema."
    ),
    json_file: str = _JSON,
) -> None:
    """List the names a configuration may use, with parameters and defaults.

    Example:  edgewatt list orderings

    Example:  edgewatt list schema > edgewatt.schema.json     (for editors: yaml-language-server and others)
    """
    from edgewatt.catalogue import catalogue, lists, schema
    from edgewatt.cli.output import show_table, write_json

    if what is None:
        if not write_json([*lists(), "schema"], json_file):
            say("\n".join([*lists(), "schema"]))
        return
    if what == "schema":
        write_json(schema(), json_file or "-")
        return
    entries = catalogue(what)
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


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("list")(list_names)
