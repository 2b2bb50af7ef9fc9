"""Chains of encoders, ``base-xor+dbi-dc``: parsing, what makes no sense, and running one over a stream in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hwmodel.bus import Bytes, Coded, WireCosts
from hwmodel.coding.stage import ENCODERS, MAX_FLAG_WIRES, Geometry, Role, Stage
from traces.base.errors import InputError, shown

_WHY = {
    Role.SIMILARITY: "it compares neighbouring values, which an earlier stage has changed",
    Role.SCRAMBLE: "it comes after similarity coding, which finds nothing in scrambled data, and before bus codes",
    Role.BUS_CODE: "it decides what goes on the wires in each beat, so nothing but signalling may follow it",
    Role.SIGNALLING: "it drives the wires, so it comes last",
}


def parse_chain(encoder: str) -> list[str]:
    """Split a chain into encoder names; refuse unknown names and chains that make no sense, with the reason."""
    chain_facts(encoder)
    return encoder.split("+")


@dataclass(frozen=True)
class ChainFacts:
    """What the stages of a chain declare, together (see Stage)."""

    flag_wires: int
    inverts: bool
    latency_cycles: int
    uses_elements: bool
    plain: bool


def chain_facts(encoder: str) -> ChainFacts:
    """Return what a chain declares. Raises InputError for unknown encoders and senseless chains."""
    return _facts_of(encoder, tuple(ENCODERS[name].item for name in encoder.split("+")))


@lru_cache(maxsize=256)
def _facts_of(encoder: str, stages: tuple[type[Stage], ...]) -> ChainFacts:
    names = encoder.split("+")
    for k, (name, stage) in enumerate(zip(names, stages, strict=True)):
        objection = stage.objection([*stages[:k], *stages[k + 1 :]])
        if objection is not None:
            raise InputError(f"encoder chain {encoder!r} makes no sense: {name!r} {objection}")
    roles = [stage.role for stage in stages]
    for first, second, before, after in zip(names, names[1:], roles, roles[1:], strict=False):
        if before == after:
            raise InputError(f"encoder chain {encoder!r}: {first!r} and {second!r} do the same job, choose one")
        if before > after:
            reason = _WHY[before if before >= Role.BUS_CODE else after]
            subject = first if before >= Role.BUS_CODE else second
            raise InputError(
                f"encoder chain {encoder!r} makes no sense: {subject!r} is misplaced, {reason} "
                f"(try {'+'.join(sorted(names, key=lambda n: ENCODERS[n].item.role))!r})"
            )
    for stage in stages:
        for name in ("flag_wires", "latency_cycles"):
            if type(declared := getattr(stage, name)) is not int or not 0 <= declared < 2**16:
                raise InputError(
                    f"the encoder {stage.__name__} declares {name} as {shown(declared)}: a whole number from 0"
                )
        if not (isinstance(stage.element_sizes, tuple) and set(stage.element_sizes) <= set(range(65))):
            raise InputError(f"the encoder {stage.__name__} declares element_sizes as {shown(stage.element_sizes)}")
    return ChainFacts(
        sum(stage.flag_wires for stage in stages),
        any(stage.inverts for stage in stages),
        sum(stage.latency_cycles for stage in stages),
        any(stage.uses_elements for stage in stages),
        all(stage.plain for stage in stages),
    )


@dataclass(frozen=True, eq=False)
class ChainState:
    """Where in a stream a chain stopped. offset: bytes encoded. pending: bytes held back until their unit is whole."""

    offset: int
    stages: tuple[Any, ...]
    pending: Bytes
    closed: bool = False


class Chain:
    """An encoder chain on a bus. `encode` and `decode` continue a stream; neither changes the state it is given.

    facts: what its stages declare. Raises InputError for unknown encoders, senseless chains and impossible sizes.
    """

    def __init__(self, encoder: str, geometry: Geometry) -> None:
        self.encoder = encoder
        self.geometry = geometry
        names, self.facts = encoder.split("+"), chain_facts(encoder)
        if self.facts.flag_wires > MAX_FLAG_WIRES:
            raise InputError(
                f"encoder chain {encoder!r} declares {self.facts.flag_wires} flag wires per lane: 0 to {MAX_FLAG_WIRES}"
            )
        for name in names:
            sizes = ENCODERS[name].item.element_sizes
            if geometry.element_bytes not in sizes:
                known = ", ".join(map(str, sizes))
                raise InputError(f"encoder {name!r} takes elements of {known} bytes, not {geometry.element_bytes}")
        self.stages = [stage(geometry) for stage in fused_stages(names, geometry.costs)]

    def start(self) -> ChainState:
        return ChainState(0, tuple(stage.start() for stage in self.stages), np.zeros(0, np.uint8))

    def encode(self, data: Bytes, state: ChainState | None = None, *, last: bool = True) -> tuple[Coded, ChainState]:
        """Encode the next bytes of a stream.

        last: nothing follows, so an incomplete last element (or block) is sent unchanged. With last=False those bytes
        are held back for the next call, and a stream may be cut anywhere with the same result.
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
        check_wires(self.encoder, self.facts, coded, now)
        return coded, ChainState(state.offset + now, tuple(states), data[now:].copy(), closed=now > whole)

    def decode(self, coded: Coded, state: ChainState | None = None) -> tuple[Bytes, ChainState]:
        """Decode what one encode call returned; `state` is that of the decoder after the calls before."""
        state = self._open(state)
        n, states = len(coded.data), []
        self._check_given(coded)
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

    def _check_given(self, coded: Coded) -> None:
        wires, n = self.facts.flag_wires, len(coded.data)
        if not n:
            return
        if (wires and coded.flags is None) or (wires > 1 and coded.extra is None):
            missing = "flags" if wires == 1 else "flags and extra wires"
            raise InputError(f"{self.encoder!r} needs the {missing} that were sent beside the data")
        for name, given, size in (("flags", coded.flags, (n + 7) // 8), ("extra", coded.extra, n)):
            if wires and given is not None and (len(given) < size or (name == "extra" and len(given) > size)):
                raise InputError(f"{n} bytes of {self.encoder!r} need {size} bytes of {name}, not {len(given)}")


def check_wires(encoder: str, facts: ChainFacts, coded: Coded, n: int) -> None:
    """Raise InputError unless a chain drives the wires it declares and no others: energy counts the declared ones."""
    wires = facts.flag_wires
    if not isinstance(coded, Coded):
        raise InputError(f"encoder {encoder!r} made {shown(coded)}, no Coded")
    for name, made, needed in (
        ("data", coded.data, n),
        ("flags", coded.flags, (n + 7) // 8 if wires else None),
        ("extra", coded.extra, n if wires > 1 else None),
    ):
        if needed is None and made is None:
            continue
        if needed is None or made is None:
            raise InputError(
                f"encoder {encoder!r} declares {wires} flag wires and made {'no' if made is None else 'a'} {name}"
            )
        if not (isinstance(made, np.ndarray) and made.dtype == np.uint8 and made.shape == (needed,)):
            what = f"{made.dtype}{list(made.shape)}" if isinstance(made, np.ndarray) else shown(made)
            raise InputError(f"encoder {encoder!r} made {what} as its {name}, not uint8[{needed}]")
    if coded.extra is not None and wires < MAX_FLAG_WIRES and (coded.extra >> np.uint8(wires - 1)).any():
        raise InputError(f"encoder {encoder!r} declares {wires} flag wires and drives more")


def fused_stages(names: list[str], costs: WireCosts, single_pass: bool = True) -> list[type[Stage]]:
    """Return the stages of a chain; with `single_pass`, neighbours that declare one as one, where ones cost."""
    single_pass = single_pass and costs.zero_pj <= costs.one_pj  # the fused passes count against ones
    stages: list[type[Stage]] = []
    before: str | None = None
    for name in names:
        both = ENCODERS[before].item.fused.get(name) if before is not None and single_pass else None
        if both is not None:
            stages[-1], before = both, None
        else:
            stages.append(ENCODERS[name].item)
            before = name
    return stages
