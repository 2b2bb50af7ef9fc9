"""Imports go downward only: cython_ext < traces < hwmodel, reorder < edgewatt (docs/architecture)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "cython_ext": {"cython_ext"},
    "traces": {"cython_ext", "traces"},
    "hwmodel": {"cython_ext", "traces", "hwmodel"},
    "reorder": {"cython_ext", "traces", "reorder"},
    "edgewatt": {"cython_ext", "traces", "hwmodel", "reorder", "edgewatt"},
}


def imported_packages(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add((node.module or "").split(".")[0])
    return names & set(MAY_IMPORT)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_downward(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        assert imported_packages(path) <= MAY_IMPORT[package], path


def test_kernels_need_only_numpy_and_libc() -> None:
    for path in (ROOT / "cython_ext").rglob("*.pyx"):
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"], ["cimport"]):
                top = words[1].split(".")[0].rstrip(",")
                assert top in {"numpy", "libc", "libcpp", "cython", "cython_ext", "cpython"}, f"{path}: {line}"
