"""No code tests the name of a kind's member: a member declares what others need to know of it.

Looked for are comparisons and `in` with a text that is a member's name, cases of `match`, and tables that are asked by
one. Words of other vocabularies may read the same; each such place is listed here with what the word is.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from edgewatt.plugins import KINDS, registry

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]
PACKAGES = ("traces", "hwmodel", "reorder", "edgewatt")

OTHER_WORDS = {  # file -> what is compared there, as a pattern of the source, and why it is not a member's name
    "traces/trace/partition.py": (r"engines\.cut", "what engines share work by: runs, layers, ..."),
    "traces/readers/scipy_sparse.py": (
        r"kind|type\(matrix\)\.__module__\.partition\('\.'\)\[0\]",
        "SciPy's own format of the file; a package's name",
    ),
    "hwmodel/dram/checker.py": (r"refresh", "whether a controller refreshes"),
    "hwmodel/caches/spec.py": (r"self\.kind", "the prefetcher that is none, the only one"),
    "hwmodel/dram/engine.py": (r"behaviour", "what the engine does for a refresh policy"),
    "hwmodel/dram/interface.py": (r"part\.interface\.dbi|rule", "what a part inverts for"),
    "hwmodel/fastmemory/iomodel.py": (r"policy", "the I/O model's three evictions, which define it"),
    "hwmodel/parts/burst_cells.py": (r"dbi", "what a part inverts for"),
    "hwmodel/parts/part.py": (r"self\.termination", "how a part ends its wires"),
    "hwmodel/parts/part_sections.py": (
        r"termination|section\.dbi",
        "how a part ends its wires, and what it inverts for",
    ),
    "hwmodel/processor/export_c.py": (r"dtype", "number types of a C compiler"),
    "hwmodel/processor/inference.py": (r"algorithm|(self\.)?dtype", "algorithms and number types of the kernels"),
    "reorder/tuples/files.py": (
        r"\(stored\.metadata\(\) or \{\}\)\.get\('sparse_format'\)|kind",
        "SciPy's own formats",
    ),
    "reorder/edges/search/objectives.py": (r"policy", "the I/O model's three evictions, which define it"),
    "edgewatt/cli/order.py": (r"policy", "the I/O model's three evictions, which define it"),
    "edgewatt/cli/checks.py": (r"order", "whose order is timed: by the clock, the file's, the configuration's"),
    "edgewatt/config/models.py": (r"value", "no technology"),
    "edgewatt/operators/energy.py": (r"tensor\.dtype", "data types of operator graphs"),
    "traces/base/sparse.py": (r"kind|matrix\.format", "SciPy's own formats"),
    "traces/trace/transfers.py": (r"plan\.kind", "the layout whose records name neurons"),
    "hwmodel/energy/total.py": (r"idle", "how much of idle energy is billed"),
    "reorder/edges/methods/components.py": (r"policy", "the I/O model's three evictions, which define it"),
    "traces/operators/execute.py": (r"tensor\.dtype", "the type of a tensor in a model file"),
    "edgewatt/memory/exports.py": (r"matrix\.format", "SciPy's own format"),
}


@cache
def members() -> frozenset[str]:
    return frozenset(name for kind in KINDS for name in registry(kind))


def texts(node: ast.AST) -> set[str]:
    """Return the texts that a literal holds."""
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def is_literal(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Set | ast.Dict)


def asked_and_said(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return what an expression asks about, and the literals that it compares with."""
    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            return [s for s in sides if not is_literal(s)], [s for s in sides if is_literal(s)]
        case ast.Match():
            return [node.subject], [case.pattern for case in node.cases]
        case ast.Subscript(value=ast.Dict()):
            return [node.slice], [key for key in node.value.keys if key]
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "removeprefix" | "removesuffix")):
            return [node.func.value], [*node.args]
    return [], []


def name_tests(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, what is asked, and which member it is asked for."""
    for node in ast.walk(tree):
        asked, said = asked_and_said(node)
        for name in sorted(set().union(*map(texts, said)) & members()):
            yield node.lineno, " ".join(map(ast.unparse, asked)), name


def found() -> Iterator[tuple[str, int, str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for line, asked, name in name_tests(ast.parse(path.read_text())):
                yield str(path.relative_to(ROOT)), line, asked, name


def test_no_code_tests_a_members_name() -> None:
    wrong = [
        f"{file}:{line}: {asked} is compared with {name!r}, a member's name: let the member declare what is asked"
        for file, line, asked, name in found()
        if file not in OTHER_WORDS or not re.fullmatch(OTHER_WORDS[file][0], asked)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_listed_place_is_still_there() -> None:
    assert {file for file, *_ in found()} >= set(OTHER_WORDS)
