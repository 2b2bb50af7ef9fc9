"""Pages made from the code: the configuration reference from its models, the names, the API, the papers' claims."""

from __future__ import annotations

import inspect
import typing
from importlib import import_module
from pathlib import Path
from typing import Any

from claims import claims
from commands import commands
from pydantic import BaseModel

from edgewatt.catalogue import catalogue, lists
from edgewatt.config.models import OptimizeSection, RunConfig, SweepConfig, ordering_section, stride_section
from edgewatt.names import PUBLIC
from traces.base.schema import Section, keys_of


def write(folder: Path) -> None:
    """Write all pages; a page that has not changed keeps its time, so that Sphinx need not read it again."""
    folder.mkdir(parents=True, exist_ok=True)
    for make in (commands, configuration, names, api, claims):
        text = make()
        path = folder / f"{make.__name__}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def configuration() -> str:
    """Return the configuration reference."""
    lines = [
        "# Configuration reference",
        "",
        "Generated from the models that read the files. A configuration is YAML; every key is optional unless it says",
        "*required*. Unknown and duplicate keys, wrong types, numbers in quotes and missing files are errors with",
        "file, line and column, all of them at once. Paths are relative to the file. `edgewatt list schema` writes the",
        "JSON Schema for editors; `-s KEY=VALUE` replaces any value (`-s dram.part=mine.yaml`).",
        "",
        "`system: NAME` takes a named machine (`edgewatt list systems`, or a `.yaml` file) as defaults for",
        "`fast_memory`, `caches`, `bus`, `encoder`, `dram` and `engine`; a file's own keys win. `caches` and `bus` may",
        "be shipped names, too.",
        "",
        "## A run",
        "",
        *_section(RunConfig),
    ]
    for name, section in _nested(RunConfig).items():
        lines += [f"## `{name}`", "", *_description(section), *_section(section)]
    lines += ["## Orderings and their parameters", "", "`orderings` holds names or mappings `{kind: NAME, ...}`.", ""]
    for entry in catalogue("orderings"):
        lines += [f"### `{entry['name']}`", "", f"{entry['summary']}.", "", *_section(ordering_section(entry["name"]))]
    lines += ["## Strides and tuple orders", ""]
    lines += ["`strides` holds `none`, a stride (sorted), `row`, or mappings `{kind: NAME, stride: 32, ...}`.", ""]
    for entry in catalogue("tuple-orders"):
        lines += [f"### `{entry['name']}`", "", f"{entry['summary']}.", "", *_section(stride_section(entry["name"]))]
    lines += [
        "## A sweep file",
        "",
        (inspect.getdoc(import_module("edgewatt.runs.plan")) or "").split("\n", 2)[2],
        "",
    ]
    lines += [*_section(SweepConfig), "## `optimize`", "", *_section(OptimizeSection)]
    return "\n".join(lines) + "\n"


def _nested(section: type[BaseModel], prefix: str = "") -> dict[str, type[Section]]:
    """Return the sections inside a section, by dotted key."""
    found: dict[str, type[Section]] = {}
    for key, field in keys_of(section).items():
        for inner in _sections(field.annotation):
            found[prefix + key] = inner
            found |= _nested(inner, f"{prefix}{key}.")
    return found


def _sections(hint: Any) -> list[type[Section]]:
    if isinstance(hint, type) and issubclass(hint, Section):
        return [hint]
    return [inner for argument in typing.get_args(hint) for inner in _sections(argument)]


def _description(section: type[Section]) -> list[str]:
    text = inspect.getdoc(section) or ""
    return ["```text", text, "```", ""] if "\n" in text else [text, ""]


def _section(section: type[BaseModel]) -> list[str]:
    rows = [
        f"| `{key}` | {_type(field.annotation)} | {_default(field)} | {_cell(field.description or '')} |"
        for key, field in keys_of(section).items()
        if key != "kind"
    ]
    return ["| key | type | default | meaning |", "|---|---|---|---|", *rows, ""] if rows else []


def _type(hint: Any) -> str:
    if _sections(hint):
        return "list of mappings" if typing.get_origin(hint) is list else "mapping"
    words = {
        int: "whole number",
        float: "number",
        str: "text",
        bool: "true or false",
        type(None): "null",
        Any: "see below",
    }
    if hint in words:
        return words[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin in (list, tuple):
        return "list" if "below" in _type(arguments[0]) else f"list of {_type(arguments[0])}"
    if origin is dict:
        return "mapping"
    return " or ".join(_type(a) for a in arguments if a is not type(None)) or "value"


def _default(field: Any) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    if value is None or value == [] or value == {} or value == "":
        return ""
    if isinstance(value, BaseModel) or (isinstance(value, list) and any(isinstance(v, BaseModel) for v in value)):
        return "as below"
    text = (
        ", ".join(map(str, value))
        if isinstance(value, list)
        else str(value).lower()
        if isinstance(value, bool)
        else value
    )
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def names() -> str:
    """Return the lists that `edgewatt list` prints."""
    lines = ["# Names", "", "What `edgewatt list` prints, at the time these pages were built.", ""]
    for what in lists():
        lines += [f"## {what}", "", "| name | what | parameters |", "|---|---|---|"]
        for entry in catalogue(what):
            parameters = "; ".join(f"`{text}`" for text in entry["parameters"])
            lines.append(f"| `{entry['name']}` | {_cell(entry['summary'])} | {_cell(parameters)} |")
        lines.append("")
    return "\n".join(lines)


def api() -> str:
    """Return the API page: signatures and docstrings of the façade, as their authors wrote them."""
    lines = [
        "# API", "", "`import edgewatt as ew`; each name loads its module on first use.", "",
        "Everywhere: `network` is a Network; `seed` is that of all random numbers; `workers` share the work without",
        "changing the result; `progress` is called with (done, of how many or None, what); `name` is the result's.", "",
    ]  # fmt: skip
    for space, members in PUBLIC.items():
        module, short = import_module(space), space.replace("edgewatt", "ew", 1)
        if space != "edgewatt":
            lines += [f"## `{short}`", "", str(module.__doc__), ""]
        for name in sorted(members):
            item = getattr(module, name)
            signature, doc = _signature(item), inspect.getdoc(item) or ""
            lines += [f"{'##' if space == 'edgewatt' else '###'} `{name}`", "", "```python"]
            lines += [f"{short}.{name}{signature}", "```", "", "```text", doc, "```", ""]
    return "\n".join(lines)


def _signature(item: Any) -> str:
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return ""
    if inspect.isclass(item) and issubclass(item, BaseException):
        return ""
    parts: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        starred |= parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(_parameter(parameter))
    text = ", ".join(parts)
    wrapped = f"({text})" if len(text) < 90 else "(\n    " + ",\n    ".join(parts) + ",\n)"
    returns = signature.return_annotation
    return wrapped if inspect.isclass(item) or returns is inspect.Signature.empty else f"{wrapped} -> {returns}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        hint = parameter.annotation
        text += f": {hint if isinstance(hint, str) else getattr(hint, '__name__', hint)}"
    if parameter.default is not inspect.Parameter.empty:
        default = "..." if "factory" in repr(parameter.default) else repr(parameter.default)
        text += f" = {default}"
    return text
