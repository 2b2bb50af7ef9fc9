"""`edgewatt list`: every name that a configuration may use, with its parameters."""

from __future__ import annotations

import typer

_JSON = typer.Option(None, "--json", metavar="FILE", help="Write the list as JSON ('-': standard output).")
_WHAT = (
    "orderings",
    "tuple-orders",
    "encoders",
    "cache-policies",
    "formats",
    "generators",
    "parts",
    "caches",
    "buses",
    "systems",
    "sweeps",
    "layouts",
    "schema",
)


def list_names(
    what: str = typer.Argument(..., metavar="|".join(_WHAT), help="What to list; 'schema' is the JSON Schema."),
    json_file: str = _JSON,
) -> None:
    """List the names a configuration may use, with parameters and defaults.

    Example:  edgewatt list orderings

    Example:  edgewatt list schema > edgewatt.schema.json     (for editors: yaml-language-server and others)
    """
    from edgewatt.catalogue import catalogue, schema
    from edgewatt.cli.output import show_table, write_json
    from traces.base.errors import unknown_name

    if what not in _WHAT:
        raise unknown_name("list", what, _WHAT)
    if what == "schema":
        write_json(schema(), json_file or "-")
        return
    entries = catalogue(what)
    if write_json(entries, json_file):
        return
    rows = [(e["name"], e["summary"], "\n".join(e["parameters"])) for e in entries]
    if any(row[2] for row in rows):
        show_table((what, "what", "parameters"), rows)
    else:
        show_table((what, "what"), [row[:2] for row in rows])


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("list")(list_names)
