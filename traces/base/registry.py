"""Registries of named kinds: encoders, cache policies, orderings, number formats and so on.

In-tree members are the modules of the kind's folder; those of other distributions come by entry points of the group
`edgewatt.<kind>`, each called as its member, which loading it registers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from traces.base.errors import InputError, did_you_mean, shown, unknown_name

T = TypeVar("T")
OUR_PACKAGES = ("traces", "hwmodel", "reorder", "edgewatt")
_SESSION = secrets.token_hex(8)


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a member comes from that is not ours: its distribution and that one's version.

    Without one: the file that registers it, with its SHA-256 as `code`; without a file: a `code` of this session alone.
    """

    distribution: str
    version: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip() or "this session"


@dataclasses.dataclass(frozen=True)
class Entry(Generic[T]):
    """A member: the thing itself, one line for `edgewatt list`, its frozen parameter dataclass, who registered it."""

    name: str
    item: T
    summary: str
    parameters: type | None = None
    module: str = ""
    origin: Origin | None = None  # None: ours

    @property
    def required(self) -> list[str]:
        fields = dataclasses.fields(self.parameters) if self.parameters else ()
        missing = dataclasses.MISSING
        return [field.name for field in fields if field.default is missing and field.default_factory is missing]

    def make_parameters(self, given: Mapping[str, Any]) -> Any:
        known = [field.name for field in dataclasses.fields(self.parameters)] if self.parameters else []
        for key in given:
            if key not in known:
                hint = did_you_mean(key, known) if known else " (it takes none)"
                raise InputError(f"{self.name!r} has no parameter {key!r}{hint}")
        for name in self.required:
            if name not in given:
                raise InputError(f"{self.name!r} needs the parameter {name!r}")
        return self.parameters(**given) if self.parameters else None


def _defined(item: object) -> str:
    """Return the name of a member's definition: run again, as a cell of a notebook is, it replaces what it made."""
    made = getattr(item, "make", item)
    return str(getattr(made, "__qualname__", "") or type(made).__qualname__)


class Registry(Mapping[str, Entry[T]]):
    """Name -> Entry of one kind.

    what: the kind as messages name it. entry_point_group: None for a kind that is ours alone; distributions may write
    hyphens in it. folder: the package whose modules are the in-tree members, imported at the first look-up; None:
    whoever imports them registers them. instances_of, subclasses_of: what a member must be, where it is not a function.

    An entry point is loaded when its member is asked for, so a broken plug-in breaks nothing else; our names win.
    """

    def __init__(
        self,
        what: str,
        entry_point_group: str | None,
        *,
        folder: str | None = None,
        instances_of: type | None = None,
        subclasses_of: type | None = None,
    ) -> None:
        self.what = what
        self._instances_of, self._subclasses_of = instances_of, subclasses_of
        self.entry_point_group = entry_point_group
        self.folder = folder
        self._entries: dict[str, Entry[T]] = {}
        self._discovered, self._discovering, self._any_outside = folder is None, False, False
        self._lock = threading.RLock()
        _ALL.append(self)

    def register(
        self, name: str, *, summary: str, parameters: type | None = None, module: str | None = None
    ) -> Callable[[T], T]:
        """Return a decorator that adds its argument under `name`. parameters: a frozen dataclass, or None.

        module: who registers; None: who calls. Raises TypeError for what cannot be a member, ValueError for a name
        that is taken.
        """
        by = module or str(sys._getframe(1).f_globals.get("__name__", ""))

        def add(item: T) -> T:
            self._check(name, item)
            known = self._entries.get(name)
            if known is not None and (known.module, _defined(known.item)) != (by, _defined(item)):
                raise ValueError(f"{self.what} {name!r} is registered twice")
            entry = self._entries[name] = Entry(name, item, summary, parameters, by, self._origin(name, by))
            self._any_outside = self._any_outside or entry.origin is not None
            return item

        return add

    def _check(self, name: str, item: object) -> None:
        needed = self._subclasses_of or self._instances_of or object
        fits = isinstance(item, type) and issubclass(item, needed) if self._subclasses_of else isinstance(item, needed)
        if not fits:
            kind = "subclass" if self._subclasses_of else "instance"
            raise TypeError(f"{self.what} {name!r} must be a {kind} of {needed.__name__}, not {shown(item)}")

    def __getitem__(self, name: str) -> Entry[T]:
        """Return a member; names are found in any case. Raises InputError with a suggestion if there is none."""
        self._discover()
        if name not in self and isinstance(name, str):
            name = next((known for known in self if known.lower() == name.lower()), name)
        if name not in self._entries:
            if name not in self._plugins:
                raise unknown_name(self.what, name, self)
            self._load_plugin(name)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._entries or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter([*self._entries, *(name for name in sorted(self._plugins) if name not in self._entries)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def loadable(self) -> dict[str, Entry[T]]:
        """Return the entries that can be loaded: what lists and schemas show, which a broken plug-in must not stop."""
        entries = {}
        for name in self:
            try:
                entries[name] = self[name]
            except InputError:
                continue
        return entries

    def has_outside(self) -> bool:
        return self._any_outside or bool(self._plugins)

    @cached_property
    def _plugins(self) -> dict[str, Any]:
        group = self.entry_point_group
        return {point.name: point for point in _entry_points() if point.group.replace("-", "_") == group}

    def _discover(self) -> None:
        """Import the modules of the kind's folder, once; other threads wait until all of them are."""
        if self._discovered:
            return
        import pkgutil

        with self._lock:
            if self._discovered or self._discovering:  # a member may ask for another while it is imported
                return
            self._discovering = True
            try:
                assert self.folder is not None
                package = import_module(self.folder)
                inside = pkgutil.walk_packages(package.__path__, f"{self.folder}.")
                for module in sorted(inside, key=lambda each: each.name):
                    import_module(module.name)
                self._discovered = True
            finally:
                self._discovering = False

    def _load_plugin(self, name: str) -> None:
        point = self._plugins[name]
        with self._lock:
            try:
                point.load()
            except (Exception, SystemExit) as error:  # a module that ends the program is broken, too
                for members in _ALL:  # whatever it registered before it failed
                    for each in [each for each, entry in members._entries.items() if entry.module == point.module]:
                        del members._entries[each]
                raise InputError(
                    f"the {self.what} {name!r} of {origin_of(point)} cannot be loaded: {type(error).__name__}: {error}"
                ) from error
        if name not in self._entries:
            raise InputError(f"the entry point {name!r} of {origin_of(point)} registers no {self.what} of that name")

    def _origin(self, name: str, module: str) -> Origin | None:
        package = _package(module)
        if package in OUR_PACKAGES or self.entry_point_group is None:
            return None
        if points := [point for point in _entry_points() if _package(point.module) == package]:
            registered = self.entry_point_group, name
            return origin_of(
                min(points, key=lambda each: ((each.group, each.name) != registered, each.module != module))
            )
        file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
        if not file.is_file():
            return Origin("", "", _SESSION)
        return Origin(file.name, "", hashlib.sha256(file.read_bytes()).hexdigest())


_ALL: list[Registry[Any]] = []


def _package(module: str) -> str:
    return module.partition(".")[0]


@cache
def _entry_points() -> list[Any]:
    from importlib.metadata import entry_points

    every = entry_points()
    ours = sorted(group for group in every.groups if group.startswith("edgewatt."))
    return [point for group in ours for point in every.select(group=group)]


def origin_of(point: Any) -> Origin:
    return Origin(point.dist.name, point.dist.version) if point.dist else Origin(point.module, "")
