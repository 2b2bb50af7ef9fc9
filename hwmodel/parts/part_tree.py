"""Nested data of a part file with the place of every key; constants are checked as they are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hwmodel.parts.part import Constant
from traces.base.document import read_document
from traces.base.errors import InputError, did_you_mean, shown

Keys = tuple[str, ...]
ABOUT = ("source", "estimate", "note", "range")  # what a constant says of its value


class Tree:
    """Plain nested data, the position of each key, and the problems found so far."""

    def __init__(self, data: Any, positions: Mapping[Keys, tuple[int, int]], where: str) -> None:
        self.data, self.positions, self.where = data, positions, where
        self.problems: list[str] = []
        self.constants: dict[str, Constant] = {}
        self.ranges: dict[str, tuple[float, float]] = {}
        self.files: tuple[Path, ...] = ()  # this one and those it extends

    def complain(self, keys: Keys, message: str) -> None:
        """Note a problem at a key (or at its nearest ancestor that has a position)."""
        at = keys
        while at and at not in self.positions:
            at = at[:-1]
        where = f"{self.where}:{self.positions[at][0]}:{self.positions[at][1]}" if at else self.where
        self.problems.append(f"{where}: {'.'.join(keys) + ': ' if keys else ''}{message}")

    def section(self, *keys: str, required: bool = True, known: Sequence[str] | None = None) -> Mapping[str, Any]:
        """Return a mapping, {} where it is none. known: the keys it may have; others are complained about."""
        node = self.data
        for key in keys:
            node = node.get(key) if isinstance(node, Mapping) else None
        if node is None and not required:
            return {}
        if not isinstance(node, Mapping):
            self.complain(keys, "this section is missing" if node is None else "must be a mapping of constants")
            return {}
        if known is not None:
            self.check_keys(keys, known)
        return node

    def check_keys(self, keys: Keys, known: Sequence[str]) -> None:
        for key in self.section(*keys, required=False):
            if key not in known:
                self.complain((*keys, str(key)), f"unknown key{did_you_mean(key, known)}")

    def text(self, *keys: str, default: str = "") -> str:
        node = self.data
        for key in keys:
            node = node.get(key, default) if isinstance(node, Mapping) else default
        if not isinstance(node, str):
            self.complain(keys, f"must be text, not {shown(node)}")
            return default
        return node

    def constant(self, keys: Keys, *, least: float, whole: bool, required: bool = True) -> float | None:
        """Return the value of {value, source, estimate, note}; a problem is noted and None returned."""
        section = self.section(*keys[:-1], required=False)
        if keys[-1] not in section:
            if required:
                self.complain(keys, "this constant is missing")
            return None
        node = section[keys[-1]]
        if not isinstance(node, Mapping) or "value" not in node:
            self.complain(keys, "write {value: NUMBER, source: WHERE IT COMES FROM}")
            return None
        for key in node:
            if key not in ("value", *ABOUT):
                self.complain((*keys, str(key)), f"unknown key{did_you_mean(key, ('value', *ABOUT))}")
        return self.number(keys, node["value"], least, whole) if self.record(keys, node["value"], node) else None

    def record(self, keys: Keys, value: Any, node: Mapping[str, Any]) -> bool:
        """Check the source of a constant and keep it; return whether it has one."""
        source, estimate = node.get("source"), node.get("estimate", False)
        if not isinstance(source, str) or not source.strip():
            self.complain(keys, "has no source: say which standard, datasheet or estimate it comes from")
            return False
        if not isinstance(estimate, bool):
            self.complain((*keys, "estimate"), f"must be true or false, not {shown(estimate)}")
            return False
        self._range(keys, node.get("range"), estimate)
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
        self.constants[".".join(keys)] = Constant(number, source, estimate)
        return True

    def _range(self, keys: Keys, ends: Any, estimate: bool) -> None:
        """Keep the range of an estimated current or capacitance: two factors, one on each side of 1."""
        if ends is None:
            return
        good = isinstance(ends, list) and len(ends) == 2
        if not good or any(isinstance(end, bool) or not isinstance(end, (int, float)) for end in ends):
            self.complain((*keys, "range"), f"must be two factors such as [0.6, 1.6], not {shown(ends)}")
        elif not 0 < ends[0] <= 1 <= ends[1] <= 100:
            self.complain((*keys, "range"), f"a range goes from a factor up to 1 to one from 1 on, not {ends}")
        elif not estimate or not keys[-1].endswith(("_mA", "_pF")):
            self.complain((*keys, "range"), "only estimated currents and capacitances have one")
        else:
            self.ranges[".".join(keys)] = float(ends[0]), float(ends[1])

    def number(self, keys: Keys, value: Any, least: float, whole: bool) -> float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            hint = " (a number in quotes: remove the quotes)" if isinstance(value, str) else ""
            self.complain(keys, f"must be a number, not {shown(value)}{hint}")
        elif not math.isfinite(value) or value < least or value > 1e12:
            self.complain(keys, f"must be at least {least:g} and finite, not {shown(value)}")
        elif whole and value != int(value):
            self.complain(keys, f"must be a whole number, not {shown(value)}")
        else:
            return int(value) if whole else float(value)
        return None

    def finish(self) -> None:
        if self.problems:
            raise InputError("\n".join(self.problems))


def plain(node: Any, depth: int = 0) -> Any:
    if depth > 8:
        raise InputError("a part nests at most 8 mappings")
    if isinstance(node, Mapping):
        return {str(key): plain(value, depth + 1) for key, value in node.items()}
    return list(node) if isinstance(node, tuple) else node


def read_tree(path: Path, as_yaml: Callable[[str], str] | None = None) -> Tree:
    """Read a part file, with the position of every key. Raises InputError naming file, line and column.

    as_yaml: turns the text of another format into YAML, line by line.
    """
    document = read_document(path, as_yaml)
    if not isinstance(document.data, dict):
        raise InputError(f"{path}: a part file is a mapping (see docs/concepts/dram-parts.md)")
    positions = {tuple(map(str, loc)): (mark.line, mark.column) for loc, mark in document.keys.items()}
    tree = Tree(document.data, positions, str(path))
    tree.files = (path,)
    return tree
