"""Which layers to run patch by patch: all undominated plans of a chain, exact by dynamic programming over cuts.

A chain is cut into blocks. A block of one layer runs whole. A longer block is *fused* in one of three ways:

* ``rows``: `tile` rows of its output at a time. Going backwards, t rows of a layer's output need
  ``(t - 1) * stride + kernel`` rows of its input. Of these rows each layer holds as many columns as its kernel is wide
  (columns are cached); rows that neighbouring tiles share are computed again. This is the model of msf-CNN
  (arXiv 2505.11483, H-cache with V-recomputation; Lin et al., MCUNetV2, 2021, run the head of a network so).
* ``lines``: each layer holds the last `kernel` lines of its input, and nothing is computed twice.
* ``mixed``: the layers up to `split` run by rows, one row at a time, into the lines of those behind it: the large early
  tensors are computed again, the small late ones are kept.

While a block runs, its whole input and its whole output are held beside these buffers; the network's own input and
output are not counted. An added tensor is held from where it is read first to where it is added: whole, where it
crosses a cut; else as the window of rows and columns (or lines) by which the addition lags behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reorder.patches.chain import Chain
from traces.base.errors import unknown_name

TILES = (1, 2, 4, 8)
MODES = ("whole", "rows", "lines", "mixed")


@dataclass(frozen=True)
class Block:
    """Layers first to last (inclusive). mode: 'whole', 'rows', 'lines' or 'mixed'.

    tile: output rows at a time, for 'rows'. split: the last layer that runs by rows, for 'mixed'.
    """

    first: int
    last: int
    mode: str
    tile: int
    peak_bytes: int
    multiplications: int
    split: int | None = None


@dataclass(frozen=True)
class PatchPlan:
    """Blocks from first to last, their largest memory and all multiplications (factor: over layer by layer)."""

    blocks: tuple[Block, ...]
    peak_bytes: int
    multiplications: int
    factor: float


def tile_rows(chain: Chain, first: int, last: int, tile: int) -> list[tuple[int, int]]:
    """Return (rows of input, rows of output) of one tile for each layer of a block."""
    rows: list[tuple[int, int]] = []
    for layer in reversed(chain.layers[first : last + 1]):
        needs = (tile - 1) * layer.stride + layer.kernel
        rows.append((needs, tile))
        tile = needs
    return rows[::-1]


def rows_made(chain: Chain, first: int, last: int, tile: int) -> list[int]:
    """Return the rows of each layer's output that all tiles of a block compute; rows beyond the tensor are not."""
    height = chain.layers[last].out_h
    starts = np.arange(0, height, tile)
    stops = starts + tile  # a last tile that is not full is computed from all its rows all the same
    found = []
    for layer in reversed(chain.layers[first : last + 1]):
        found.append(int((np.clip(stops, 0, layer.out_h) - np.clip(starts, 0, layer.out_h)).sum()))
        starts, stops = (
            starts * layer.stride - layer.padding,
            (stops - 1) * layer.stride - layer.padding + layer.kernel,
        )
    return found[::-1]


def _work_by_rows(chain: Chain, first: int, last: int, tile: int) -> int:
    layers = chain.layers[first : last + 1]
    made = rows_made(chain, first, last, tile)
    return sum(rows * a.out_w * a.out_c * a.per_value for rows, a in zip(made, layers, strict=True))


def buffer_values(chain: Chain, first: int, last: int, mode: str, tile: int) -> list[int]:
    """Return the values that each layer of a fused block buffers of its input."""
    layers = chain.layers[first : last + 1]
    if mode == "lines":  # the first layer reads the block's whole input, unless that is the network's own
        return [
            0 if k + first == first > 0 else layer.kernel * layer.in_w * layer.in_c for k, layer in enumerate(layers)
        ]
    rows = tile_rows(chain, first, last, tile)
    return [needs * layer.kernel * layer.in_c for (needs, _), layer in zip(rows, layers, strict=True)]


def window(chain: Chain, adds: int, at: int) -> int:
    """Columns (lines) by which layer `at`'s output lags behind layer `adds`'s input, its own included."""
    return 1 + sum(layer.kernel - 1 for layer in chain.layers[adds : at + 1])


def _added(chain: Chain, first: int, last: int, mode: str, tile: int, streamed: bool | None = None) -> int | None:
    """Values of added tensors that a block holds beside its input, None where a tensor would leave it half made.

    streamed: the block's input is never there as a whole.
    """
    streamed = first == 0 and mode == "lines" if streamed is None else streamed
    total, crossing = 0, set()
    rows = tile_rows(chain, first, last, tile) if mode == "rows" else []
    for at, layer in enumerate(chain.layers):
        adds = layer.adds
        if adds is None or at < first or adds > last:
            continue
        source = chain.layers[adds]
        if adds < first or (adds == first and first == 0 and mode != "lines"):
            crossing.add(adds)  # made before the block, or the network's own input
        elif adds == first and not streamed:
            continue  # the block's input is there
        elif at > last:
            return None
        elif mode == "whole":
            crossing.add(adds)
        elif mode == "lines":
            total += window(chain, adds, at) * source.in_w * source.in_c
        else:
            total += rows[at - first][1] * window(chain, adds, at) * source.in_c
    return total + sum(chain.layers[k].in_values for k in crossing)


def make_block(chain: Chain, first: int, last: int, mode: str, tile: int = 1) -> Block | None:
    """Return a block with its memory and multiplications, None where an added tensor forbids it."""
    layers = chain.layers[first : last + 1]
    added = _added(chain, first, last, mode, tile)
    if added is None:
        return None
    memory = added
    memory += layers[0].in_values if first else 0
    memory += layers[-1].out_values if last < len(chain.layers) - 1 else 0
    if mode == "whole":
        return Block(first, last, mode, layers[0].out_h, memory, layers[0].out_values * layers[0].per_value)
    memory += sum(buffer_values(chain, first, last, mode, tile))
    if mode == "lines":
        work = sum(layer.out_values * layer.per_value for layer in layers)
    else:
        work = _work_by_rows(chain, first, last, tile)
    return Block(first, last, mode, tile, memory, work)


def make_mixed(chain: Chain, first: int, split: int, last: int) -> Block | None:
    """Return a block whose layers first to split run by rows into the lines of layers split + 1 to last."""
    layers = chain.layers
    if any(
        a.adds is not None and first <= a.adds <= split < at and (at > last or not a.adds == first > 0)
        for at, a in enumerate(layers)
    ):
        return None
    head = _added(chain, first, split, "rows", 1)
    tail = _added(chain, split + 1, last, "lines", 1, streamed=True)
    if head is None or tail is None:
        return None
    held = {a.adds for at, a in enumerate(layers) if at >= first and a.adds is not None and a.adds < first}
    both = {a.adds for at, a in enumerate(layers) if at > split and a.adds is not None and a.adds <= split}
    twice = sum(layers[k].in_values for k in both & held) + (
        layers[first].in_values if first > 0 and first in both else 0
    )
    memory = head + tail - twice
    memory += layers[first].in_values if first else 0
    memory += layers[last].out_values if last < len(layers) - 1 else 0
    memory += sum(buffer_values(chain, first, split, "rows", 1))
    memory += sum(a.kernel * a.in_w * a.in_c for a in layers[split + 1 : last + 1])
    work = _work_by_rows(chain, first, split, 1)
    work += sum(a.out_values * a.per_value for a in layers[split + 1 : last + 1])
    return Block(first, last, "mixed", 1, memory, work, split)


def patch_front(chain: Chain, *, modes: Sequence[str] = MODES, tiles: Sequence[int] = TILES) -> list[PatchPlan]:
    """Return the undominated plans (peak bytes against multiplications), from the lowest peak to the fewest.

    modes: which kinds of blocks may be used; 'whole' is always one of them. tiles: rows of output at a time.
    Exact for the model of this module: every cut into blocks of these kinds is weighed. O(P * n^2) for P different
    block memories.
    """
    for mode in modes:
        if mode not in MODES:
            raise unknown_name("way to run a block", mode, MODES)
    n = len(chain.layers)
    blocks = [make_block(chain, k, k, "whole") for k in range(n)]
    for first in range(n):
        for last in range(first + 1, n):
            if "lines" in modes:
                blocks.append(make_block(chain, first, last, "lines"))
            if "mixed" in modes:
                blocks += [make_mixed(chain, first, split, last) for split in range(first, last)]
            if "rows" in modes:
                blocks += [
                    make_block(chain, first, last, "rows", t) for t in tiles if t == 1 or t < chain.layers[last].out_h
                ]
    usable = sorted((b for b in blocks if b is not None), key=lambda b: (b.peak_bytes, b.multiplications))
    cost = np.full((n, n), np.inf)
    chosen: dict[tuple[int, int], Block] = {}
    plans: list[PatchPlan] = []
    fewest = np.inf
    for k, block in enumerate(usable):
        if block.multiplications < cost[block.first, block.last]:
            cost[block.first, block.last] = block.multiplications
            chosen[block.first, block.last] = block
        if k + 1 < len(usable) and usable[k + 1].peak_bytes == block.peak_bytes:
            continue
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
            peak, work = max(b.peak_bytes for b in parts), sum(b.multiplications for b in parts)
            plans.append(PatchPlan(tuple(parts[::-1]), peak, work, work / chain.multiplications))
    return plans
