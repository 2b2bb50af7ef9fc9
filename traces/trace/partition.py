"""One trace cut into several, one per engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name
from traces.trace.build import trace_of_plan
from traces.trace.chunks import Chunk, Trace
from traces.trace.plan import Plan

MOST_ENGINES = 64
CUTS = ("passes", "runs", "blocks", "targets")


@dataclass(frozen=True)
class EnginesSpec:
    """How many engines share the machine, and how the work is cut between them.

    cut: passes (whole passes over the batch, dealt in turn: no engine needs another's results), runs (consecutive
    connections with one target, dealt in turn), blocks (the order in that many pieces of whole runs) or targets (dealt
    in turn as they first occur, each with all of its connections: rows of a matrix). An engine waits for neurons and
    sums of others; what it leaves to another goes through memory. Raises InputError naming the field.
    """

    count: int = 1
    cut: str = "passes"

    def __post_init__(self) -> None:
        whole_number(self.count, "engines count", 1, MOST_ENGINES)
        if self.cut not in CUTS:
            raise unknown_name("cut of the engines", self.cut, CUTS)


def cut_work(trace: Trace, engines: EnginesSpec) -> list[Trace]:
    """Cut the trace of a network into one per engine; together they make the same steps on the same memory."""
    if engines.count == 1:
        return [trace]
    plan = trace.plan
    if not isinstance(plan, Plan):
        raise InputError(
            "several engines share the work by its order, which a recorded trace does not hold: build the trace from a "
            "network, or use engines 1"
        )
    if engines.cut == "passes":
        if plan.n_passes < engines.count:
            raise InputError(
                f"{engines.count} engines cut by passes need as many passes, and the batch takes {plan.n_passes}: use "
                "a larger batch, fewer lanes, or the cut 'runs'"
            )
        of_step = None
    else:
        of_step = _deal(_first_use(plan.target) if engines.cut == "targets" else _runs(plan), engines)
        hand_over = np.r_[np.uint8(0), (np.diff(of_step.astype(np.int64)) != 0).astype(np.uint8)]
        plan = replace(plan, hand_over=hand_over)
    each = _accesses_by_step(plan)
    parts = []
    for number in range(plan.n_passes):
        owner = np.full(len(each), number % engines.count, np.uint8) if of_step is None else of_step
        parts.append(np.repeat(owner, each))
    whole = trace_of_plan(plan, dict(trace.description))
    steps = np.full(engines.count, 0) if of_step is None else np.bincount(of_step, minlength=engines.count)
    waits = None if of_step is None else _waits(plan, of_step, each, engines.count)
    cut = []
    for e, one in enumerate(partition(whole, np.concatenate(parts), engines.count)):
        mine = len(range(e, plan.n_passes, engines.count)) * len(each) if of_step is None else steps[e] * plan.n_passes
        cut.append(replace(one, multiply_adds=int(mine) * plan.lanes, waits=None if waits is None else waits[e]))
    return cut


def _runs(plan: Plan) -> npt.NDArray[np.int64]:
    by_end = [np.cumsum(np.r_[0, np.diff(ends) != 0]) for ends in (plan.target, plan.source)]
    return min(by_end, key=lambda runs: int(runs[-1]))


def _first_use(target: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    _, first, index = np.unique(target, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[index]


def _waits(
    plan: Plan, of_step: npt.NDArray[np.uint8], each: npt.NDArray[np.int64], count: int
) -> list[npt.NDArray[np.int64]]:
    k, steps = len(of_step), np.arange(len(of_step))
    mine = of_step[:, None] == np.arange(count)
    made = np.cumsum(np.where(mine, each[:, None], 0), axis=0)  # by each engine, after each step
    last, before = np.full(len(plan.bias), -1), np.full(k, -1)
    last[plan.target] = steps
    order = np.argsort(plan.target, kind="stable")
    again = np.diff(plan.target[order]) == 0
    before[order[1:][again]] = order[:-1][again]
    step, needed = np.tile(steps, 2), np.concatenate((last[plan.source], before))
    other = (needed >= 0) & (of_step[step] != of_step[needed])
    step, needed = step[other], needed[other]
    engine, of = of_step[step], of_step[needed]
    at, n = made[step, engine] - each[step], made[needed, of]
    whole = made[-1]
    waits = []
    for e in range(count):
        rows = []
        for f in range(count):
            chosen = np.flatnonzero((engine == e) & (of == f))
            chosen = chosen[np.lexsort((n[chosen], at[chosen]))]
            most = np.maximum.accumulate(n[chosen])
            new = np.flatnonzero(np.diff(most, prepend=0) > 0)
            rows.append(np.stack((at[chosen][new], np.full(len(new), f), most[new]), axis=1))
        one = np.concatenate(rows)
        one = one[np.argsort(one[:, 0], kind="stable")]
        passes = [one + np.stack((np.full(len(one), p * whole[e]), 0 * one[:, 1], p * whole[one[:, 1]]), axis=1)
                  for p in range(plan.n_passes)]  # fmt: skip
        waits.append(np.concatenate(passes))
    return waits


def _deal(runs: npt.NDArray[np.int64], engines: EnginesSpec) -> npt.NDArray[np.uint8]:
    n_runs = int(runs.max()) + 1
    if n_runs < engines.count:
        raise InputError(f"{engines.count} engines cannot share {n_runs} runs or targets: use fewer engines")
    if engines.cut in ("runs", "targets"):
        return (runs % engines.count).astype(np.uint8)
    steps = np.bincount(runs)
    middle = np.cumsum(steps) - steps / 2  # a run goes to the engine whose share its middle lies in
    owner = np.minimum(middle * engines.count // len(runs), engines.count - 1).astype(np.uint8)
    return owner[runs]


def _accesses_by_step(plan: Plan) -> npt.NDArray[np.int64]:
    """Return int64[K]: the accesses a pass makes at each step (see ForwardWalk); loads behind the last are its own."""
    k = len(plan.source)
    accesses = np.bincount(np.minimum(plan.event_step, k - 1), minlength=k)
    for offset, bits, _, row in plan.element.tolist():
        at = offset + (plan.slot[row] * bits >> 3)
        accesses += 1 if bits >= 8 else np.r_[True, np.diff(at) != 0]
    goes_on = (plan.hand_over[1:] == 0) & bool(plan.registers)
    same_source, same_target = (goes_on & (np.diff(ends) == 0) for ends in (plan.source, plan.target))
    accesses += np.r_[True, ~same_source]
    accesses += np.r_[True, ~same_target]
    accesses += np.r_[~same_target, True]
    return np.asarray(accesses, np.int64)


def partition(trace: Trace, engine: np.ndarray, n_engines: int | None = None) -> list[Trace]:
    """Cut a trace into one per engine: access i goes to engine[i] (int array, one entry per access of the trace)."""
    engine = np.asarray(engine)
    if engine.ndim != 1 or (engine.size and (engine.dtype.kind not in "ui" or int(engine.min()) < 0)):
        raise InputError("the assignment must be a one-dimensional array of engine numbers from 0")
    if trace.n_accesses is not None and trace.n_accesses != len(engine):
        raise InputError(f"the assignment has {len(engine)} entries, but the trace has {trace.n_accesses} accesses")
    n = int(engine.max(initial=-1)) + 1 if n_engines is None else n_engines

    def walk(mine: int) -> Iterator[Chunk]:
        start = 0
        for chunk in trace:
            chosen = np.flatnonzero(engine[start : start + len(chunk)] == mine)
            if start + len(chunk) > len(engine):
                raise InputError(f"the assignment has {len(engine)} entries, but the trace goes on")
            start += len(chunk)
            if len(chosen):
                yield _choose(chunk, chosen)

    counts = np.bincount(engine, minlength=n) if engine.size else np.zeros(n, np.int64)
    return [
        Trace(lambda e=e: walk(e), trace.memory, int(counts[e]), {**trace.description, "engine": e})  # type: ignore[misc]
        for e in range(n)
    ]


def _choose(chunk: Chunk, chosen: np.ndarray) -> Chunk:
    offset = payload = None
    if chunk.payload_offset is not None and chunk.payload is not None:
        starts = chunk.payload_offset[:-1][chosen]
        sizes = chunk.payload_offset[1:][chosen] - starts
        offset = np.concatenate(([0], np.cumsum(sizes)))
        payload = chunk.payload[np.repeat(starts - offset[:-1], sizes) + np.arange(offset[-1])]
    cycle = None if chunk.cycle is None else chunk.cycle[chosen]
    columns = (chunk.address[chosen], chunk.size[chosen], chunk.op[chosen], chunk.stream[chosen])
    return Chunk(*columns, offset, payload, cycle)
