"""Orders for the clock: the objective 'time' of a calibrated processor, and the fastest order it knows of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.processor.cost import Processor
from hwmodel.processor.work import ordered_work
from reorder import order as engine
from reorder.base import Ordering
from reorder.search.objectives import IOTerm, Objective
from traces.base.progress import Progress
from traces.work.network import Network

LANES = (32, 64, 128)
TILES = (32, 48, 64, 96, 128, 176, 256, 384)
"""Most sources per tile that are tried: what a first cache of 16 to 128 KiB holds at the lanes above."""
FUSED = (512, 1024, 2048)
"""Most neurons per block of two layers that are tried: what a second cache holds."""


@dataclass(frozen=True)
class Fastest:
    """An order and the lanes to run it with. predicted_s: seconds for the batch; csr_s: of target after target (CSR),
    with the best lanes for that."""

    ordering: Ordering
    lanes: int
    predicted_s: float
    csr_s: float


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
    csr = processor.seconds(network, engine.order(network, "two-optimal", memory=3), lanes=lanes)
    own = processor.seconds(network, order, lanes=lanes)
    return {"predicted_us": own * 1e6, "csr_us": csr * 1e6, "times_faster_than_csr": csr / own}


def fastest_order(
    network: Network,
    processor: Processor,
    *,
    lanes: Sequence[int] = LANES,
    batch: int = 128,
    memory: int = 100,
    progress: Progress | None = None,
) -> Fastest:
    """Return the order and lanes with the least predicted time for a batch, among orders of long runs.

    Inside a layer, all targets take their sources of one tile before the next tile begins, so that the tile's rows stay
    in the first cache; without a tile it is target after target, the order of CSR. Or two layers go at a time, in
    blocks of neurons. In a tile, targets come by id, or those that are alike side by side. O(W) per candidate.
    """
    best: tuple[float, int, Ordering] | None = None
    csr = float("inf")
    widths = np.bincount(network.depth)
    blocks = [most for most in FUSED if len(widths) > 2 and most < widths[1::2].max()]
    tiles = [most for most in TILES[::-1] if most < widths.max()]
    sizes: list[dict[str, Any]] = [{}, *({"fused": most} for most in blocks), *({"sources": most} for most in tiles)]
    for number, size in enumerate(sizes):
        worse = True  # even if all rows stayed in L1: then smaller tiles are worse, too, as their runs are shorter
        for alike in (False, True):
            found = engine.order(network, "long-runs", memory=memory, **size, alike=alike)
            work = ordered_work(network, found)
            for width in lanes:
                if best and processor.seconds(network, work, lanes=width, batch=batch, cached=True) >= best[0]:
                    continue
                worse = False
                seconds = processor.seconds(network, work, lanes=width, batch=batch)
                csr = csr if size or alike else min(csr, seconds)
                gain = 1 + processor.median_error if alike else 1  # else the plainer one: the model knows no better
                if best is None or seconds * gain < best[0]:
                    best = seconds, width, found
            if worse:
                break
        if progress:
            progress(number + 1, len(sizes), "orders")
        if worse and "sources" in size:
            break
    assert best is not None
    return Fastest(best[2], best[1], best[0], csr)
