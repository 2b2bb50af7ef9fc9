"""Orders for the processor at hand: the fastest of some orders of long runs, by the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.processor.inference import compile_inference
from hwmodel.processor.limits import l1_bytes, rows_held, seconds_of
from reorder.base import Ordering
from reorder.order import order as order_edges
from traces.base.progress import Progress
from traces.base.units import engineering
from traces.networks.network import Network

LANES = (32, 64, 128)
TILES = (384, 256, 176, 128, 96, 64, 48, 32)
"""Most sources per tile that are tried: what a first cache of 16 to 128 KiB holds at the lanes above."""
FUSED = (512, 1024, 2048)
"""Most neurons per block of two layers that are tried: what a second cache holds."""
NEAR_RUNS = 4
"""Targets that share sources are looked for where the first cache holds the sources of so many runs ..."""
NEAR_WORK = 1 << 24
"""... and connections times targets per source are at most this: a second or so."""
FASTER_BY = 0.97
"""Times the best time so far, below which another shape is taken: the clock tells no smaller differences."""
USELESS = 1.1
"""Times the best time, from which smaller tiles are not tried: their runs are shorter still."""
LIMIT_S = 60.0


@dataclass(frozen=True)
class Fastest:
    """An order and the lanes to run it with. seconds: of the processor's time for the batch; csr_s: of target after
    target (CSR), with the best lanes for that. complete: every candidate was timed; else the time limit came first."""

    ordering: Ordering
    lanes: int
    seconds: float
    csr_s: float
    complete: bool = True


def seconds_of_pass(network: Network, order: Any, lanes: int) -> float:
    """Return the thread CPU seconds of a pass of `lanes` vectors: the least of some samples of a few milliseconds."""
    made = compile_inference(network, order, lanes=lanes)
    inputs = made.pack(np.random.default_rng(0).random((lanes, len(network.inputs)), np.float32))
    return seconds_of(lambda: made.run(inputs))


def speed_up(network: Network, order: Any, lanes: int) -> dict[str, float]:
    csr = seconds_of_pass(network, order_edges(network, "two-optimal", memory=3), lanes)
    own = seconds_of_pass(network, order, lanes)
    return {"measured_us": own * 1e6, "csr_us": csr * 1e6, "times_faster_than_csr": csr / own}


def describe_speed(speed: Mapping[str, Any], lanes: int | None) -> str:
    ours, theirs = (engineering(speed[key] * 1e-6, "s") for key in ("measured_us", "csr_us"))
    return (
        f"a pass of {lanes} vectors takes {ours}, target after target (CSR) {theirs}: "
        f"{speed['times_faster_than_csr']:.2f} times as fast"
    )


def fastest_order(
    network: Network,
    *,
    lanes: Sequence[int] = LANES,
    batch: int = 128,
    memory: int = 100,
    time_limit_s: float | None = LIMIT_S,
    progress: Progress | None = None,
) -> Fastest:
    """Return the order and lanes that take the least time for a batch on this processor, among orders of long runs.

    Inside a layer, all targets take their sources of one tile before the next tile begins; without a tile it is target
    after target, the order of CSR. Or two layers go at a time, in blocks of neurons.

    Each candidate (10 to 60) is compiled and run: several are often within a few per cent, and a clock is never quite
    the same twice. At least target after target is timed; none begins after time_limit_s (None: no limit). memory: M of
    the task. Raises InputError for a network that cannot be compiled.
    """
    widths = np.bincount(network.depth)
    blocks = [most for most in FUSED if len(widths) > 2 and most < widths[1::2].max()]
    tiles = [most for most in TILES if most < widths.max()]
    sizes: list[dict[str, Any]] = [{}, *({"fused": most} for most in blocks), *({"sources": most} for most in tiles)]
    best: tuple[float, int, Ordering] | None = None
    csr, complete = float("inf"), True
    began = time.perf_counter()
    for number, size in enumerate(sizes):
        least = float("inf")
        for shape, widths_tried in _shapes(network, size, tuple(lanes)):
            if best is not None and time_limit_s is not None and time.perf_counter() > began + time_limit_s:
                complete = False
                break
            ordering = order_edges(network, "long-runs", memory=memory, **shape)
            for width in widths_tried:
                seconds = seconds_of_pass(network, ordering, width) * -(-batch // width)
                least = min(least, seconds)
                csr = csr if shape else min(csr, seconds)
                if best is None or seconds < (1.0 if ordering is best[2] else FASTER_BY) * best[0]:
                    best = seconds, width, ordering
        if progress:
            progress(number + 1, len(sizes), "orders")
        assert best is not None
        if not complete or ("sources" in size and least > USELESS * best[0]):
            break
    assert best is not None
    return Fastest(best[2], best[1], best[0], csr, complete)


def _shapes(
    network: Network, size: dict[str, Any], lanes: tuple[int, ...]
) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
    """Yield (parameters of long-runs, lanes to time them with)."""
    yield size, lanes
    yield {**size, "alike": True}, lanes
    w, l1 = network.n_connections, l1_bytes()
    length, fan_out = (w / max(1, int(np.count_nonzero(d))) for d in (network.in_degree, network.out_degree))
    for width in lanes if "sources" not in size and w * fan_out <= NEAR_WORK else ():
        if NEAR_RUNS * length <= rows_held(l1, width):
            yield {**size, "near": rows_held(l1, width)}, (width,)
