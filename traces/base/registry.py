"""Registries of named kinds: encoders, cache policies, orderings, number formats and so on.

A kind has one registry and one folder. In-tree members are the modules of that folder, found by looking: to add one is
to add a file. Members of other distributions come by entry points whose group is `edgewatt.<kind>`; the entry point's
name is the member's, and loading it must register that name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Generic, TypeVar

from traces.base.errors import EdgewattError, InputError, did_you_mean, shown, unknown_name

T = TypeVar("T")
OUR_PACKAGES = ("traces", "hwmodel", "reorder", "edgewatt")


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a member comes from that is not ours: distribution, version and the SHA-256 of its code (`code_hash`).

    A member of no distribution, registered by a script, a module or a notebook of the user's, has that file's name
    ('' without a file) and no version.
    """

    distribution: str
    version: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class Entry(Generic[T]):
    """One registered kind: the thing itself, its frozen parameter dataclass and one line for `edgewatt list`.

    module: the one that registered it. origin: None for our own members.
    """

    name: str
    item: T
    summary: str
    parameters: type | None = None
    module: str = ""
    origin: Origin | None = None

    @property
    def required(self) -> list[str]:
        """Names of the parameters without which nothing can be made."""
        fields = dataclasses.fields(self.parameters) if self.parameters else ()
        missing = dataclasses.MISSING
        return [field.name for field in fields if field.default is missing and field.default_factory is missing]

    def make_parameters(self, given: Mapping[str, Any]) -> Any:
        """Build the parameter dataclass from keyword arguments; unknown and missing names are an InputError."""
        known = [field.name for field in dataclasses.fields(self.parameters)] if self.parameters else []
        for key in given:
            if key not in known:
                hint = did_you_mean(key, known) if known else " (it takes none)"
                raise InputError(f"{self.name!r} has no parameter {key!r}{hint}")
        for name in self.required:
            if name not in given:
                raise InputError(f"{self.name!r} needs the parameter {name!r}")
        return self.parameters(**given) if self.parameters else None


class Registry(Mapping[str, Entry[T]]):
    """Name -> Entry of one kind.

    what: the kind as messages name it. entry_point_group: ``edgewatt.<kind>``; None: ours alone. folder: the package
    whose modules, and those of its folders, are the in-tree members; they are imported at the first look-up, in the
    order of their names. None: whoever imports the members registers them. instances_of, subclasses_of: what a member
    must be, where it is no function.

    Entry points are read, not loaded, until their member is asked for, so a broken plug-in breaks nothing else. An
    in-tree name wins over an entry point of the same name.
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
        self._holds_outside = False
        self._looked, self._looking = folder is None, False
        self._lock = threading.RLock()
        _ALL.append(self)

    def register(self, name: str, *, summary: str, parameters: type | None = None) -> Callable[[T], T]:
        """Return a decorator that adds its argument under `name`. `parameters` is a frozen dataclass or None.

        Raises TypeError for what cannot be a member, ValueError for a name that is taken.
        """

        def add(item: T) -> T:
            self._check(name, item)
            if name in self._entries:
                raise ValueError(f"{self.what} {name!r} is registered twice")
            frame = _registering_frame()
            module = str(frame.f_globals.get("__name__", ""))
            origin = self._origin(name, module, frame.f_code)
            self._holds_outside |= origin is not None
            self._entries[name] = Entry(name, item, summary, parameters, module, origin)
            return item

        return add

    def _check(self, name: str, item: object) -> None:
        if self._subclasses_of is not None:
            fits, needed = isinstance(item, type) and issubclass(item, self._subclasses_of), self._subclasses_of
        elif self._instances_of is not None:
            fits, needed = isinstance(item, self._instances_of), self._instances_of
        else:
            return
        if not fits:
            kind = "subclass" if self._subclasses_of else "instance"
            raise TypeError(f"{self.what} {name!r} must be a {kind} of {needed.__name__}, not {shown(item)}")

    def __getitem__(self, name: str) -> Entry[T]:
        """Return a member; names are found in any case. Raises InputError with a suggestion if there is none."""
        self._look()
        entry = self._entries.get(name)
        if entry is not None:
            return entry
        name = self._spelt(name)
        if name not in self._entries and name in self._plugins:
            self._load_plugin(name)
        if name not in self._entries:
            raise unknown_name(self.what, name, self)
        return self._entries[name]

    def _spelt(self, name: str) -> str:
        if name in self._entries or name in self._plugins or not isinstance(name, str):
            return name
        return next((known for known in self if known.lower() == name.lower()), name)

    def __contains__(self, name: object) -> bool:
        self._look()
        return name in self._entries or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        self._look()
        return iter([*self._entries, *(name for name in sorted(self._plugins) if name not in self._entries)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def sound(self) -> dict[str, Entry[T]]:
        """Return the entries that can be loaded: what lists and schemas show, which a broken plug-in must not stop."""
        entries = {}
        for name in self:
            try:
                entries[name] = self[name]
            except InputError:
                continue
        return entries

    def has_outside(self) -> bool:
        """Return whether a member may be another's: one that an entry point names, or that is registered already."""
        return bool(self._plugins) or self._holds_outside

    @cached_property
    def _plugins(self) -> dict[str, Any]:
        return {point.name: point for point in _entry_points() if point.group == self.entry_point_group}

    def _look(self) -> None:
        """Import the modules of the kind's folder, once; other threads wait until all of them are."""
        if self._looked:
            return
        import pkgutil

        with self._lock:
            if self._looked or self._looking:  # a member may ask for another while it is imported
                return
            self._looking = True
            try:
                assert self.folder is not None
                package = import_module(self.folder)
                inside = pkgutil.walk_packages(package.__path__, f"{self.folder}.")
                for module in sorted(inside, key=lambda each: each.name):
                    import_module(module.name)
                self._looked = True
            finally:
                self._looking = False

    def _load_plugin(self, name: str) -> None:
        """Load an entry point; importing it registers the member. Raises InputError naming the distribution."""
        point = self._plugins[name]
        source = " ".join(_distribution(point)).strip()
        with self._lock:
            try:
                point.load()
            except (
                Exception,
                SystemExit,
            ) as error:  # a module that ends the program when it is imported is broken, too
                _forget(point.module)
                raise InputError(
                    f"the {self.what} {name!r} of {source} cannot be loaded: {type(error).__name__}: {error}"
                ) from error
        if name not in self._entries:
            raise InputError(f"the entry point {name!r} of {source} registers no {self.what} of that name")

    def _origin(self, name: str, module: str, body: CodeType) -> Origin | None:
        """Return where a member that a module registers comes from: the distribution whose entry points name it, else
        the file that holds its body."""
        package = module.partition(".")[0]
        if package in OUR_PACKAGES or self.entry_point_group is None:
            return None
        points = [point for point in _entry_points() if point.module.partition(".")[0] == package]
        if not points:
            file = Path(body.co_filename)
            return Origin(file.name if file.is_file() else "", "", _hash_of_module(module, body))

        def strange(point: Any) -> tuple[bool, bool]:
            return (point.group, point.name) != (self.entry_point_group, name), point.module != module

        point = min(points, key=strange)
        return Origin(*_distribution(point), code_hash(point))


_ALL: list[Registry[Any]] = []


def failure_outside(error: BaseException) -> InputError | None:
    """Return an error that names the member of another distribution, or of a script, whose code raised `error`.

    None where no such code was under way, and for errors that are raised on purpose: these say all there is to say.
    """
    link: BaseException | None = error
    members = [(r.what, e) for r in _ALL for e in r._entries.values() if e.origin is not None]
    theirs = {_package(entry.module) for _, entry in members}
    while link is not None and members and not isinstance(link, EdgewattError):
        places = [
            (frame, line) for frame, line in traceback.walk_tb(link.__traceback__) if _package_of(frame) in theirs
        ]
        member = next((member for frame, _ in places if (member := _members_of(frame, members))), None)
        if member:
            frame, line = places[-1]
            said = "".join(traceback.format_exception_only(link)).strip()
            return InputError(f"{member} failed: {said} ({Path(frame.f_code.co_filename).name}, line {line})")
        link = link.__cause__ or link.__context__
    return None


def naming_outside(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; what code of another distribution raises in it becomes an InputError that names the member."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        if named := failure_outside(error):
            raise named from error
        raise


def _package_of(frame: FrameType) -> str:
    return _package(str(frame.f_globals.get("__name__", "")))


def _members_of(frame: FrameType, members: list[tuple[str, Entry[Any]]]) -> str:
    """Return the members, in words, whose own code a frame runs, else those of its distribution; '' for neither."""
    module = str(frame.f_globals.get("__name__", ""))
    here = [(what, entry) for what, entry in members if _package(entry.module) == _package(module)]
    root = frame.f_code.co_qualname.partition(".")[0]
    own = [(what, entry) for what, entry in here if entry.module == module and root in _roots(entry.item)]
    of_distribution = [(what, entry) for what, entry in here if entry.origin is not None and entry.origin.version]
    in_module = [(what, entry) for what, entry in of_distribution if entry.module == module]
    candidates = own or in_module or of_distribution
    if not candidates:
        return ""
    origin = candidates[0][1].origin
    assert origin is not None
    names = " or ".join(f"{what} {entry.name!r}" for what, entry in candidates[:3])
    return f"the {names} of {f'{origin.distribution} {origin.version}'.strip() or 'this session'}"


def _package(module: str) -> str:
    return module.partition(".")[0]


def _roots(item: Any) -> set[str]:
    """Return the names of the functions and classes that a member is made of."""
    pieces = (item, type(item), *getattr(item, "__dict__", {}).values())
    return {str(getattr(piece, "__qualname__", "")).partition(".")[0] for piece in pieces} - {""}


def _registering_frame() -> FrameType:
    """Return the frame of the module whose body is running: the one that registers, whatever helpers it calls."""
    frame = sys._getframe(2)
    while not frame.f_code.co_name.startswith("<") and frame.f_back is not None:  # <module>, or <cell line: 1>
        frame = frame.f_back
    return frame


def _forget(module: str) -> None:
    """Drop what a module registered that failed afterwards, of all kinds."""
    for members in _ALL:
        for name in [name for name, entry in members._entries.items() if entry.module == module]:
            del members._entries[name]


@cache
def _entry_points() -> list[Any]:
    """Return the entry points of all our groups."""
    from importlib.metadata import entry_points

    every = entry_points()
    ours = sorted(group for group in every.groups if group.startswith("edgewatt."))
    return [point for group in ours for point in every.select(group=group)]


def _distribution(point: Any) -> tuple[str, str]:
    return (point.dist.name, point.dist.version) if point.dist else (point.module, "")


def code_hash(point: Any) -> str:
    """Return the SHA-256 of the code behind an entry point.

    Its module's file, or all code of the package where it names one; and all code that its distribution says it
    installed. Code are Python files and compiled ones.
    """
    spec = importlib.util.find_spec(point.module)
    module = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    files = set() if module is None else {module}
    if module is not None and module.name == "__init__.py":
        files = _code_in(module.parent)
    listed = point.dist.files or () if point.dist else ()
    return _hash_of_files(files | {Path(file.locate()) for file in listed if file.name.endswith(_CODE)})


def _hash_of_module(name: str, body: CodeType) -> str:
    """Return the SHA-256 of a module of no distribution: its file, or all code of the package that it is in; of code
    typed into a session, what was compiled of it."""
    package = sys.modules.get(name.partition(".")[0])
    folders = [Path(folder) for folder in getattr(package, "__path__", ())]
    files = {file for folder in folders for file in _code_in(folder)} or {Path(body.co_filename)}
    if any(file.is_file() for file in files):
        return _hash_of_files(files)
    return hashlib.sha256(repr(_compiled(body)).encode()).hexdigest()


def _compiled(code: CodeType) -> list[Any]:
    """Return what code does, without where it stands; sets, whose order is that of a session, sorted."""
    parts: list[Any] = [code.co_code, code.co_names, code.co_varnames]
    for value in code.co_consts:
        if isinstance(value, CodeType):
            parts.append(_compiled(value))
        else:
            parts.append(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
    return parts


_CODE = (".py", ".dll", ".dylib", *EXTENSION_SUFFIXES)


def _code_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.name.endswith(_CODE)}


def _hash_of_files(files: set[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(path.resolve() for path in files if path.is_file()):
        digest.update(file.read_bytes())
    return digest.hexdigest()
