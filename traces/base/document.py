"""YAML read so that every key and value knows its file, line and column: the one reader of all our YAML.

Stricter than YAML at large: no duplicate keys, no tags, no merge keys, bounded depth and alias expansion; numbers
follow YAML 1.2, so ``1e-3`` is a number and ``yes`` a word. Nothing read is ever executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traces.base.checks import is_whole
from traces.base.errors import InputError, printable, shown
from traces.base.memory import claim

MAX_DEPTH = 32
MAX_NODES = 1_000_000
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
MOST_PROBLEMS = 50  # problems of one file
MAX_ALIASED = 10_000  # nodes that aliases may add: stops "billion laughs"
MAX_BYTES = 64 << 20

_NODE_BYTES = 1000  # of memory for a value, its loc and its marks
_TIMES = 5  # text: of memory for a byte of a file, while it is parsed

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_WHOLE_EXPONENT = re.compile(r"[-+]?(0|[1-9][0-9]*)[eE]\+?([0-9]|1[0-8])")  # 1e4 serves where a whole number is due
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}

Loc = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Mark:
    """Where something stands. line and column count from 1; line 0 means the whole file (or a command-line option)."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class ConfigError(InputError):
    """All that is wrong with a configuration; the message has one line per problem, ``FILE:LINE:COLUMN: message``."""

    def __init__(self, problems: Iterable[tuple[Mark, str]]) -> None:
        self.problems = sorted(dict.fromkeys(problems), key=lambda problem: problem[0])
        lines = [f"{mark}: {message}" for mark, message in self.problems[:MOST_PROBLEMS]]
        if more := len(self.problems) - len(lines):
            lines.append(f"{self.problems[MOST_PROBLEMS][0]}: and {more} more problems from here on")
        super().__init__("\n".join(lines))


@dataclass
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and the mark of each loc in it.

    keys: mark of the key (or list item) at a loc. values: mark of the value there. The root's loc is ().
    pieces: (folder of configs/, name) of the named files whose content was put into it. problems: found so far.
    """

    data: Any
    keys: dict[Loc, Mark] = field(default_factory=dict)
    values: dict[Loc, Mark] = field(default_factory=dict)
    pieces: set[tuple[str, str]] = field(default_factory=set)
    problems: list[tuple[Mark, str]] = field(default_factory=list)

    def mark(self, loc: Loc, *, key: bool = False) -> Mark:
        table = self.keys if key else self.values
        while loc and loc not in table:
            loc = loc[:-1]
        return table.get(loc) or self.values.get(loc) or Mark("configuration")

    def get(self, loc: Loc) -> Any:
        data = self.data
        for step in loc:
            data = data[step]
        return data

    def at(self, loc: Loc) -> Document:
        data = self.get(loc)
        part = Document(data)
        for tail in locs_in(data):
            if tail and loc + tail in self.keys:
                part.keys[tail] = self.keys[loc + tail]
            if loc + tail in self.values:
                part.values[tail] = self.values[loc + tail]
        return part

    def put(self, loc: Loc, part: Document, key: Mark | None = None) -> None:
        if not loc:
            self.data, self.keys, self.values = part.data, dict(part.keys), dict(part.values)
            return
        target: Any = self.data
        for depth, step in enumerate(loc, 1):  # 'a.1' names the key '1' of a mapping, the second item of a list
            here = int(step) if isinstance(target, list) and is_whole(str(step)) else str(step)
            loc = (*loc[: depth - 1], here, *loc[depth:])
            if depth == len(loc):
                break
            if isinstance(target, dict) and target.get(here) is None:
                target[here] = {}
                self.keys.setdefault(loc[:depth], key or part.mark(()))
                self.values.setdefault(loc[:depth], part.mark(()))
            try:
                target = target[here]
            except (KeyError, IndexError, TypeError):
                raise ConfigError([(key or part.mark(()), f"there is no {dotted(loc[:depth])} to set")]) from None
        if not isinstance(target, dict) and not (
            isinstance(target, list) and isinstance(loc[-1], int) and loc[-1] < len(target)
        ):
            raise ConfigError([(key or part.mark(()), f"{dotted(loc[:-1])} has no parts, so {dotted(loc)} is none")])
        n = len(loc)
        last: Any = loc[-1]
        if isinstance(target, list) or isinstance(target.get(last), dict | list):  # it may have marks of its own
            for table in (self.keys, self.values):
                for old in [p for p in table if p[:n] == loc]:
                    del table[old]
        target[last] = _copy(part.data)
        self.keys[loc] = key or part.mark(())
        self.keys.update({loc + p: m for p, m in part.keys.items()})
        self.values.update({loc + p: m for p, m in part.values.items()})

    def apply(self, changes: Iterable[Change]) -> None:
        for loc, part, key in changes:
            self.put(loc, part, key)

    def lay(self, over: Document, loc: Loc = ()) -> None:
        data, here = over.get(loc), self.get(loc)
        for key in data:
            at = (*loc, key)
            if isinstance(data[key], dict) and isinstance(here.get(key), dict):
                self.values[at] = over.mark(at)
                self.lay(over, at)
            else:
                self.put(at, over.at(at), over.mark(at, key=True))

    def take(self, loc: Loc) -> Document:
        part = self.at(loc)
        del self.get(loc[:-1])[loc[-1]]
        return part

    def copy(self) -> Document:
        return Document(_copy(self.data), dict(self.keys), dict(self.values), set(self.pieces))

    def fail(self, loc: Loc, message: str, *, key: bool = False) -> ConfigError:
        return ConfigError([(self.mark(loc, key=key), message)])

    def complain(self, loc: Loc, message: str) -> None:
        self.problems.append((self.mark(loc, key=True), f"{dotted(loc)}: {message}" if loc else message))

    def finish(self) -> None:
        """Raise ConfigError with all problems, if there are any."""
        if self.problems:
            raise ConfigError(self.problems)


Change = tuple[Loc, Document, Mark]
"""Where something is put, what, and the mark of its key."""


def dotted(loc: Loc) -> str:
    return ".".join(map(str, loc))


def locs_in(data: Any, at: Loc = ()) -> Iterator[Loc]:
    """Yield the loc of every value in nested dicts and lists, parents first. at: put before each."""
    yield at
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in items:
        yield from locs_in(value, (*at, step))


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(value) for value in data] if isinstance(data, list) else data


def read_document(path: str | Path, as_yaml: Callable[[str], str] | None = None) -> Document:
    """Read a YAML file, or one whose text `as_yaml` makes YAML. Raises ConfigError naming file, line and column."""
    path, name = Path(path), printable(path)
    try:
        with path.open("rb") as stream:
            claim(_TIMES * min(os.fstat(stream.fileno()).st_size, MAX_BYTES), name)
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            reason = "no such file"
        elif isinstance(error, IsADirectoryError):
            reason = "is a folder: name the YAML file in it"
        else:
            reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ConfigError([(Mark(name), reason)]) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError([(Mark(name), f"is larger than {MAX_BYTES >> 20} MiB, too large to configure")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        mark = Mark(name, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        raise ConfigError([(mark, f"byte 0x{raw[error.start]:02x} is not UTF-8: save the file as UTF-8")]) from error
    if path.suffix == ".json":
        text = text.replace("\t", " ")  # JSON may be indented with tabs, YAML may not
    return parse_document(text if as_yaml is None else as_yaml(text), str(path))


def parse_document(text: str, name: str) -> Document:
    import yaml

    composer = _Composer(printable(name))
    try:
        composer.read(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        if mark is not None:
            where, problem = composer.mark(mark), getattr(error, "problem", None) or getattr(error, "context", None)
        else:  # a ReaderError knows only the position of a character that YAML does not allow
            at = getattr(error, "position", 0)
            before = text[:at]
            where = Mark(composer.name, before.count("\n") + 1, at - before.rfind("\n"))
            problem = "a control character stands here, which YAML does not allow"
        composer.problems.append((where, _TOO_DEEP if "nesting depth" in str(problem) else f"not YAML: {problem}"))
    except RecursionError:
        composer.problems.append((Mark(composer.name, 1, 1), "nested too deeply"))
    if composer.problems:
        raise ConfigError(composer.problems)
    return composer.document


class _TooMuch(Exception):
    """Ends reading: the document is larger than any configuration is."""


class _Composer:
    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[tuple[Mark, str]] = []
        self.document = Document(None)
        self._events: Any = None
        self._anchors: dict[str, tuple[Any, Loc, int] | None] = {}  # value, its loc, nodes in it
        self._nodes = 0
        self._aliased = 0

    def mark(self, mark: Any) -> Mark:
        return Mark(self.name, mark.line + 1, mark.column + 1)

    def problem(self, event: Any, message: str) -> None:
        self.problems.append((self.mark(event.start_mark), message))

    def read(self, text: str) -> None:
        import yaml

        self._events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        next(self._events)  # stream start
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            self.problems.append((Mark(self.name, 1, 1), "the file is empty"))
            return
        try:
            self.document.data = self._node(next(self._events), (), 0)
        except _TooMuch:
            return
        next(self._events)  # document end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            self.problem(event, "a second YAML document begins here: one file holds one configuration")

    def _node(self, event: Any, loc: Loc, depth: int) -> Any:
        import yaml

        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            what = _TOO_DEEP if depth > MAX_DEPTH else f"more than {MAX_NODES} values"
            self.problem(event, what)
            raise _TooMuch
        if self._nodes % 4096 == 0:
            claim(_NODE_BYTES * self._nodes, self.name, f"{self._nodes} values")
        self.document.values[loc] = self.mark(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, loc)
        anchor, nodes_before = event.anchor, self._nodes
        if anchor:
            self._anchors[anchor] = None  # known, but not complete: an alias to it inside would be a cycle
        if event.tag not in (None, "!") or (event.tag == "!" and not isinstance(event, yaml.ScalarEvent)):
            self.problem(event, f"tags such as {event.tag!r} are not used here")
        if isinstance(event, yaml.ScalarEvent):
            value: Any = event.value if event.style or event.tag == "!" else self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                self.document.keys[(*loc, len(value))] = self.mark(event.start_mark)
                value.append(self._node(event, (*loc, len(value)), depth + 1))
        else:
            value = self._mapping(loc, depth)
        if anchor:
            self._anchors[anchor] = (value, loc, 1 + self._nodes - nodes_before)
        return value

    def _mapping(self, loc: Loc, depth: int) -> dict[str, Any]:
        import yaml

        value: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self.problem(event, "a key must be a word")
                self._node(event, (*loc, "?"), depth + 1)
                self._node(next(self._events), (*loc, "?"), depth + 1)
                continue
            key = event.value
            if key == "<<" and not event.style:
                self.problem(event, "merge keys (<<) are not supported: name a shared file, or use 'base' in a sweep")
            elif key in value:
                first = self.document.keys[(*loc, key)]
                self.problem(event, f"key {shown(key)} appears twice (first in line {first.line})")
            self.document.keys.setdefault((*loc, key), self.mark(event.start_mark))
            value[key] = self._node(next(self._events), (*loc, key), depth + 1)
        return value

    def _alias(self, event: Any, loc: Loc) -> Any:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            reason = "stands inside its own anchor" if event.anchor in self._anchors else "has no anchor before it"
            self.problem(event, f"alias *{printable(event.anchor)} {reason}")
            return None
        value, origin, nodes = anchored
        self._aliased += nodes
        if self._aliased > MAX_ALIASED:
            self.problem(event, f"aliases expand to more than {MAX_ALIASED} values")
            raise _TooMuch
        self._nodes += nodes
        for table in (self.document.keys, self.document.values):
            for tail in locs_in(value):
                if tail and origin + tail in table:
                    table[loc + tail] = table[origin + tail]
        return _copy(value)

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INT.fullmatch(text):
            if len(text) > 40:
                self.problem(event, f"the number {shown(text)} is too long")
                return 0
            return int(text)
        if match := _WHOLE_EXPONENT.fullmatch(text):
            return int(text[: text.lower().index("e")][:40]) * 10 ** int(match[2])
        return float(text) if _FLOAT.fullmatch(text) else text
