"""One cache level, as a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.caches.policy import CACHE_POLICIES, Policy
from hwmodel.parts.part import added_field
from traces.base.arguments import check_fields
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name

WRITE_MODES = ("back", "through")
BYPASSING = ("values", "ids", "row_pointers", "tuples")


@dataclass(frozen=True)
class PrefetchSpec:
    """No prefetcher: the only kind left, which stands in every record and counts in its hash."""

    kind: str = "none"
    degree: int = 1
    distance: int = 1
    table_entries: int = 16

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind != "none":
            raise InputError(f"cache prefetch kind {self.kind!r}: prefetchers are gone since 0.3: leave it out")


@dataclass(frozen=True)
class CacheSpec:
    """One cache level.

    size_bytes = sets x ways x line_bytes; sets and line_bytes are powers of two. policy: a name of CACHE_POLICIES
    (`edgewatt list cache-policies`). write: 'back' or 'through'. allocate: whether a store miss fills the line.
    prefetch: none. bypass: streams of connections (traces.trace.chunks.STREAMS) that pass by, as non-temporal loads do:
    a buffer holds the last line of each, and nothing is allocated. Raises InputError naming the field.
    """

    size_bytes: int
    line_bytes: int = 64
    ways: int = 8
    policy: str = "lru"
    write: str = "back"
    allocate: bool = True
    seed: int = 0
    prefetch: PrefetchSpec = PrefetchSpec()
    bypass: tuple[str, ...] = added_field(())

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.bypass:
            if name not in BYPASSING:
                raise unknown_name("stream that passes by a cache", str(name), BYPASSING)
        for name in ("size_bytes", "line_bytes", "ways"):
            whole_number(getattr(self, name), f"cache {name}")
        whole_number(self.seed, "cache seed", 0)
        line, ways, size = self.line_bytes, self.ways, self.size_bytes
        if line & (line - 1) or line > 4096:
            raise InputError(f"cache line_bytes must be a power of two up to 4096, not {line}")
        if size % line:
            raise InputError(f"cache size_bytes {size} is not a multiple of line_bytes {line}")
        lines = size // line
        if ways > lines:
            raise InputError(f"cache ways {ways} exceed its {lines} lines ({size} bytes / {line})")
        if lines % ways or (lines // ways) & (lines // ways - 1):
            raise InputError(
                f"cache of {size} bytes, {line}-byte lines and {ways} ways has {lines / ways:g} sets: "
                "the number of sets must be a power of two"
            )
        if self.size_bytes > 2**40:
            raise InputError(f"cache size_bytes {size} is beyond 2^40")
        objection = self.policy_type.objection(ways)
        if objection is not None:
            raise InputError(f"policy {self.policy!r} {objection}")
        if self.write not in WRITE_MODES:
            raise unknown_name("cache write mode", self.write, WRITE_MODES)

    @property
    def policy_type(self) -> type[Policy]:
        return CACHE_POLICIES[self.policy].item

    @property
    def sets(self) -> int:
        return self.size_bytes // (self.line_bytes * self.ways)
