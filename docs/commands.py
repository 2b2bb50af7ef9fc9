"""The command reference, from the parser that reads the command line."""

from __future__ import annotations

import re
from typing import Any

import typer

from edgewatt.cli import app


def commands() -> str:
    """Return the page: every command with its examples, arguments and options, as the parser knows them."""
    root = typer.main.get_command(app)
    top = root.make_context("edgewatt", [], resilient_parsing=True)
    lines = [
        "# Commands",
        "",
        "Generated from the command line's own parser; `edgewatt COMMAND --help` prints the same.",
        "",
        "Exit status: 0 done, 1 a run or a check failed, 2 the input can be mended, 130 stopped with Ctrl-C.",
        "`python -m edgewatt` is `edgewatt`.",
        "",
    ]
    for name, command in _leaves(root):
        lines += _command(name, command, type(top)(command, info_name=f"edgewatt {name}"))
    return "\n".join(lines) + "\n"


def _leaves(group: Any, before: str = "") -> list[tuple[str, Any]]:
    """Return (full name, command) of all commands in a group and the groups inside it."""
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        inside = hasattr(command, "commands")
        found += _leaves(command, f"{before}{name} ") if inside else [(before + name, command)]
    return found


def _command(name: str, command: Any, context: Any) -> list[str]:
    said = (command.help or "").replace("\b\n", "").replace(" \\\n", " ")
    first, *rest = [text.strip() for text in said.split("\n\n")]
    examples = [text.removeprefix("Example:").strip() for text in rest if text.startswith("Example:")]
    words = [text for text in rest if not text.startswith("Example:")]
    usage = command.get_usage(context).removeprefix("Usage:").strip()
    lines = [f"## `{name}`", "", _escaped(first), "", "```text", re.sub(r"\s+", " ", usage), "```", ""]
    if examples:
        lines += ["For example:", "", "```sh", *(re.sub(r"\s+", " ", text) for text in examples), "```", ""]
    for text in words:
        lines += [_escaped(text), ""]
    rows = [p.get_help_record(context) for p in command.params]
    rows = [row for row in rows if row is not None]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|"]
        lines += [f"| `{_cell(left)}` | {_escaped(_cell(right))} |" for left, right in rows]
        lines.append("")
    return lines


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def _escaped(text: str) -> str:
    for sign in "<*_$":
        text = text.replace(sign, "\\" + sign)
    return text
