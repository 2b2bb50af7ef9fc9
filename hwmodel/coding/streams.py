"""Encoder chains over blocks whose elements differ: each stream of a machine's bus has the element of its own data.

A block belongs to one stream. Stages that look at elements see the blocks of each element size as a stream of their
own; all others see every block in the order it is sent. A record (source, target, weight) is an element too where a
stage takes records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hwmodel.bus import Bus, Bytes, Coded, WireCosts
from hwmodel.coding.chain import Chain, chain_facts, check_wires, fused_stages, parse_chain
from hwmodel.coding.in_burst import ShareFlags
from hwmodel.coding.stage import ENCODERS, Geometry, Role, Stage
from traces.base.errors import InputError


def fitting_element(stage: type[Stage], n_bytes: int, block_bytes: int) -> int:
    """Return the element a stage uses for data that recur every `n_bytes`: the largest it takes that divides them."""
    if stage.takes_records and n_bytes <= min(block_bytes, 64):
        return n_bytes
    return max(size for size in (1, *stage.element_sizes) if n_bytes % size == 0 and block_bytes % size == 0)


class StreamChain:
    """An encoder chain on a bus that sends whole blocks, each of one of several kinds; its state goes on from call to
    call.

    element_bytes: bytes after which the data of each kind recur (elements, or records), 1 or more. costs: of the wires.
    shares: of a part whose inversion flags travel inside its bursts
    (the blocks): what is sent are then its wires beat by beat, flags and metadata among them, and signalling is done
    on those. flag_wires: of a lane, beside the data. sent_bytes: of a block on the wires. by_block: blocks of several
    channels may be encoded together, in any order.
    """

    def __init__(
        self,
        encoder: str,
        element_bytes: Sequence[int],
        bus_bytes: int,
        block_bytes: int,
        costs: WireCosts | None = None,
        shares: ShareFlags | None = None,
    ) -> None:
        self.encoder, self.block_bytes, self.shares = encoder, block_bytes, shares
        self.facts = chain_facts(encoder)
        geometry = Geometry(1, bus_bytes, block_bytes, costs=costs or WireCosts(), shares=shares)
        Chain(encoder, geometry)  # refuses what cannot be
        single_pass = block_bytes % 8 == 0 and shares is None  # else the flags of a block are not whole bytes
        names = parse_chain(encoder)
        if shares is not None:
            if (bus_bytes, block_bytes) != (shares.cells.lanes, shares.cells.burst_bytes):
                raise InputError(
                    f"a bus of {bus_bytes} byte lanes and blocks of {block_bytes} bytes does not fit a part of "
                    f"{shares.cells.lanes} lanes and bursts of {shares.cells.burst_bytes} bytes"
                )
            _check_flags(encoder, names, shares)
        stages = fused_stages(names, geometry.costs, single_pass)
        on_wires = stages if shares is None else [stage for stage in stages if stage.role < Role.SIGNALLING]
        self._parts = [_Part(stage, element_bytes, geometry) for stage in on_wires]
        self.flag_wires, self.sent_bytes = (self.facts.flag_wires, block_bytes) if shares is None else (0, shares.size)
        beats = Geometry(1, bus_bytes, self.sent_bytes)
        self._signalling = [_Part(stage, element_bytes, beats) for stage in stages[len(on_wires) :]]
        self.by_block = all(stage.by_block for stage in stages) and block_bytes % 8 == self.sent_bytes % 8 == 0

    def fresh(self) -> StreamChain:
        """Return the same chain at its start, for another channel."""
        other = StreamChain.__new__(StreamChain)
        other.__dict__.update(self.__dict__)
        other._parts = [part.fresh() for part in self._parts]
        other._signalling = [part.fresh() for part in self._signalling]
        return other

    @property
    def is_plain_state(self) -> bool:
        """Whether `state` is numbers and lists (JSON): all stages keep arrays, or nothing."""
        return all(each is None or isinstance(each, np.ndarray) for part in self._each for each in part.states)

    @property
    def _each(self) -> list[_Part]:
        return self._parts + self._signalling

    def state(self) -> list[Any]:
        """Return what is kept from call to call; arrays as lists."""
        return [
            [part.offsets.copy(), [s.tolist() if isinstance(s, np.ndarray) else s for s in part.states]]
            for part in self._each
        ]

    def restore(self, state: Sequence[Any]) -> None:
        """Go on from the `state` of a chain of the same kind. Raises ValueError for others."""
        for part, (offsets, states) in zip(self._each, state, strict=True):
            part.offsets = list(offsets)
            part.states = [
                np.array(each, was.dtype).reshape(was.shape) if isinstance(was, np.ndarray) else each
                for each, was in zip(states, part.states, strict=True)
            ]

    def encode(self, data: Bytes, kind: Bytes) -> Coded:
        """Encode the next blocks: uint8[n * block_bytes], uint8[n] kind of each."""
        assert len(data) == len(kind) * self.block_bytes
        coded = Coded(data)
        for part in self._parts:
            coded = part.encode(coded, kind)
            if len(coded.data) != len(data):
                raise InputError(f"encoder {self.encoder!r} does not work on blocks of {self.block_bytes} bytes")
        check_wires(self.encoder, self.facts, coded, len(data))
        if self.shares is not None:
            coded = Coded(self.shares.on_wires(coded.data, coded.flags))
            for part in self._signalling:
                coded = part.encode(coded, kind)
        return coded


def stream_chain(
    encoder: str,
    element_bytes: tuple[int, ...],
    bus_bytes: int,
    block_bytes: int,
    costs: WireCosts | None = None,
    shares: ShareFlags | None = None,
) -> StreamChain:
    """Return StreamChain(...) at its start. Alike ones share their stages, which keep no state: each is made once."""
    names = parse_chain(encoder)
    stages = *(ENCODERS[name].item for name in names), *fused_stages(names, costs or WireCosts())  # may be others now
    return _chain_of(stages, encoder, element_bytes, bus_bytes, block_bytes, costs, shares).fresh()


@lru_cache(maxsize=64)
def _chain_of(stages: tuple[type[Stage], ...], *given: Any) -> StreamChain:
    return StreamChain(*given)


class _Channel(NamedTuple):
    """An encoder and the wires behind it. extra: flag wires beyond the first, None for an encoder without."""

    chain: StreamChain
    bus: Bus
    extra: Bus | None


class ChannelWires:
    """The encoder and the wires of each of `n_channels` channels, counted together in `n_streams` streams.

    chain, bus, extra: as of a channel at rest; what the buses count is of all channels.
    """

    def __init__(self, chain: StreamChain, bus_bytes: int, n_streams: int, n_channels: int = 1) -> None:
        self.chain, self.bus = chain, Bus(bus_bytes, n_streams=n_streams)
        self.extra = Bus(bus_bytes, n_streams=n_streams) if chain.flag_wires > 1 else None
        self._each: list[_Channel | None] = [None] * n_channels

    def __len__(self) -> int:
        return len(self._each)

    def channel(self, number: int) -> _Channel:
        """Return what a channel has of its own, made when it is used: a part may have 32 of them."""
        made = self._each[number]
        if made is None:
            chain = self.chain if self.chain.by_block else self.chain.fresh()
            extra = None if self.extra is None else self.extra.another_channel()
            made = self._each[number] = _Channel(chain, self.bus.another_channel(), extra)
        return made

    def send(self, bursts: Bytes, kind: Bytes, ends: Sequence[int], counted: Callable[[int, int], Any]) -> None:
        """Send bursts uint8[n, block_bytes] of uint8[n] kinds, those of channel c up to ends[c].

        counted(start, end): `ends` and `streams`, as of `Bus.send`, of these bursts.
        """
        sent, start = self.chain.sent_bytes, 0
        together = self.chain.encode(bursts.reshape(-1), kind) if self.chain.by_block else None
        for number, end in enumerate(ends):
            if end > start:
                chain, bus, extra = self.channel(number)
                if together is None:
                    coded = chain.encode(bursts[start:end].reshape(-1), kind[start:end])
                else:
                    coded = together.part(start * sent, end * sent)
                segments, streams = counted(start, end)
                bus.send(coded.data, coded.flags, ends=segments, streams=streams)
                if extra is not None and coded.extra is not None:
                    extra.send(coded.extra, ends=segments, streams=streams)
            start = end


def _check_flags(encoder: str, names: Sequence[str], shares: ShareFlags) -> None:
    """Refuse stages whose flags have no place in a burst."""
    cells = shares.cells
    for name in names:
        stage = ENCODERS[name].item
        if stage.flag_wires and not (stage.inverts_shares and cells.flags):
            able = ", ".join(each for each, entry in ENCODERS.loadable().items() if entry.item.inverts_shares)
            wires = f"{stage.flag_wires} wire{'s' * (stage.flag_wires > 1)} beside each byte lane"
            bits = f"{stage.flag_wires * cells.burst_bytes} bits with a burst of {cells.burst_bytes} bytes"
            fits = f"; {able} fit" if cells.flags else ""
            raise InputError(
                f"encoder {name!r} of {encoder!r} drives {wires}, {bits}, and the part has no such wires: "
                f"{cells.room}{fits}"
            )


class _Part:
    """One stage: an instance for each element size, or one for all blocks."""

    def __init__(self, stage: type[Stage], element_bytes: Sequence[int], geometry: Geometry) -> None:
        self.block_bytes = block_bytes = geometry.block_bytes
        fitting = [fitting_element(stage, n, block_bytes) for n in element_bytes] if stage.uses_elements else [1]
        sizes = sorted(set(fitting))
        self.which = np.array([sizes.index(n) for n in fitting], np.int64)
        self.stages = [
            stage(replace(geometry, element_bytes=n, records=n not in (1, 2, 4, 8) or block_bytes % n > 0))
            for n in sizes
        ]
        self.states = [each.start() for each in self.stages]
        self.offsets = [0] * len(sizes)

    def fresh(self) -> _Part:
        other = _Part.__new__(_Part)
        other.__dict__.update(self.__dict__)
        other.states = [each.start() for each in self.stages]
        other.offsets = [0] * len(self.stages)
        return other

    def encode(self, coded: Coded, kind: Bytes) -> Coded:
        if len(self.stages) == 1:
            return self._run(0, coded)
        assert coded.flags is None and coded.extra is None
        kinds = np.ascontiguousarray(kind, np.uint8)
        together = self.stages[0].encode_blocks(self.stages, coded, self.which, kinds)
        if together is not None:
            return together
        blocks = coded.data.reshape(len(kinds), self.block_bytes)
        data, flags, stages = np.empty_like(blocks), None, self.which[kinds]
        for k in range(len(self.stages)):
            mine = np.flatnonzero(stages == k)
            if not len(mine):
                continue
            part = self._run(k, Coded(blocks[mine].reshape(-1)))
            data[mine] = part.data.reshape(-1, self.block_bytes)
            if part.flags is not None:
                flags = np.zeros((len(kinds), self.block_bytes // 8), np.uint8) if flags is None else flags
                flags[mine] = part.flags.reshape(len(mine), -1)
        return Coded(data.reshape(-1), None if flags is None else flags.reshape(-1))

    def _run(self, k: int, coded: Coded) -> Coded:
        stage, n = self.stages[k], len(coded.data)
        end = self.offsets[k] + n
        if stage.cut(end) != end:
            name = type(stage).__name__
            raise InputError(f"encoder {name} does not work on blocks of {self.block_bytes} bytes")
        coded, self.states[k] = stage.encode(coded, self.offsets[k], self.states[k])
        self.offsets[k] = end
        return coded
