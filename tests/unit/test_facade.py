"""The names of the façade: all there, stable, cheap, and functions even where a submodule has the same name."""

import subprocess
import sys
from importlib import import_module

import pytest

import edgewatt


@pytest.mark.parametrize("name", edgewatt.__all__)
def test_every_name_of_the_facade_is_there(name: str) -> None:
    assert getattr(edgewatt, name) is not None
    assert name in dir(edgewatt)


def test_a_submodule_does_not_take_the_place_of_a_function() -> None:
    import_module("edgewatt.catalogue")
    assert callable(edgewatt.catalogue)
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
    missing = [name for name in names if FUNCTIONS.get(name, name.replace("-", "_")) not in edgewatt.__all__]
    assert not missing, missing
