"""Orders for the clock: the objective 'time' of a calibrated processor, and the fastest order it knows of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.processor.cost import Processor, rows_held
from hwmodel.processor.work import PAIRING, OrderedWork, ordered_work
from reorder.base import Ordering
from reorder.edges.search.objectives import IOTerm, Objective
from reorder.order import order as order_edges
from traces.base.progress import Progress
from traces.base.units import engineering
from traces.networks.network import Network

LANES = (32, 64, 128)
TILES = (32, 48, 64, 96, 128, 176, 256, 384)
"""Most sources per tile that are tried: what a first cache of 16 to 128 KiB holds at the lanes above."""
FUSED = (512, 1024, 2048)
"""Most neurons per block of two layers that are tried: what a second cache holds."""
NEAR_RUNS = 4
"""Targets that share sources are looked for where the first cache holds the sources of so many runs ..."""
NEAR_WORK = 1 << 24
"""... and connections times targets per source are at most this: a second or so."""
NEAR_TILES = 2
"""Pairs come by what the first cache holds where a tile has more sources, at most so many times as many."""
PAIR_RUNS = 8
"""Pairs of targets are tried where runs have so many connections: two that share four are then found ..."""
PAIR_WORK = 1 << 28
"""... and connections times targets per source are at most this: a second or so."""
LIMIT_S = 60.0


@dataclass(frozen=True)
class Fastest:
    """An order and the lanes to run it with. predicted_s: seconds for the batch; csr_s: of target after target (CSR),
    with the best lanes for that. complete: every candidate was looked at; else the time limit came first."""

    ordering: Ordering
    lanes: int
    predicted_s: float
    csr_s: float
    complete: bool = True


def time_objective(processor: Processor, network: Network, lanes: int) -> Objective:
    """Return predicted time as a search lowers it, in nanoseconds less what no order changes.

    Runs, and I/Os under LRU of fast memories as large as the first two caches are in rows. Weights of connections and
    the stream of their words are the same for every order.
    """
    run, levels = processor.weights(lanes)
    terms = tuple(IOTerm(weight, "lru", "literal", min(memory, network.n_neurons + 1)) for memory, weight in levels)
    return Objective("time", runs=run, io=terms)


def speed_up(processor: Processor, network: Network, order: Any, lanes: int) -> dict[str, float]:
    """Return what the model says of an order: microseconds of a pass, and of the order of CSR."""
    csr = processor.seconds(network, order_edges(network, "two-optimal", memory=3), lanes=lanes)
    own = processor.seconds(network, order, lanes=lanes)
    return {"predicted_us": own * 1e6, "csr_us": csr * 1e6, "times_faster_than_csr": csr / own}


def speed_in_words(speed: Mapping[str, Any], lanes: int | None) -> str:
    """Say what `speed_up` returned."""
    ours, theirs = (engineering(speed[key] * 1e-6, "s") for key in ("predicted_us", "csr_us"))
    return (
        f"predicted time of a pass of {lanes} vectors: {ours}, target after target (CSR) {theirs}: "
        f"{speed['times_faster_than_csr']:.2f} times as fast"
    )


def fastest_order(
    network: Network,
    processor: Processor,
    *,
    lanes: Sequence[int] = LANES,
    batch: int = 128,
    memory: int = 100,
    time_limit_s: float | None = LIMIT_S,
    progress: Progress | None = None,
) -> Fastest:
    """Return the order and lanes with the least predicted time for a batch, among orders of long runs.

    Inside a layer, all targets take their sources of one tile before the next tile begins, so that the tile's rows stay
    in the first cache; without a tile it is target after target, the order of CSR. Or two layers go at a time, in
    blocks of neurons. In a tile, targets come by id, or those that are alike side by side, or, where there is no tile,
    each after those that it shares most sources with; and where kernels take two targets at a time, in pairs.

    The same network and processor (a stored calibration) give the same answer, unless the limit ends the search: no
    candidate begins that would, as the slowest one before it, go beyond time_limit_s (None: no limit). At least target
    after target is looked at. O(W log W) per candidate, 10 to 60.
    """
    search = _Search(network, processor, tuple(lanes), batch, memory)
    widths = np.bincount(network.depth)
    blocks = [most for most in FUSED if len(widths) > 2 and most < widths[1::2].max()]
    tiles = [most for most in TILES[::-1] if most < widths.max()]
    sizes: list[dict[str, Any]] = [{}, *({"fused": most} for most in blocks), *({"sources": most} for most in tiles)]
    started, slowest = time.perf_counter(), 0.0
    for number, size in enumerate(sizes):
        useful = False  # smaller tiles than a useless one are useless, too: their runs are shorter
        for shape, here in search.shapes(size):
            before = time.perf_counter()
            if time_limit_s is not None and search.best and before + slowest > started + time_limit_s:
                return search.result(complete=False)
            useful |= search.offer(shape, here)
            if not useful:
                break
            slowest = max(slowest, time.perf_counter() - before)
        if progress:
            progress(number + 1, len(sizes), "orders")
        if not useful and "sources" in size:
            break
    return search.result(complete=True)


class _Search:
    """The best order so far, and the candidates of one size of tiles or blocks."""

    def __init__(self, network: Network, processor: Processor, lanes: tuple[int, ...], batch: int, memory: int) -> None:
        self.network, self.processor, self.lanes, self.batch, self.memory = network, processor, lanes, batch, memory
        self.best: tuple[float, int, Ordering] | None = None
        self.csr = float("inf")

    def shapes(self, size: dict[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        """Yield (parameters of long-runs, lanes to judge them with)."""
        yield size, self.lanes
        yield {**size, "alike": True}, self.lanes
        w = self.network.n_connections
        length, fan_out = (
            w / max(1, int(np.count_nonzero(d))) for d in (self.network.in_degree, self.network.out_degree)
        )
        widest = int(np.bincount(self.network.depth).max())
        tiles = -(-widest // size.get("sources", widest))
        if self.processor.simd == PAIRING and length >= PAIR_RUNS * tiles and w * fan_out <= PAIR_WORK:
            yield {**size, "pairs": True}, self.lanes
            yield {**size, "pairs": True, "alike": True}, self.lanes
            for width in self.lanes if w * fan_out <= NEAR_WORK else ():
                rows = rows_held(self.processor.limits.l1_bytes, width)
                if rows < widest // tiles <= NEAR_TILES * rows:
                    yield {**size, "pairs": True, "near": rows}, (width,)
        for width in self.lanes if "sources" not in size and w * fan_out <= NEAR_WORK else ():
            rows = rows_held(self.processor.limits.l1_bytes, width)
            if NEAR_RUNS * length <= rows:
                yield {**size, "near": rows}, (width,)

    def offer(self, shape: dict[str, Any], lanes: tuple[int, ...]) -> bool:
        """Judge one order; return whether it would have been the best if all rows stayed in the first cache."""
        ordering = order_edges(self.network, "long-runs", memory=self.memory, **shape)
        work = ordered_work(self.network, ordering)
        plain = not {"alike", "near", "pairs"} & shape.keys()
        gain = 1 if plain else 1 + self.processor.median_error  # else the plainer one: the model knows no better
        useful = False
        for width in lanes:
            if self.best and self._seconds(work, width, cached=True) >= self.best[0]:
                continue
            useful = True
            seconds = self._seconds(work, width)
            if not shape:
                self.csr = min(self.csr, seconds)
            if self.best is None or seconds * gain < self.best[0]:
                self.best = seconds, width, ordering
        return useful

    def _seconds(self, work: OrderedWork, width: int, *, cached: bool = False) -> float:
        return self.processor.seconds(self.network, work, lanes=width, batch=self.batch, cached=cached)

    def result(self, complete: bool) -> Fastest:
        """Return the best so far."""
        assert self.best is not None
        return Fastest(self.best[2], self.best[1], self.best[0], self.csr, complete)
