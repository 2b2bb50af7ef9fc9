"""Patch-wise plans in the application: where chains come from, what a front's plans cost in joules, running them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.operators.energy import HOME_ALIGNMENT, PIECE_BYTES, READS, WEIGHTS, WRITES, play
from edgewatt.operators.request import load_graph
from reorder.operators.patches.chain import LayerChain, chain_of, read_chain
from reorder.operators.patches.execute import Int8, claim_run, random_weights, run_plan, run_whole
from reorder.operators.patches.plans import INPUT, MODES, OUTPUT, TILES, PatchPlan, patch_front, transfers
from traces.base.checks import whole_number
from traces.base.memory import claim
from traces.base.progress import Limit, Progress, TimeIsUp, left_of
from traces.readers.reader import Shapes
from traces.trace.chunks import LOAD, STORE, Chunk, Memory, Region, Trace

CHUNK = 20_000  # accesses


@dataclass(frozen=True, eq=False)
class PatchFront:
    """chain; plans: undominated, from the lowest peak; left: operators behind the chain that are not part of it.

    energy: of each plan, as of `plan_energy`, None where it was not asked for or the time limit came before.
    truncated: the time limit came before all blocks and cuts were weighed, or all energies found.
    """

    chain: LayerChain
    plans: tuple[PatchPlan, ...]
    left: tuple[str, ...] = ()
    energy: tuple[dict[str, Any] | None, ...] = ()
    truncated: bool = False

    def best(self, peak_bytes: int | None = None, factor: float | None = None) -> int | None:
        """Return the plan of fewest multiplications within a peak, or of least peak within a factor; None without."""
        fits = [
            k
            for k, plan in enumerate(self.plans)
            if (peak_bytes is None or plan.peak_bytes <= peak_bytes) and (factor is None or plan.factor <= factor)
        ]
        if not fits:
            return None
        if peak_bytes is not None:
            return min(fits, key=lambda k: (self.plans[k].multiplications, self.plans[k].offchip_bytes))
        return min(fits, key=lambda k: (self.plans[k].peak_bytes, self.plans[k].multiplications))


def load_chain(
    model: str, batch: int | None = None, shapes: Shapes | None = None
) -> tuple[LayerChain, tuple[str, ...]]:
    """Return the chain of a CSV file, or the one with which a model's operator graph begins, and what is left of it."""
    if Path(model).suffix.lower() == ".csv":
        return read_chain(model), ()
    return chain_of(load_graph(model, batch, shapes))


def patches(
    model: str | LayerChain,
    *,
    modes: Sequence[str] = MODES,
    tiles: Sequence[int] = TILES,
    weight_buffer: int = 0,
    part: Any = None,
    encoder: str = "raw",
    most: int = 40,
    seed: int = 0,
    batch: int | None = None,
    shapes: Shapes | None = None,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
) -> PatchFront:
    """Return the plans of a chain that no other one beats in peak memory and multiplications, and in joules.

    model: a chain, its CSV file, or a model that begins with one (batch, shapes: of the inputs of an ONNX
        model that leaves them open).
    modes, tiles, weight_buffer: as of reorder.operators.patches.plans.patch_front.
    part: a memory; off-chip bytes are then weighed too, and the plans that are kept (at most `most`, spread over the
    front; all that are undominated in the first two stay as far as they fit) get the energy of their transfers.
    Weights and input are drawn (seed): wires then carry random bytes, an estimate.
    time_limit_s: wall-clock limit of it all, reading included; see PatchFront for what is there then.
    """
    seed = whole_number(seed, "seed", least=0)
    time_left = left_of(time_limit_s)
    chain, left = (model, ()) if isinstance(model, LayerChain) else load_chain(model, batch, shapes)
    limit = Limit(time_left(), progress)
    plans = patch_front(
        chain, modes=modes, tiles=tiles, offchip=part is not None, weight_buffer=weight_buffer,
        limit=limit,
    )  # fmt: skip
    if part is None:
        return PatchFront(chain, tuple(plans), left, (None,) * len(plans), limit.reached)
    chosen = _spread(plans, most)
    energy: list[dict[str, Any] | None] = [None] * len(chosen)
    with contextlib.suppress(TimeIsUp):
        limit.check()
        data = _Data(chain, seed, limit)
        for k, plan in enumerate(chosen):
            limit.check(k, len(chosen), "plans played on the memory")
            energy[k] = plan_energy(
                chain, plan, part=part, encoder=encoder, weight_buffer=weight_buffer, data=data, limit=limit
            )
    return PatchFront(chain, tuple(chosen), left, tuple(energy), limit.reached)


def _spread(plans: list[PatchPlan], most: int) -> list[PatchPlan]:
    """Keep the front of peak and multiplications, then plans spread over the rest."""
    fewest, kept = None, []
    for k, plan in enumerate(plans):
        if fewest is None or plan.multiplications < fewest:
            fewest = plan.multiplications
            kept.append(k)
    if len(kept) > most:
        kept = [kept[round(i * (len(kept) - 1) / max(1, most - 1))] for i in range(most)]
    rest = [k for k in range(len(plans)) if k not in set(kept)]
    room = min(most - len(kept), len(rest))
    kept += [rest[round(i * (len(rest) - 1) / max(1, room - 1))] for i in range(room)]
    return [plans[k] for k in sorted(set(kept))]


class _Data:
    """Bytes of input, weights and output of a chain, drawn and computed once."""

    def __init__(self, chain: LayerChain, seed: int, limit: Limit) -> None:
        claim_run(chain)
        first = chain.layers[0]
        self.given = np.random.default_rng(seed).integers(-128, 128, (first.in_h, first.in_w, first.in_c), np.int8)
        self.weights = random_weights(chain, seed + 1)
        self.result = run_whole(chain, self.given, self.weights, limit)


def check_plan(
    chain: LayerChain,
    plan: PatchPlan,
    *,
    weight_buffer: int = 0,
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any] | None:
    """Run a plan in NumPy and compare it with the chain run layer by layer, bit by bit.

    Keys: equal, peak_bytes, multiplications, offchip_bytes, as measured. None where the time limit came before.
    """
    seed = whole_number(seed, "seed", least=0)
    limit = Limit(time_limit_s, progress)
    try:
        data = _Data(chain, seed, limit)
        result, tally = run_plan(chain, plan, data.given, data.weights, weight_buffer=weight_buffer, limit=limit)
    except TimeIsUp:
        return None
    return {"equal": bool(np.array_equal(result, data.result)), **vars(tally)}


def plan_energy(
    chain: LayerChain,
    plan: PatchPlan,
    *,
    part: Any = "lpddr4-3200",
    encoder: str = "raw",
    weight_buffer: int = 0,
    data: _Data | None = None,
    limit: Limit | None = None,
) -> dict[str, Any]:
    """Play a plan's off-chip transfers on a memory. Keys: bytes, io_pj, interface_pj, core_pj, total_pj, time_ns.

    Raises TimeIsUp where the limit's time is over before.
    """
    limit = limit or Limit()
    trace = _trace(chain, plan, data or _Data(chain, 0, limit), weight_buffer, limit)
    result, spent = play(trace, part, encoder, 1)
    return {"bytes": int(result.load_bytes.sum() + result.store_bytes.sum()), **spent}


def _trace(chain: LayerChain, plan: PatchPlan, data: _Data, weight_buffer: int, limit: Limit) -> Trace:
    contents: dict[int, Int8] = {INPUT: data.given, OUTPUT: data.result, **dict(enumerate(data.weights))}
    address, regions, at = {}, [], 0
    for key, values in contents.items():
        name = {INPUT: "input", OUTPUT: "output"}.get(key, f"weights {key}")
        address[key] = at
        regions.append(Region(name, at, values.size))
        at += -(-values.size // HOME_ALIGNMENT) * HOME_ALIGNMENT
    claim(2 * at, chain.name, "what a plan moves")
    image = np.zeros(at, np.uint8)
    flat = {key: np.ascontiguousarray(values).reshape(-1).view(np.uint8) for key, values in contents.items()}
    for key, raw in flat.items():
        if key != OUTPUT:
            image[address[key] : address[key] + raw.size] = raw

    def chunks() -> Iterator[Chunk]:
        starts: list[Any] = []
        sizes: list[Any] = []
        kinds: list[Any] = []
        payload: list[Any] = []
        waiting = 0
        for key, first, size in transfers(chain, plan, weight_buffer=weight_buffer):
            limit.check()
            offsets = np.arange(0, size, PIECE_BYTES)
            starts.append(address[key] + first + offsets)
            sizes.append(np.minimum(PIECE_BYTES, size - offsets))
            kinds.append(np.full(len(offsets), key))
            payload.append(flat[key][first : first + size])
            waiting += len(offsets)
            if waiting >= CHUNK:
                yield _chunk(starts, sizes, kinds, payload)
                starts, sizes, kinds, payload, waiting = [], [], [], [], 0
        if waiting:
            yield _chunk(starts, sizes, kinds, payload)

    described = {"chain": chain.name, "plan": [[b.first, b.last, b.mode] for b in plan.blocks]}
    return Trace(chunks, Memory(0, at, image, tuple(regions)), None, described)


def _chunk(starts: list[Any], sizes: list[Any], kinds: list[Any], payload: list[Any]) -> Chunk:
    key, size = np.concatenate(kinds), np.concatenate(sizes).astype(np.uint8)
    stream = np.where(key == INPUT, READS, np.where(key == OUTPUT, WRITES, WEIGHTS))
    return Chunk(
        np.concatenate(starts).astype(np.uint64),
        size,
        np.where(key == OUTPUT, STORE, LOAD).astype(np.uint8),
        stream.astype(np.uint8),
        np.concatenate(([0], np.cumsum(size, dtype=np.int64))),
        np.concatenate(payload),
    )


def chosen_ways(modes: Sequence[str], tiles: Sequence[int]) -> dict[str, Any]:
    """Return what of `patches` is not left to its defaults."""
    return {name: given for name, given in (("modes", modes), ("tiles", tiles)) if given}
