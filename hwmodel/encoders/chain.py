"""Chains of encoders, ``base-xor+dbi-dc``: parsing, what makes no sense, and running one over a stream in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.encoders.base import ENCODERS, Bytes, Coded, Geometry, Role, Stage
from hwmodel.encoders.reference import BaseXor, DbiDc
from traces.base.errors import InputError

_WHY = {
    Role.ORDER: "it must see the words before anything encodes them, so it comes first",
    Role.SIMILARITY: "it compares neighbouring values, which an earlier stage has changed",
    Role.SCRAMBLE: "it comes after similarity coding, which finds nothing in scrambled data, and before bus codes",
    Role.BUS_CODE: "it decides what goes on the wires in each beat, so nothing but signalling may follow it",
    Role.SIGNALLING: "it drives the wires, so it comes last",
}


def parse_chain(encoder: str) -> list[str]:
    """Split a chain into encoder names; refuse unknown names and chains that make no sense, with the reason."""
    names = encoder.split("+")
    roles = [ENCODERS[name].item.role for name in names]  # type: ignore[attr-defined]
    if "raw" in names and len(names) > 1:
        raise InputError(f"encoder chain {encoder!r}: 'raw' does nothing, leave it out")
    for first, second, before, after in zip(names, names[1:], roles, roles[1:], strict=False):
        if before == after:
            raise InputError(f"encoder chain {encoder!r}: {first!r} and {second!r} do the same job, choose one")
        if before > after:
            reason = _WHY[before if before >= Role.BUS_CODE else after]
            subject = first if before >= Role.BUS_CODE else second
            raise InputError(
                f"encoder chain {encoder!r} makes no sense: {subject!r} is misplaced, {reason} "
                f"(try {'+'.join(sorted(names, key=lambda n: ENCODERS[n].item.role))!r})"  # type: ignore[attr-defined]
            )
    if "dbi-ac" in names and "transition" in names:
        raise InputError(
            f"encoder chain {encoder!r} makes no sense: dbi-ac saves toggles of plain levels, transition signalling "
            "turns ones into toggles (try 'dbi-dc+transition')"
        )
    return names


@dataclass(frozen=True, eq=False)
class ChainState:
    """Where in a stream a chain stopped. offset: bytes encoded. pending: bytes held back until their unit is whole."""

    offset: int
    stages: tuple[Any, ...]
    pending: Bytes
    closed: bool = False


class Chain:
    """An encoder chain on a bus. `encode` and `decode` continue a stream; neither changes the state it is given.

    Raises InputError for unknown encoders, senseless chains and impossible sizes.
    """

    def __init__(self, encoder: str, geometry: Geometry) -> None:
        self.encoder = encoder
        self.geometry = geometry
        names = parse_chain(encoder)
        self.stages: list[Stage] = [ENCODERS[name].item(geometry) for name in names]
        for i, (first, second) in enumerate(zip(self.stages, self.stages[1:], strict=False)):
            if type(first) is BaseXor and type(second) is DbiDc:  # one pass does both
                self.stages[i : i + 2] = [BaseXor(geometry, dbi=True)]
                break

    def start(self) -> ChainState:
        """Return the state before the first byte."""
        return ChainState(0, tuple(stage.start() for stage in self.stages), np.zeros(0, np.uint8))

    def encode(self, data: Bytes, state: ChainState | None = None, *, last: bool = True) -> tuple[Coded, ChainState]:
        """Encode the next bytes of a stream.

        last: nothing follows, so a broken last element (or block) is sent as it is. With last=False those bytes are
        held back for the next call, and a stream may be cut anywhere with the same result.
        """
        state = self._open(state)
        data = np.concatenate((state.pending, data)) if len(state.pending) else data
        end = state.offset + len(data)
        whole = min(stage.cut(end) for stage in self.stages) - state.offset
        now = len(data) if last else max(whole, 0)
        coded, states = Coded(data[:now]), []
        for stage, stage_state in zip(self.stages, state.stages, strict=True):
            coded, after = stage.encode(coded, state.offset, stage_state)
            states.append(after)
        return coded, ChainState(state.offset + now, tuple(states), data[now:].copy(), closed=now > whole)

    def decode(self, coded: Coded, state: ChainState | None = None) -> tuple[Bytes, ChainState]:
        """Decode what one encode call returned; `state` is that of the decoder after the calls before."""
        state = self._open(state)
        n, states = len(coded.data), []
        for stage, stage_state in zip(reversed(self.stages), reversed(state.stages), strict=True):
            coded, after = stage.decode(coded, state.offset, stage_state)
            states.append(after)
        end = state.offset + n
        closed = min(stage.cut(end) for stage in self.stages) < end
        return coded.data, ChainState(end, tuple(reversed(states)), state.pending, closed)

    def _open(self, state: ChainState | None) -> ChainState:
        if state is None:
            return self.start()
        if state.closed:
            raise InputError(
                f"the stream ended {state.offset} bytes in, inside an element or block of {self.encoder!r}: "
                "encode the pieces before the last one with last=False"
            )
        return state
