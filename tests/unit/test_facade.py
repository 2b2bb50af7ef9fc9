"""The names of the façade: all there, stable, cheap, and functions even where a submodule has the same name."""

import inspect
import re
import subprocess
import sys
from importlib import import_module

import pytest

import edgewatt
from edgewatt.names import MOVED, PUBLIC, SPACES


@pytest.mark.parametrize(("space", "name"), [(space, name) for space in PUBLIC for name in PUBLIC[space]])
def test_every_public_name_is_there_and_says_what_it_is(space: str, name: str) -> None:
    module = import_module(space)
    assert inspect.getdoc(getattr(module, name))
    assert name in dir(module) and name in module.__all__


EVERYWHERE = {"network", "seed", "workers", "progress", "name"}
"""Parameters that mean the same wherever they are: the head of the API page says what."""


@pytest.mark.parametrize(("space", "name"), [(space, name) for space in PUBLIC for name in PUBLIC[space]])
def test_docstrings_have_one_form(space: str, name: str) -> None:
    """One line that says what it is or returns; each parameter by its name; what is returned; what is raised."""
    item = getattr(import_module(space), name)
    text = inspect.getdoc(item) or ""
    first = text.splitlines()[0]
    assert first.endswith(".") and (text == first or not text.splitlines()[1])
    if inspect.isclass(item) and issubclass(item, BaseException):
        return
    parameters = set() if name == "Plots" else {*inspect.signature(item).parameters} - EVERYWHERE
    assert {each for each in parameters if not re.search(rf"\b{each}\b", text)} == set()
    if inspect.isfunction(item):
        assert first.split()[0] not in ("A", "An", "The") and re.search(r"\breturns?\b", text, re.IGNORECASE)
        assert "Raises" in text or len(parameters) == 0


def test_the_top_has_at_most_38_names_and_the_namespaces() -> None:
    assert len(edgewatt.__all__) <= 38
    assert {*SPACES} <= {*dir(edgewatt)}
    assert all(getattr(edgewatt, space).__name__ == f"edgewatt.{space}" for space in SPACES)
    elsewhere = [name for space in SPACES for name in PUBLIC[f"edgewatt.{space}"]]
    assert len(elsewhere) == len({*elsewhere}) and {*elsewhere} <= {*MOVED}  # each name in one place


def test_a_name_that_moved_warns_and_is_what_it_was() -> None:
    with pytest.warns(DeprecationWarning, match="edgewatt.load_part is edgewatt.dram.load_part"):
        assert edgewatt.load_part is edgewatt.dram.load_part
    with pytest.warns(DeprecationWarning, match="edgewatt.order_both is edgewatt.wires.order_jointly"):
        assert edgewatt.order_both is edgewatt.wires.order_jointly


def test_a_submodule_does_not_take_the_place_of_a_function() -> None:
    script = "import edgewatt.catalogue; import edgewatt; assert callable(edgewatt.catalogue)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'ordre'"):
        edgewatt.ordre  # noqa: B018


def test_import_loads_nothing_heavy() -> None:
    script = (
        "import sys, edgewatt, edgewatt.cli;"
        "heavy = {'numpy', 'scipy', 'ortools', 'simpy', 'pydantic', 'rich', 'ml_dtypes', 'yaml'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# Commands whose function has another name than the command.
FUNCTIONS = {
    "token": "token_energy",
    "arena": "allocate",
    "show": "load_records",
    "list": "catalogue",
    "cache": "profile_caches",
    "doctor": "diagnose",
    "prune": "prune_for_memory",
    "export": "export_trace",
    "dram": "simulate_dram",
    "accelerator": "layer_costs",
}


def test_every_command_is_a_function_of_the_facade() -> None:
    from edgewatt.cli import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    public = {name for names in PUBLIC.values() for name in names}
    missing = [name for name in names if FUNCTIONS.get(name, name.replace("-", "_")) not in public]
    assert not missing, missing
