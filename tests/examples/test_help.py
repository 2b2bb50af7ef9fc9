"""The help of every command teaches in 80 columns: one whole sentence, an example to paste, words for every option."""

import json
import re
import shlex
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from edgewatt.cli import SECTIONS, app
from edgewatt.cli.parts.arguments import with_examples

pytestmark = pytest.mark.application


def walk(group: Any, before: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found = {}
    for name, command in group.commands.items():
        if command.hidden:  # a name of before
            continue
        found[(*before, name)] = command
        if hasattr(command, "commands"):
            found |= walk(command, (*before, name))
    return found


COMMANDS = walk(typer.main.get_command(app))


def help_of(path: tuple[str, ...]) -> str:
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_help_teaches(path: tuple[str, ...]) -> None:
    command, text = COMMANDS[path], help_of(path)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert [p.name for p in command.params if not getattr(p, "help", None)] == []
    if hasattr(command, "commands") or path == ("doctor",):
        return
    calls = re.findall(r"Example: ((?:.*\\\n)*.*)", text)
    assert calls, "an example"
    for call in calls:
        words = shlex.split(call.replace("\\\n", " "))
        assert words[0] == "edgewatt" and words[1] in {name for name, *_ in COMMANDS}, words


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_lists_that_help_recommends_are_there(path: tuple[str, ...]) -> None:
    """Each with `edgewatt list`, and not empty."""
    text = re.sub(r"[\s\W]+ ", " ", help_of(path).replace("`", ""))
    for what in sorted(set(re.findall(r"edgewatt list ([a-z]+(?:-[a-z]+)*)", text))):
        done = CliRunner().invoke(app, ["list", what, "--json", "-"])
        assert done.exit_code == 0 and json.loads(done.stdout), (what, done.output)


@pytest.mark.parametrize("path", [(), ("learn",), ("part",)], ids=["edgewatt", "learn", "part"])
def test_lists_of_commands_are_whole(path: tuple[str, ...]) -> None:
    text = help_of(path)
    assert "..." not in text[text.rindex("Show this message") :]


def test_every_command_stands_under_one_heading() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(name for name, *inner in COMMANDS if not inner)
    assert all(f"{heading}:" in help_of(()) for heading in SECTIONS)


def test_examples_are_broken_so_that_a_shell_joins_them() -> None:
    call = "edgewatt order fc1.npz fc2.npz -m connection-reordering -s iterations=100000 --policy lru -o order.npz"
    text = with_examples(f"What it does.\n\nExample:  {call}\nExample:  edgewatt list")
    said, first, second = text.split("\n\n")
    assert said == "What it does." and second == "\b\nExample:  edgewatt list"
    assert all(len(line) <= 78 for line in first.splitlines()) and " \\\n" in first
    assert shlex.split(first.removeprefix("\b\nExample:").replace("\\\n", " ")) == call.split()
