"""What the packages define is named once more in them, a script or the docs: tests do not count."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]
PACKAGES = ("cython_ext", "traces", "hwmodel", "reorder", "edgewatt")
SOURCES = {".py", ".pyx", ".pxd", ".h"}
CALLED_BY_OTHERS = {
    "readinto": "io.RawIOBase",
    "format_commands": "click",
    "model_post_init": "pydantic",
    "model_config": "pydantic",
    "_repr_html_": "Jupyter",
    "_fields_": "ctypes",
}
WRITTEN_OUT = {
    "largest_error": "the JSON of `edgewatt bench` holds all fields of a row",
    "table_entries": "stands in every record and counts in its hash",
}


def defined(path: Path) -> Iterator[str]:
    """Yield the names of a module, and of the fields, methods and properties of its classes; not what another decorator
    hands on."""
    if path.suffix == ".pyx":
        yield from (a or b for a, b in re.findall(r"^(?: *def (\w+)|(\w+) =)", path.read_text(), re.M))
        return
    waiting = ast.parse(path.read_text()).body if path.suffix == ".py" else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            waiting += node.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and all(
            isinstance(each, ast.Name) and each.id in ("property", "cached_property") for each in node.decorator_list
        ):
            yield node.name
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_nothing_stands_unused() -> None:
    if not (ROOT / "docs").is_dir():
        pytest.skip("a copy of the packages alone")
    places: dict[str, list[str]] = {}
    said: Counter[str] = Counter()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in SOURCES:
                said.update(re.findall(r"\w+", path.read_text()))
                for name in defined(path):
                    places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    documented = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".py")]
    for path in [*(ROOT / "scripts").rglob("*.py"), *documented]:
        said.update(re.findall(r"\w+", path.read_text()))
    known = CALLED_BY_OTHERS.keys() | WRITTEN_OUT.keys()
    unused = {name: found for name, found in places.items() if said[name] <= len(found) and name not in known}
    assert {name: found for name, found in unused.items() if not name.startswith("__")} == {}
