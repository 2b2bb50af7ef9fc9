"""The machine a trace is played on, as frozen dataclasses: what `replay` and `system` both read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hwmodel.caches.policy import CACHE_POLICIES, Policy
from hwmodel.caches.prefetcher import PREFETCHERS
from hwmodel.coding import ChainFacts, StreamChain, chain_facts
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from traces.access.trace import STREAMS
from traces.base.errors import InputError, unknown_name

UNKNOWN_ELEMENT_BYTES = 4
"""What the encoder takes for one value of a stream that a trace says nothing of."""
WRITE_MODES = ("back", "through")


def _whole(value: object, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {value!r}")
    return value


def _element_sizes(given: object, where: str) -> dict[str, int]:
    """Return bytes of one element by stream. Raises InputError naming the stream."""
    if not isinstance(given, Mapping):
        raise InputError(f"element_bytes of {where} must be a number of bytes or one for each stream, not {given!r}")
    for name, value in given.items():
        if name not in STREAMS:
            raise unknown_name("stream", str(name), STREAMS)
        if _whole(value, f"element_bytes of {name}") > 2**16:
            raise InputError(f"element_bytes of {name} must be at most 65536, not {value}")
    return dict(given)


@dataclass(frozen=True)
class PrefetchSpec:
    """What a cache level fetches unasked: `degree` lines, the first of them `distance` steps ahead.

    kind: a name of PREFETCHERS: none; next-line, tagged (a step is one line; at a demand miss and at the first use of
    a prefetched line); stride (a step is what a reference prediction table of `table_entries` has learnt; Chen & Baer
    1995), at each new line of a stream whose stride is steady. Raises InputError naming the field.
    """

    kind: str = "none"
    degree: int = 1
    distance: int = 1
    table_entries: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str):
            raise InputError(f"prefetch kind must be a name, not {self.kind!r}")
        PREFETCHERS[self.kind]
        for name, most in (("degree", 1024), ("distance", 2**20), ("table_entries", 2**16)):
            if _whole(getattr(self, name), f"prefetch {name}") > most:
                raise InputError(f"prefetch {name} must be at most {most}, not {getattr(self, name)}")


@dataclass(frozen=True)
class CacheSpec:
    """One cache level.

    size_bytes = sets x ways x line_bytes; sets and line_bytes are powers of two. policy: a name of CACHE_POLICIES
    (`edgewatt list cache-policies`). write: 'back' or 'through'. allocate: whether a store miss fills the line.
    prefetch: not with a policy that needs the future: it knows the look-ups to come, not what would be prefetched.
    Raises InputError naming the field.
    """

    size_bytes: int
    line_bytes: int = 64
    ways: int = 8
    policy: str = "lru"
    write: str = "back"
    allocate: bool = True
    seed: int = 0
    prefetch: PrefetchSpec = PrefetchSpec()

    def __post_init__(self) -> None:
        for name in ("size_bytes", "line_bytes", "ways"):
            _whole(getattr(self, name), f"cache {name}")
        _whole(self.seed, "cache seed", 0)
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


@dataclass(frozen=True)
class BusSpec:
    """The data bus between cache and memory: `bus_bytes` byte lanes, encoded in blocks of `block_bytes` (one burst)."""

    bus_bytes: int = 2
    block_bytes: int = 32

    def __post_init__(self) -> None:
        for name in ("bus_bytes", "block_bytes"):
            value = _whole(getattr(self, name), f"bus {name}")
            if value & (value - 1):
                raise InputError(f"bus {name} must be a power of two, not {value}")
        if self.block_bytes % self.bus_bytes:
            raise InputError(f"bus block_bytes {self.block_bytes} is no multiple of bus_bytes {self.bus_bytes}")


@dataclass(frozen=True)
class EngineSpec:
    """The compute engine: `outstanding_misses` line requests in flight, `accesses_per_ns` cache accesses per ns.

    access_bytes: the widest access; a row of many lanes takes several.
    """

    outstanding_misses: int = 8
    accesses_per_ns: float = 1.0
    access_bytes: int = field(default=64, metadata={"later": True})

    def __post_init__(self) -> None:
        _whole(self.outstanding_misses, "engine outstanding_misses")
        _whole(self.access_bytes, "engine access_bytes", 16)
        if not self.accesses_per_ns > 0 or self.accesses_per_ns == float("inf"):
            raise InputError(f"engine accesses_per_ns must be a positive number, not {self.accesses_per_ns!r}")


@dataclass(frozen=True)
class Machine:
    """Caches, encoder chain on the bus, DRAM part with its controller, engine.

    caches: from the engine outward; none means that every access goes to memory. encoder: a chain of
    hwmodel.encoders, e.g. 'base-xor+dbi-dc'. element_bytes: what the encoder takes for one value, for all streams or by
    the name of a stream (None: what the trace says of each stream, else 4). part, controller: of hwmodel.dram.engine;
    part None stops after the bus. flush: write dirty lines back at the end (counted apart). scratchpad: memory that
    software manages, instead of caches. technology: of hwmodel.energy.technology, a name, path, mapping or Technology:
    what on-chip memory and arithmetic cost; None counts neither.
    """

    caches: tuple[CacheSpec, ...] = ()
    encoder: str = "raw"
    element_bytes: int | Mapping[str, int] | None = None
    bus: BusSpec = field(default_factory=BusSpec)
    part: Any = None
    controller: Any = None
    engine: EngineSpec = field(default_factory=EngineSpec)
    flush: bool = True
    scratchpad: ScratchpadSpec | None = None
    technology: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.element_bytes, int) and self.element_bytes not in (1, 2, 4, 8):
            raise InputError(f"element_bytes is {self.element_bytes}: elements have 1, 2, 4 or 8 bytes")
        if not isinstance(self.element_bytes, int | None):
            _element_sizes(self.element_bytes, "the machine")
        if self.scratchpad is not None:
            if self.caches:
                raise InputError("a machine has caches or a scratchpad, not both: leave one out")
            if self.scratchpad.stream_bytes < self.bus.block_bytes:
                raise InputError(
                    f"scratchpad stream_bytes {self.scratchpad.stream_bytes} is smaller than a burst of "
                    f"{self.bus.block_bytes} bytes: the connections need room for at least one"
                )
        lines = [cache.line_bytes for cache in self.caches]
        if lines != sorted(lines):
            raise InputError(f"line_bytes must not shrink from one cache level to the next, not {lines}")
        for k, cache in enumerate(self.caches[1:], 2):
            if cache.prefetches:  # write-backs and fills of the level before it would train it
                raise InputError(f"cache level {k} cannot prefetch: only the first one sees what the engine asks for")
        if lines and lines[-1] % self.bus.block_bytes:
            raise InputError(f"line_bytes {lines[-1]} is no multiple of the bus block_bytes {self.bus.block_bytes}")

    @property
    def encoder_facts(self) -> ChainFacts:
        """What the encoder chain declares: its flag wires, whether it inverts, its latency."""
        return chain_facts(self.encoder)

    def encoder_chain(self, own: Mapping[str, int] | None = None) -> StreamChain:
        """Return the encoder chain on the bus, whose blocks are of one stream each (numbers of STREAMS).

        own: bytes of one element of each stream, `element_bytes` in the description of a trace.
        """
        chosen = self.element_bytes
        if isinstance(chosen, int):
            sizes = dict.fromkeys(STREAMS, chosen)
        else:
            sizes = _element_sizes(own or {}, "the trace") | _element_sizes(chosen or {}, "the machine")
        each = [sizes.get(name, UNKNOWN_ELEMENT_BYTES) for name in STREAMS]
        costs = None
        if self.part is not None:
            from hwmodel.energy.memory import data_wire_costs

            costs = data_wire_costs(self.part)
        return StreamChain(self.encoder, each, self.bus.bus_bytes, self.bus.block_bytes, costs)

    def memory_controller(self) -> Any:
        """Return the ControllerSpec, with the latency the encoder chain declares.

        A chain that inverts reads with the part's DBI latency; the clocks that its decoders take are spent in the
        controller.
        """
        from hwmodel.dram.engine import controller_spec

        controller, facts = controller_spec(self.controller), self.encoder_facts
        if facts.inverts:
            controller = replace(controller, read_dbi=True)
        if facts.latency_cycles:
            latency = controller.controller_latency_cycles + facts.latency_cycles
            controller = replace(controller, controller_latency_cycles=latency)
        return controller
