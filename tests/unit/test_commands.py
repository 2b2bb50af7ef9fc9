"""A command parses and prints; what it shows is computed in the library.

Looked for in `edgewatt/cli` are imports of what computes (below `edgewatt` only names of the façade and `traces.base`),
arithmetic on values, and functions so long that a library must hide in them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import edgewatt
from edgewatt.names import PUBLIC

pytestmark = pytest.mark.application

CLI = Path(edgewatt.__file__).parent / "cli"
COMMANDS = sorted(path for path in CLI.glob("*.py") if path.stem != "__init__")
EVERY = sorted(CLI.rglob("*.py"))
FACADE = {(module, name) for names in PUBLIC.values() for name, module in names.items()}
MOST_STATEMENTS = 40  # of a command, its imports not counted
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.LShift, ast.RShift)


def computes(module: str) -> bool:
    """Return whether a module is of a package that computes: ours below `edgewatt`, NumPy and its kin."""
    ours = module.split(".")[0] in ("cython_ext", "traces", "hwmodel", "reorder", "numpy", "scipy", "yaml")
    return ours and not module.startswith("traces.base")


def computing_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of imports of what computes; the standard library does not, NumPy and its kin do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wrong = [alias.name for alias in node.names if computes(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            wrong = [alias.name for alias in node.names if computes(module) and (module, alias.name) not in FACADE]
        else:
            continue
        if wrong:
            yield node.lineno, ast.unparse(node)


def is_text(node: ast.AST) -> bool:
    """Return whether an operand is text, a list of cells, or a path: putting those together computes nothing."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("Path", "str") or ast.unparse(node.func).endswith(".join")
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


def arithmetic(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of arithmetic on values inside functions."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC) and not is_text(node):
                yield node.lineno, ast.unparse(node)
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ARITHMETIC[1:]):
                yield node.lineno, ast.unparse(node)


def long_functions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of functions of too many statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            inner = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
            count = sum(not isinstance(part, ast.Import | ast.ImportFrom) for part in inner)
            if count > MOST_STATEMENTS:
                yield node.lineno, f"{node.name} has {count} statements"


def wrong_in(tree: ast.AST) -> list[tuple[int, str]]:
    return sorted({*computing_imports(tree), *arithmetic(tree), *long_functions(tree)})


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_only_parses_and_prints(path: Path) -> None:
    assert [f"{path.name}:{line}: {what}" for line, what in wrong_in(ast.parse(path.read_text()))] == []


def test_nothing_below_a_command_imports_what_computes() -> None:
    """Not tables and parts of commands either, but for two: the start, which looks whether the kernels can be loaded,
    and the recognition of files, which asks the trace readers."""
    found = {str(path.relative_to(CLI)) for path in EVERY if list(computing_imports(ast.parse(path.read_text())))}
    assert found == {"__init__.py", "parts/recognition.py"}
