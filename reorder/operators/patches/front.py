"""Which layers to run patch by patch: all undominated plans of a chain, exact by dynamic programming over cuts.

A chain is cut into blocks (patches.blocks); a plan's peak is that of its largest block, its multiplications and
off-chip bytes are those of all its blocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reorder.operators.patches import msf_cnn
from reorder.operators.patches.blocks import Block, make_block
from reorder.operators.patches.chain import LayerChain
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name
from traces.base.memory import claim
from traces.base.progress import Limit

TILES = (1, 2, 4, 8)
MOST_LAYERS = 128  # of a chain: the work grows with the fourth power, 80 layers take half a minute
MODES = ("whole", "rows", "lines", "mixed")
COUNTINGS = ("exact", "msf-cnn")
WAY_BYTES = 200  # of one way to reach a cut, of those that are weighed in three things
MOST_WAYS = 1 << 17  # before the dominated ones are dropped


@dataclass(frozen=True)
class PatchPlan:
    """Blocks from first to last, their largest memory, all multiplications (factor: over layer by layer).

    offchip_bytes: of all blocks.
    """

    blocks: tuple[Block, ...]
    peak_bytes: int
    multiplications: int
    factor: float
    offchip_bytes: int = 0


def _blocks(
    chain: LayerChain, modes: Sequence[str], tiles: Sequence[int], weight_buffer: int
) -> Iterator[Block | None]:
    n = len(chain.layers)
    for k in range(n):
        yield make_block(chain, k, k, "whole", weight_buffer=weight_buffer)
    for first in range(n):
        for last in range(first + 1, n):
            if "lines" in modes:
                yield make_block(chain, first, last, "lines", weight_buffer=weight_buffer)
            if "mixed" in modes:
                for split in range(first, last):
                    yield make_block(chain, first, last, "mixed", split=split, weight_buffer=weight_buffer)
            if "rows" in modes:
                for tile in tiles:
                    if tile == 1 or tile < chain.layers[last].out_h:
                        yield make_block(chain, first, last, "rows", tile, weight_buffer=weight_buffer)


def _plan(chain: LayerChain, parts: Sequence[Block]) -> PatchPlan:
    peak, work = max(b.peak_bytes for b in parts), sum(b.multiplications for b in parts)
    return PatchPlan(tuple(parts), peak, work, work / chain.multiplications, sum(b.offchip_bytes for b in parts))


def patch_front(
    chain: LayerChain,
    *,
    modes: Sequence[str] = MODES,
    tiles: Sequence[int] = TILES,
    counting: str = "exact",
    offchip: bool = False,
    weight_buffer: int = 0,
    limit: Limit | None = None,
) -> list[PatchPlan]:
    """Return the undominated plans (peak bytes against multiplications), from the lowest peak to the fewest.

    modes: which kinds of blocks may be used; 'whole' is always one of them. tiles: rows of output at a time.
    counting: 'exact', what a run takes, or 'msf-cnn', what that optimiser states (patches.msf_cnn; blocks by
    single rows only, whatever `modes` and `tiles` say).
    offchip: off-chip bytes are a third thing that plans are weighed by. weight_buffer: bytes in which weights of a
    fused block stay while it runs. limit: once its time is over, the plans of the blocks that were weighed so far are
    returned, layer by layer among them.
    Exact for the model of patches.blocks: every cut into blocks of these kinds is weighed. O(P * n^2) for P
    different block memories; with `offchip` in proportion to the undominated plans of all prefixes, which may be very
    many: InputError where they do not fit into memory.
    """
    limit = limit or Limit()
    for mode in modes:
        if mode not in MODES:
            raise unknown_name("way to run a block", mode, MODES)
    if counting not in COUNTINGS:
        raise unknown_name("counting", counting, COUNTINGS)
    if weight_buffer < 0:
        raise InputError(f"weight_buffer is {weight_buffer}: at least 0 bytes")
    for tile in tiles:
        whole_number(tile, "tiles", most=1 << 40)
    n = len(chain.layers)
    if n > MOST_LAYERS:
        raise InputError(f"{chain.name}: {n} layers, at most {MOST_LAYERS} are weighed together: cut the chain")
    if counting == "msf-cnn":
        if offchip:
            raise InputError("counting 'msf-cnn' knows no off-chip bytes: use 'exact'")
        if any(layer.adds is not None for layer in chain.layers):
            raise InputError(f"{chain.name}: counting 'msf-cnn' knows no residual additions: use 'exact'")
        cuts = [(a, a) for a in range(n)] + [(a, b) for a in range(n) for b in range(a + 1, n)]
        blocks: Iterator[Block | None] = (msf_cnn.make_block(chain, a, b) for a, b in cuts)
    else:
        blocks = _blocks(chain, modes, tiles, weight_buffer)
    usable: list[Block] = []
    for block in blocks:  # single layers come first: there is always a plan of them
        if block is not None:
            usable.append(block)
        if limit.over(len(usable), None, "blocks") and len(usable) >= n:
            break
    usable.sort(key=lambda b: (b.peak_bytes, b.multiplications, b.offchip_bytes))
    return _three(chain, usable, limit) if offchip else _two(chain, usable, limit)


def _two(chain: LayerChain, usable: list[Block], limit: Limit) -> list[PatchPlan]:
    """For each memory that a block may take: the fewest multiplications with blocks that take no more."""
    n = len(chain.layers)
    cost = np.full((n, n), np.inf)
    chosen: dict[tuple[int, int], Block] = {}
    plans: list[PatchPlan] = []
    fewest = np.inf
    for k, block in enumerate(usable):
        if block.multiplications < cost[block.first, block.last]:
            cost[block.first, block.last] = block.multiplications
            chosen[block.first, block.last] = block
        if k + 1 < len(usable) and (limit.over(k, len(usable), "cuts") or usable[k + 1].peak_bytes == block.peak_bytes):
            continue  # once the time is over only the last step is taken, with all blocks
        best, start = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
        best[0] = 0
        for end in range(n):
            ways = best[: end + 1] + cost[: end + 1, end]
            start[end + 1] = int(ways.argmin())
            best[end + 1] = ways[start[end + 1]]
        if best[n] < fewest:
            fewest = best[n]
            cut, parts = n, []
            while cut:
                parts.append(chosen[int(start[cut]), cut - 1])
                cut = int(start[cut])
            plans.append(_plan(chain, parts[::-1]))
    return plans


def _three(chain: LayerChain, usable: list[Block], limit: Limit) -> list[PatchPlan]:
    """Extend the undominated plans of each prefix by every block that begins behind it.

    Once the time is over, by single layers alone.
    """
    n = len(chain.layers)
    by_end: list[list[Block]] = [[] for _ in range(n)]
    for block in usable:
        by_end[block.last].append(block)
    labels: list[list[tuple[int, int, int]]] = [[(0, 0, 0)]]
    came: list[list[tuple[Block, int]]] = [[]]
    for last in range(n):
        pairs: dict[int, list[Block]] = {}
        for block in by_end[last]:
            pairs.setdefault(block.first, []).append(block)
        ways: list[tuple[int, int, int, Block, int]] = []
        most = MOST_WAYS
        for first in sorted(pairs, reverse=True):  # the layer alone comes first
            several = pairs[first]
            kept = _undominated([(b.peak_bytes, b.multiplications, b.offchip_bytes) for b in several])
            for k in kept:
                if first < last and limit.over(last, n, "layers"):
                    break
                b = several[k]
                claim(WAY_BYTES * (len(ways) + len(labels[first])), chain.name, "weighing memory, work and transfers")
                ways += [
                    (max(p, b.peak_bytes), w + b.multiplications, d + b.offchip_bytes, b, i)
                    for i, (p, w, d) in enumerate(labels[first])
                ]
                if len(ways) > most:
                    ways = [ways[j] for j in _undominated([way[:3] for way in ways])]
                    most = max(MOST_WAYS, 2 * len(ways))
        best = _undominated([way[:3] for way in ways])
        labels.append([ways[k][:3] for k in best])
        came.append([ways[k][3:] for k in best])
    plans = []
    for i in range(len(labels[n])):
        parts, end, k = [], n, i
        while end:
            block, k = came[end][k]
            parts.append(block)
            end = block.first
        plans.append(_plan(chain, parts[::-1]))
    return plans


def _undominated(points: list[tuple[int, int, int]]) -> list[int]:
    """Return the points that no other one is at most equal to in all three, each value once, by ascending first."""
    order = sorted(range(len(points)), key=points.__getitem__)
    seconds: list[int] = []  # a staircase: ascending, with descending thirds
    thirds: list[int] = []
    undominated = []
    for k in order:
        _, second, third = points[k]
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        undominated.append(k)
        end = at
        while end < len(thirds) and thirds[end] >= third:
            end += 1
        if at and seconds[at - 1] == second:
            at -= 1
        seconds[at:end] = [second]
        thirds[at:end] = [third]
    return undominated
