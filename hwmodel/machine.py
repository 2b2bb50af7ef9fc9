"""The machine a trace is played on, as frozen dataclasses: what `replay` and `system` both read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hwmodel.caches.spec import CacheSpec
from hwmodel.coding.chain import ChainFacts, chain_facts
from hwmodel.coding.in_burst import ShareFlags, burst_cells, share_flags
from hwmodel.coding.streams import StreamChain, stream_chain
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.parts.part import Part, added_field, cached_on
from traces.base.arguments import check_fields
from traces.base.checks import whole_number
from traces.base.errors import InputError, shown, unknown_name
from traces.base.reprs import OneLineRepr
from traces.base.resources import shipped_path
from traces.trace.chunks import STREAMS

IDLE = ("all", "none", "capacity", "bandwidth")

MOST_OUTSTANDING = 2**24
RATES = ("accesses_per_ns", "clock_ghz", "records_per_cycle", "loads_per_cycle", "stores_per_cycle",
         "accumulates_per_cycle", "values_per_cycle", "instructions_per_cycle")  # fmt: skip
LEAST_PER_NS, LEAST_PER_CYCLE, MOST = 1e-5, 1e-3, 1e6
"""Of an engine's rates, and of pJ: 10 kHz and 1,000 cycles. With all at their least, a network of 128 connections takes
45 s and their refreshes up to 2.4 s of a core."""
UNKNOWN_ELEMENT_BYTES = 4
"""What the encoder takes for one value of a stream that a trace says nothing of."""


def _element_sizes(given: object, where: str) -> dict[str, int]:
    """Return bytes of one element by stream. Raises InputError naming the stream."""
    if not isinstance(given, Mapping):
        raise InputError(
            f"element_bytes of {where} must be a number of bytes or one for each stream, not {shown(given)}"
        )
    for name, value in given.items():
        if name not in STREAMS:
            raise unknown_name("stream", str(name), STREAMS)
        if whole_number(value, f"element_bytes of {name}") > 2**16:
            raise InputError(f"element_bytes of {name} must be at most 65536, not {value}")
    return dict(given)


def _within(name: str, value: float, least: float) -> None:
    if not least <= value <= MOST:
        raise InputError(f"engine {name} must be from {least:g} to {MOST:g}, not {shown(value)}")


@dataclass(frozen=True)
class BusSpec:
    """The data bus between cache and memory: `bus_bytes` byte lanes, encoded in blocks of `block_bytes` (one burst).

    metadata: the word that every burst carries beside its data, on a part with metadata in its bursts (LPDDR6).
    """

    bus_bytes: int = 2
    block_bytes: int = 32
    metadata: int = added_field(0)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("bus_bytes", "block_bytes"):
            value = whole_number(getattr(self, name), f"bus {name}")
            if value & (value - 1):
                raise InputError(f"bus {name} must be a power of two, not {value}")
        whole_number(self.metadata, "bus metadata", 0)
        if self.block_bytes % self.bus_bytes:
            raise InputError(f"bus block_bytes {self.block_bytes} is not a multiple of bus_bytes {self.bus_bytes}")


@dataclass(frozen=True)
class EngineSpec:
    """The compute engine: resources side by side. A connection takes the maximum of their times, not the sum.

    outstanding_misses: lines of the last cache in flight. dma_bytes: bytes that the DMA of a scratchpad reads ahead.
    accesses_per_ns: one port for all accesses, and nothing else that limits; None: the resources below.
    access_bytes: the widest access; a row of many lanes takes several. clock_ghz: cycles per ns.
    records_per_cycle: connections that a FIFO brings; None: their ids and values are loads.
    loads_per_cycle, stores_per_cycle: accesses of rows, and of what no other resource takes.
    accumulates_per_cycle: rows of partial sums read, modified and written (in registers while a run lasts: none); None:
    they are loads and stores. values_per_cycle: multiply-adds.
    instructions_per_cycle: what a core issues: its loads, stores and multiply-adds (access_bytes wide each), and
    instructions_per_connection beside them; None: no instructions. instruction_pj: energy of one.
    skip_zeros: a connection whose source is zero in all lanes costs its record and the test, a scratchpad's only.
    A rate of None has no limit. The defaults take a connection a cycle. Raises InputError naming the field that is out
    of range.
    """

    outstanding_misses: int = 8
    accesses_per_ns: float | None = added_field(None)
    access_bytes: int = added_field(64)
    clock_ghz: float = added_field(1.0)
    records_per_cycle: float | None = added_field(1.0)
    loads_per_cycle: float | None = added_field(1.0)
    stores_per_cycle: float | None = added_field(1.0)
    accumulates_per_cycle: float | None = added_field(1.0)
    values_per_cycle: float | None = added_field(16.0)
    instructions_per_cycle: float | None = added_field(None)
    instructions_per_connection: int = added_field(0)
    instruction_pj: float = added_field(0.0)
    dma_bytes: int = added_field(1024)
    skip_zeros: bool = added_field(False)

    def __post_init__(self) -> None:
        check_fields(self)
        whole_number(self.outstanding_misses, "engine outstanding_misses", 1, MOST_OUTSTANDING)
        whole_number(self.access_bytes, "engine access_bytes", 1)
        whole_number(self.dma_bytes, "engine dma_bytes", 1, MOST_OUTSTANDING)
        whole_number(self.instructions_per_connection, "engine instructions_per_connection", 0)
        for name in RATES:
            value = getattr(self, name)
            if value is not None:
                _within(name, value, LEAST_PER_CYCLE if name.endswith("_per_cycle") else LEAST_PER_NS)
        _within("instruction_pj", self.instruction_pj, 0)

    @property
    def cycle_ns(self) -> float:
        return 1 / (self.accesses_per_ns or self.clock_ghz)


_OF_THE_PART = BusSpec()  # what a machine has without a part; told from an equal one by identity


@dataclass(frozen=True)
class Machine(OneLineRepr):
    """Caches, encoder chain on the bus, DRAM part with its controller, engine.

    caches: from the engine outward; none means that every access goes to memory. encoder: a chain of hwmodel.encoders,
    e.g. 'base-xor+dbi-dc'. element_bytes: what the encoder takes for one value, for all streams or by the name of a
    stream (None: what the trace says of each stream, else 4). bus: default, that of the part: its byte lanes and its
    burst. part, controller: of hwmodel.dram.engine; part None stops after the bus. flush: write dirty lines back at the
    end (counted apart). scratchpad: memory that software manages, instead of caches. technology: of
    hwmodel.energy.technology, a name, path, mapping or Technology: what on-chip memory and arithmetic cost; None counts
    neither. idle: how much of the DRAM's static energy is billed (`hwmodel.energy.total.bill`): 'all', 'none' (no
    leakage either), 'capacity', 'bandwidth' or a share from 0 to 1.
    """

    caches: tuple[CacheSpec, ...] = ()
    encoder: str = "raw"
    element_bytes: int | Mapping[str, int] | None = None
    bus: BusSpec = _OF_THE_PART
    part: Any = None
    controller: Any = None
    engine: EngineSpec = field(default_factory=EngineSpec)
    flush: bool = True
    scratchpad: ScratchpadSpec | None = None
    technology: Any = None
    idle: str | float = "all"

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        levels = [f"{c.size_bytes / 1024:g} KiB {c.ways}-way {c.policy}" for c in self.caches]
        pad = self.scratchpad
        onchip = f"{pad.size_bytes / 1024:g} KiB scratchpad {pad.policy}" if pad else " + ".join(levels) or "no cache"
        technology = getattr(self.technology, "name", self.technology)
        part = getattr(self.part, "name", self.part) or "none"
        return {"on-chip": onchip, "encoder": self.encoder, "part": part, "technology": technology}

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.part, str | Path | Mapping | Part | None):
            raise InputError(f"part: a name, a path, a mapping or a Part is wanted, not {shown(self.part)}")
        if isinstance(self.technology, str) and not self.technology.endswith((".yaml", ".yml")):
            shipped_path("onchip", self.technology)  # raises for an unknown name
        elif isinstance(self.technology, int | float):
            raise InputError(f"technology: a name, a path or a mapping is wanted, not {shown(self.technology)}")
        part = self._part() if self.bus is _OF_THE_PART else None
        if part is not None:
            object.__setattr__(self, "bus", BusSpec(part.organisation.byte_lanes, part.organisation.burst_bytes))
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
        elif self.engine.skip_zeros:
            raise InputError("engine skip_zeros needs a scratchpad: through caches every value of a trace is asked for")
        if self.idle not in IDLE and (isinstance(self.idle, str) or not 0 <= self.idle <= 1):
            raise InputError(f"idle is one of {', '.join(IDLE)} or a share from 0 to 1, not {shown(self.idle)}")
        lines = [cache.line_bytes for cache in self.caches]
        if lines != sorted(lines):
            raise InputError(f"line_bytes must not shrink from one cache level to the next, not {lines}")
        if lines and lines[-1] % self.bus.block_bytes:
            raise InputError(f"line_bytes {lines[-1]} is not a multiple of the bus block_bytes {self.bus.block_bytes}")

    def _part(self) -> Part | None:
        from hwmodel.parts.part_file import load_part

        return None if self.part is None else load_part(self.part)

    def with_part_read(self) -> Machine:
        """Return this machine with its part as a Part, read once for all that ask for it."""
        part = self._part()
        if part is self.part:
            return self
        read = Machine.__new__(Machine)  # all else has been checked
        read.__dict__.update(self.__dict__, part=part)
        return read

    @property
    def beats_per_block(self) -> int:
        """Beats of a burst on the bus: more than its bytes fill where the part sends more than data."""
        part = self._part()
        if part is not None and part.interface.cells:
            return part.organisation.burst_beats
        return self.bus.block_bytes // self.bus.bus_bytes

    @property
    def flag_wires(self) -> int:
        """Wires that the encoder chain drives beside each byte lane: none where flags travel inside the burst."""
        part = self._part()
        return 0 if part is not None and part.interface.cells else self.encoder_facts.flag_wires

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
        each = tuple(sizes.get(name, UNKNOWN_ELEMENT_BYTES) for name in STREAMS)
        from hwmodel.dram.energy import data_wire_costs

        part = self._part()
        costs = None if part is None else cached_on(part, data_wire_costs)
        return stream_chain(self.encoder, each, self.bus.bus_bytes, self.bus.block_bytes, costs, self._share_flags())

    def _share_flags(self) -> ShareFlags | None:
        metadata, part = self.bus.metadata, self._part()
        cells = None if part is None else cached_on(part, burst_cells)
        if metadata >> (0 if cells is None else cells.metadata_bits):
            room = "none" if cells is None else f"{cells.metadata_bits} bits"
            raise InputError(
                f"bus metadata is {metadata}: the bursts of {self._repr_fields()['part']!r} have {room} of it"
            )
        return None if part is None else cached_on(part, share_flags, metadata)

    def memory_controller(self) -> Any:
        """Return the ControllerSpec, with the latency the encoder chain declares.

        A chain that inverts reads with the part's DBI latency; the clocks that its decoders take are spent in the
        controller. Where the controller does not say how many requests enter a clock, each channel takes one.
        """
        from hwmodel.dram.controller import as_wide, controller_spec, decoding

        part, spec = self._part(), decoding(controller_spec(self.controller), self.encoder_facts)
        return spec if part is None else as_wide(spec, part.organisation.channels)
