"""Each kernel's .pyi says what the compiled module has: its names, their members and parameters, no others."""

import ast
import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = sorted((ROOT / "cython_ext").glob("*/*.pyx"))


def declared(body: list[ast.stmt]) -> dict[str, Any]:
    """Return names: parameters of a function, the same of a class's members, None of a value."""
    found: dict[str, Any] = {}
    for line in body:
        if isinstance(line, ast.FunctionDef):
            a = line.args
            value = any(isinstance(d, ast.Name) and d.id == "property" for d in line.decorator_list)
            found[line.name] = None if value else [each.arg for each in a.posonlyargs + a.args + a.kwonlyargs]
        elif isinstance(line, ast.ClassDef):
            found[line.name] = declared(line.body)
        elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            found[line.target.id] = None
    return found


def compiled(owner: Any, unchecked: Iterable[str] = ()) -> dict[str, Any]:
    """Return the same of a module or class; constructors of compiled classes hide their parameters.

    unchecked: names with an underscore that are for others.
    """
    found: dict[str, Any] = {}
    for name, value in vars(owner).items():
        if (name.startswith("_") and name not in {"__len__", *unchecked}) or isinstance(value, ModuleType):
            continue
        if inspect.isclass(value):
            found[name] = compiled(value)
        else:
            found[name] = list(inspect.signature(value).parameters) if inspect.isroutine(value) else None
    return found


def without_constructors(names: dict[str, Any]) -> dict[str, Any]:
    return {
        name: without_constructors(members) if isinstance(members, dict) else members
        for name, members in names.items()
        if name != "__init__"
    }


@pytest.mark.parametrize("source", KERNELS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_stub_of_a_kernel_has_its_names_and_parameters(source: Path) -> None:
    module = import_module(".".join(source.relative_to(ROOT).with_suffix("").parts))
    stub = ast.parse(source.with_suffix(".pyi").read_text())
    imported = re.findall(r"\w+", " ".join(re.findall(r"^from .* import (.*)", source.read_text(), re.MULTILINE)))
    expected = declared(stub.body)
    found = {name: members for name, members in compiled(module, expected).items() if name not in imported}
    assert without_constructors(expected) == found


def test_each_stub_has_its_kernel() -> None:
    stubs = sorted((ROOT / "cython_ext").glob("*/*.pyi"))
    assert [stub.with_suffix(".pyx") for stub in stubs] == KERNELS
