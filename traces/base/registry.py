"""Registries of named kinds: encoders, cache policies, orderings, number formats."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from traces.base.errors import InputError, did_you_mean, unknown_name

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Entry(Generic[T]):
    """One registered kind: the thing itself, its frozen parameter dataclass and one line for `edgewatt list`."""

    name: str
    item: T
    summary: str
    parameters: type | None = None

    def make_parameters(self, given: Mapping[str, Any]) -> Any:
        """Build the parameter dataclass from keyword arguments; unknown names are an InputError with a suggestion."""
        known = [field.name for field in dataclasses.fields(self.parameters)] if self.parameters else []
        for key in given:
            if key not in known:
                hint = did_you_mean(key, known) if known else " (it takes none)"
                raise InputError(f"{self.name!r} has no parameter {key!r}{hint}")
        return self.parameters(**given) if self.parameters else None


class Registry(Mapping[str, Entry[T]]):
    """Name -> Entry. In-tree kinds register at import; third parties through an entry point of the same group name.

    Entry points are looked up only when a name is not found in-tree, so a broken plugin cannot break start-up.
    """

    def __init__(self, what: str, entry_point_group: str) -> None:
        self.what = what
        self.entry_point_group = entry_point_group
        self._entries: dict[str, Entry[T]] = {}

    def register(self, name: str, *, summary: str, parameters: type | None = None) -> Callable[[T], T]:
        """Return a decorator that adds its argument under `name`. `parameters` is a frozen dataclass or None."""

        def add(item: T) -> T:
            if name in self._entries:
                raise ValueError(f"{self.what} {name!r} is registered twice")
            self._entries[name] = Entry(name, item, summary, parameters)
            return item

        return add

    def __getitem__(self, name: str) -> Entry[T]:
        if name not in self._entries:
            self._load_plugin(name)
        if name not in self._entries:
            raise unknown_name(self.what, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _load_plugin(self, name: str) -> None:
        from importlib.metadata import entry_points

        for entry_point in entry_points(group=self.entry_point_group, name=name):
            entry_point.load()  # importing the module registers it
