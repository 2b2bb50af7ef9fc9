"""One cache level and its prefetcher, as frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field

from hwmodel.caches.policy import CACHE_POLICIES, Policy
from hwmodel.caches.prefetcher import PREFETCHERS
from traces.base.arguments import check_fields
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name

WRITE_MODES = ("back", "through")
BYPASSING = ("values", "ids", "row_pointers", "tuples")


@dataclass(frozen=True)
class PrefetchSpec:
    """What a cache level prefetches: `degree` lines, the first of them `distance` steps ahead.

    kind: a name of PREFETCHERS: none; next-line, tagged (a step is one line; at a demand miss and at the first use of
    a prefetched line); stride (a step is what a reference prediction table of `table_entries` has learnt; Chen & Baer
    1995), at each new line of a stream whose stride is steady. Raises InputError naming the field.
    """

    kind: str = "none"
    degree: int = 1
    distance: int = 1
    table_entries: int = 16

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.kind, str):
            raise InputError(f"prefetch kind must be a name, not {self.kind!r}")
        PREFETCHERS[self.kind]
        for name, most in (("degree", 1024), ("distance", 2**20), ("table_entries", 2**16)):
            if whole_number(getattr(self, name), f"prefetch {name}") > most:
                raise InputError(f"prefetch {name} must be at most {most}, not {getattr(self, name)}")


@dataclass(frozen=True)
class CacheSpec:
    """One cache level.

    size_bytes = sets x ways x line_bytes; sets and line_bytes are powers of two. policy: a name of CACHE_POLICIES
    (`edgewatt list cache-policies`). write: 'back' or 'through'. allocate: whether a store miss fills the line.
    prefetch: not with a policy that needs the future: it knows the look-ups to come, not what would be prefetched.
    bypass: streams of connections (traces.trace.chunks.STREAMS) that pass by, as non-temporal loads do: a buffer holds
    the last line of each, and nothing is allocated. Raises InputError naming the field.
    """

    size_bytes: int
    line_bytes: int = 64
    ways: int = 8
    policy: str = "lru"
    write: str = "back"
    allocate: bool = True
    seed: int = 0
    prefetch: PrefetchSpec = PrefetchSpec()
    bypass: tuple[str, ...] = field(default=(), metadata={"later": True})

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.bypass:
            if name not in BYPASSING:
                raise unknown_name("stream that passes by a cache", str(name), BYPASSING)
        if self.bypass and self.prefetches:
            raise InputError("cache bypass goes without a prefetcher: leave one out")
        for name in ("size_bytes", "line_bytes", "ways"):
            whole_number(getattr(self, name), f"cache {name}")
        whole_number(self.seed, "cache seed", 0)
        line, ways, size = self.line_bytes, self.ways, self.size_bytes
        if line & (line - 1) or line > 4096:
            raise InputError(f"cache line_bytes must be a power of two up to 4096, not {line}")
        if size % line:
            raise InputError(f"cache size_bytes {size} is no multiple of line_bytes {line}")
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
        if not isinstance(self.policy, str):
            raise InputError(f"cache policy must be a name, not {self.policy!r}")
        objection = self.policy_type.objection(ways)
        if objection is not None:
            raise InputError(f"policy {self.policy!r} {objection}")
        if self.write not in WRITE_MODES:
            raise unknown_name("cache write mode", self.write, WRITE_MODES)
        if not isinstance(self.allocate, bool):
            raise InputError(f"cache allocate must be true or false, not {self.allocate!r}")
        if not isinstance(self.prefetch, PrefetchSpec):
            raise InputError(f"cache prefetch must be a PrefetchSpec, not {self.prefetch!r}")
        if self.prefetches and self.policy_type.needs_future:
            raise InputError(f"policy {self.policy!r} cannot prefetch: choose another policy, or prefetch kind 'none'")

    @property
    def prefetches(self) -> bool:
        """Whether this level prefetches."""
        return PREFETCHERS[self.prefetch.kind].item.fetches

    @property
    def policy_type(self) -> type[Policy]:
        """The class of the replacement policy."""
        return CACHE_POLICIES[self.policy].item

    @property
    def sets(self) -> int:
        """Number of sets."""
        return self.size_bytes // (self.line_bytes * self.ways)
