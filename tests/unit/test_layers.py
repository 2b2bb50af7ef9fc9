"""The plan of the house (docs/concepts/architecture.md): imports go downward only, no circles.

cython_ext < traces < hwmodel, reorder < edgewatt. A room is a folder, or a module that stands beside the folders.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.application

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


SOURCES = {".py", ".pyx", ".pxd", ".h", ".hpp", ".js", ".html", ".css"}
FACADE = {"edgewatt.__init__", "edgewatt.__main__"}  # names for others, no floor of their own


@cache
def modules() -> dict[str, Path]:
    """Return module name -> file of all packages but the kernels; a package is named by its __init__."""
    packages = [name for name in MAY_IMPORT if name != "cython_ext"]
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}


def imported(tree: ast.AST, *, functions: bool) -> Iterator[str]:
    """Yield the modules that a module imports, also inside functions if wished; those for type checkers too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (_module(alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (_module(node.module or "", alias.name) for alias in node.names)
        elif functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imported(node, functions=functions)


def _module(name: str, inner: str) -> str:
    for candidate in (f"{name}.{inner}", f"{name}.{inner}.__init__", name, f"{name}.__init__"):
        if candidate in modules():
            return candidate
    return ""


@cache
def graph(functions: bool) -> dict[str, set[str]]:
    """Return module -> modules it imports."""
    found = {}
    for name, path in modules().items():
        found[name] = set(imported(ast.parse(path.read_text()), functions=functions)) - {"", name}
    return found


def room(module: str) -> str:
    """Return the folder of a module, or the module itself where it stands beside the folders of its package."""
    folder = module.rpartition(".")[0]
    return module if folder in MAY_IMPORT else folder


@cache
def rooms() -> dict[str, set[str]]:
    """Return room -> rooms it imports, ties hidden in functions included."""
    found: dict[str, set[str]] = {}
    for module, others in graph(functions=True).items():
        found.setdefault(room(module), set()).update(room(other) for other in others)
    return {name: others - {name} for name, others in found.items()}


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the sets of two nodes and more that reach each other."""

    @cache
    def reached(start: str) -> frozenset[str]:
        seen, waiting = set(), [start]
        while waiting:
            for other in edges.get(waiting.pop(), set()) - seen:
                seen.add(other)
                waiting.append(other)
        return frozenset(seen)

    return {
        frozenset({node} | {other for other in reached(node) if node in reached(other)})
        for node in edges
        if node in reached(node)
    }


def test_no_module_imports_itself_in_a_circle() -> None:
    assert not circles(graph(functions=False))
    assert not circles(graph(functions=True)), "an import inside a function ties a circle"


def test_no_rooms_import_each_other() -> None:
    assert not circles(rooms())


def test_no_kernel_folders_need_each_other() -> None:
    needs: dict[str, set[str]] = {}
    for path in (ROOT / "cython_ext").glob("*/*"):
        if path.suffix in SOURCES - {".py"}:
            found = re.findall(r'(?:#include|extern from) "(\w+)/|cython_ext\.(\w+)\.\w+ cimport', path.read_text())
            needs.setdefault(path.parent.name, set()).update(header or module for header, module in found)
    assert not circles({name: others - {name} for name, others in needs.items()})


def test_a_class_has_a_name_of_its_own() -> None:
    """One word for one thing: no two modules have public classes of the same name."""
    places: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_map_is_true_for_today() -> None:
    """docs/concepts/architecture.md names every room that there is, and none that there is not."""
    if not (ROOT / "docs").is_dir():
        pytest.skip("a copy of the packages alone")
    text = (ROOT / "docs" / "concepts" / "architecture.md").read_text()
    rooms = text[text.index("## Rooms") : text.index("## To add something")]
    named = {
        name.rstrip("/") for name in re.findall(r"`((?:cython_ext|traces|hwmodel|reorder|edgewatt)/[\w./]*)`", rooms)
    }
    assert [name for name in named if not (ROOT / name).exists()] == []
    folders = {"/".join(module.split(".")[:2]) for module in modules() if module.count(".") > 1}
    folders = {folder for folder in folders if (ROOT / folder).is_dir() and not folder.startswith("cython_ext")}
    assert {folder for folder in folders if folder not in named} == set()
    row = next(line for line in rooms.splitlines() if line.startswith("| `cython_ext/`"))
    assert {path.parent.name for path in ROOT.glob("cython_ext/*/*.pyx")} == set(re.findall(r"`(\w+)`", row))
    way = re.findall(r"`((?:\w+/)+\w+\.py)`", text[text.index("## The way of a point") :])
    assert [path for path in way if not ((ROOT / path).exists() or (ROOT / "edgewatt" / path).exists())] == []


def test_nothing_but_the_command_line_imports_a_command() -> None:
    """What a command computes is in the library (test_commands.py)."""
    for name, others in graph(functions=True).items():
        if room(name) != "edgewatt.cli" and name not in FACADE:
            assert not [other for other in others if room(other) == "edgewatt.cli"], name


def test_code_is_never_merged_by_union() -> None:
    """Both sides' lines one after the other are no program; git's own question is asked instead."""
    asked = subprocess.run(
        ["git", "ls-files", "-z", "--", "*.py", "*.pyx", "*.pxd", "*.pyi", "*.h"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if asked.returncode:
        pytest.skip("this is not a checkout")
    rows = subprocess.run(
        ["git", "check-attr", "-z", "--stdin", "merge"], cwd=ROOT, input=asked.stdout, capture_output=True, text=True
    ).stdout.split("\0")
    assert {rows[k] for k in range(2, len(rows), 3)} == {"unspecified"}
