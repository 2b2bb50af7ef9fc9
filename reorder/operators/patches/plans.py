"""Which layers to run patch by patch: undominated plans of a chain, and their off-chip transfers in order.

A chain is cut into blocks of layers that run together; dynamic programming weighs all cuts. A plan's peak is that of
its largest block, its multiplications and off-chip bytes are those of all its blocks. One layer runs whole, a
longer one is *fused* in one of three ways:

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

Off-chip are the network's input and output and all weights. The input is read as often as tiles need it again, the
output is written once. Weights of a block that fit together in a buffer of their own (`weight_buffer`, not part of the
peak) are read once; else they are read again for every tile, or for every line of a layer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reorder.operators.patches.chain import LayerChain
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name
from traces.base.memory import claim
from traces.base.progress import Limit

TILES = (1, 2, 4, 8)
MOST_LAYERS = 128  # of a chain: the work grows with the fourth power, 80 layers take half a minute
MODES = ("whole", "rows", "lines", "mixed")
WAY_BYTES = 200  # of one way to reach a cut, of those that are weighed in three things
MOST_WAYS = 1 << 17  # before the dominated ones are dropped
INPUT, OUTPUT = -1, -2
Transfer = tuple[int, int, int]  # layer whose weights they are, INPUT or OUTPUT; first byte; bytes


@dataclass(frozen=True)
class Block:
    """Layers first to last (inclusive). mode: 'whole', 'rows', 'lines' or 'mixed'.

    tile: output rows at a time, for 'rows'. split: the last layer that runs by rows, for 'mixed'.
    offchip_bytes: weights and the network's own input and output, read and written.
    """

    first: int
    last: int
    mode: str
    tile: int
    peak_bytes: int
    multiplications: int
    split: int | None = None
    offchip_bytes: int = 0


def tile_rows(chain: LayerChain, first: int, last: int, tile: int) -> list[tuple[int, int]]:
    """Return (rows of input, rows of output) of one tile for each layer of a block."""
    rows: list[tuple[int, int]] = []
    for layer in reversed(chain.layers[first : last + 1]):
        needs = (tile - 1) * layer.stride + layer.kernel
        rows.append((needs, tile))
        tile = needs
    return rows[::-1]


def rows_made(chain: LayerChain, first: int, last: int, tile: int) -> list[int]:
    """Return the rows that all tiles of a block touch: of the block's input, then of each layer's output.

    Rows beyond a tensor are not counted.
    """
    height = chain.layers[last].out_h
    tiles = -(-height // tile)
    first_row, end, step = 0, tile, tile  # of the first tile; a last one that is not full is computed as a whole
    rows = []
    for layer in reversed(chain.layers[first : last + 1]):
        rows.append(_within(end, step, tiles, layer.out_h) - _within(first_row, step, tiles, layer.out_h))
        first_row = first_row * layer.stride - layer.padding
        end = (end - 1) * layer.stride - layer.padding + layer.kernel
        step *= layer.stride
    height = chain.layers[first].in_h
    rows.append(_within(end, step, tiles, height) - _within(first_row, step, tiles, height))
    return rows[::-1]


def _within(start: int, step: int, count: int, height: int) -> int:
    """Return the sum of start + i * step for i below count, each cut to 0 to height."""
    low = min(count, max(0, -(start // step)))  # the first that is not below 0
    high = min(count, max(low, -((start - height) // step)))  # the first that is not below height
    return (high - low) * start + (high * (high - 1) - low * (low - 1)) // 2 * step + (count - high) * height


def _work_by_rows(chain: LayerChain, first: int, last: int, tile: int) -> int:
    layers = chain.layers[first : last + 1]
    made = rows_made(chain, first, last, tile)[1:]
    return sum(rows * a.out_w * a.out_c * a.per_value for rows, a in zip(made, layers, strict=True))


def buffer_values(chain: LayerChain, first: int, last: int, mode: str, tile: int) -> list[int]:
    """Return the values that each layer of a fused block buffers of its input."""
    layers = chain.layers[first : last + 1]
    if mode == "lines":  # the first layer reads the block's whole input, unless that is the network's own
        return [
            0 if k + first == first > 0 else layer.kernel * layer.in_w * layer.in_c for k, layer in enumerate(layers)
        ]
    rows = tile_rows(chain, first, last, tile)
    return [needs * layer.kernel * layer.in_c for (needs, _), layer in zip(rows, layers, strict=True)]


def window(chain: LayerChain, adds: int, at: int) -> int:
    """Columns (lines) by which layer `at`'s output lags behind layer `adds`'s input, its own included."""
    return 1 + sum(layer.kernel - 1 for layer in chain.layers[adds : at + 1])


def _added(chain: LayerChain, first: int, last: int, mode: str, tile: int, streamed: bool | None = None) -> int | None:
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


def _offchip(chain: LayerChain, block: Block, weight_buffer: int) -> int:
    """Bytes that a block reads and writes off-chip."""
    layers = chain.layers
    first, last = block.first, block.last
    split = (
        last if block.mode == "rows" else first - 1 if block.split is None else block.split
    )  # last that runs by rows
    tiles = -(-layers[split].out_h // block.tile)
    part = layers[first : last + 1]
    total = sum(layer.weights for layer in part)
    if block.mode != "whole" and total > weight_buffer:
        total = sum(layer.weights * (tiles if k <= split else layer.out_h) for k, layer in enumerate(part, first))
    if first == 0:
        source = layers[0]
        rows = source.in_h
        if block.mode in ("rows", "mixed"):
            rows = rows_made(chain, 0, split, block.tile)[0]
        elif block.mode == "whole":
            rows = rows_made(chain, 0, 0, 1)[0]
        if block.mode != "lines" and any(layer.adds == 0 for layer in layers):
            rows = source.in_h  # it is in memory to be added
        total += rows * source.in_w * source.in_c
    if last == len(layers) - 1:
        total += layers[last].out_values
    return total


def make_block(
    chain: LayerChain,
    first: int,
    last: int,
    mode: str,
    tile: int = 1,
    *,
    split: int | None = None,
    weight_buffer: int = 0,
) -> Block | None:
    """Return a block with what it takes, None where an added tensor forbids it. split: of mode 'mixed'."""
    if mode == "mixed":
        assert split is not None
        made = _mixed(chain, first, split, last)
    else:
        made = _plain(chain, first, last, mode, tile)
    return None if made is None else replace(made, offchip_bytes=_offchip(chain, made, weight_buffer))


def _plain(chain: LayerChain, first: int, last: int, mode: str, tile: int) -> Block | None:
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


def _mixed(chain: LayerChain, first: int, split: int, last: int) -> Block | None:
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
    offchip: bool = False,
    weight_buffer: int = 0,
    limit: Limit | None = None,
) -> list[PatchPlan]:
    """Return the undominated plans (peak bytes against multiplications), from the lowest peak to the fewest.

    modes: which kinds of blocks may be used; 'whole' is always one of them. tiles: rows of output at a time.
    offchip: off-chip bytes are a third thing that plans are weighed by. weight_buffer: bytes in which weights of a
    fused block stay while it runs. limit: once its time is over, the plans of the blocks that were weighed so far are
    returned, layer by layer among them.
    Exact for the model above: every cut into blocks of these kinds is weighed. O(P * n^2) for P
    different block memories; with `offchip` in proportion to the undominated plans of all prefixes, which may be very
    many: InputError where they do not fit into memory.
    """
    limit = limit or Limit()
    for mode in modes:
        if mode not in MODES:
            raise unknown_name("way to run a block", mode, MODES)
    if weight_buffer < 0:
        raise InputError(f"weight_buffer is {weight_buffer}: at least 0 bytes")
    for tile in tiles:
        whole_number(tile, "tiles", most=1 << 40)
    n = len(chain.layers)
    if n > MOST_LAYERS:
        raise InputError(f"{chain.name}: {n} layers, at most {MOST_LAYERS} are weighed together: cut the chain")
    usable: list[Block] = []
    for block in _blocks(chain, modes, tiles, weight_buffer):  # single layers come first: always a plan
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


def transfers(chain: LayerChain, plan: PatchPlan, *, weight_buffer: int = 0) -> Iterator[Transfer]:
    """Yield every transfer; their sizes add up to `plan.offchip_bytes` but for lines that no tile asks for."""
    for block in plan.blocks:
        yield from _Transfers(chain, block, weight_buffer).run()


class _Transfers:
    def __init__(self, chain: LayerChain, block: Block, weight_buffer: int) -> None:
        self.chain, self.block = chain, block
        layers = chain.layers[block.first : block.last + 1]
        self.kept = block.mode == "whole" or sum(layer.weights for layer in layers) <= weight_buffer
        self.loaded = block.first == 0 and block.mode != "lines" and any(a.adds == 0 for a in chain.layers)
        self.head = block.first - 1 if block.split is None else block.split
        self.next = {at: -chain.layers[at].padding for at in range(block.first, block.last + 1)}

    def run(self) -> Iterator[Transfer]:
        block, layers = self.block, self.chain.layers
        source, end = layers[0], layers[block.last]
        if self.kept:
            yield from self._weights(block.first, block.last)
        if self.loaded:
            yield INPUT, 0, source.in_values
        for y in range(0, end.out_h, block.tile if block.mode == "rows" else 1):
            rows = min(block.tile, end.out_h - y) if block.mode == "rows" else 1
            if block.mode == "rows":
                yield from self._tile(block.last, y, block.tile)
            elif block.mode != "whole":
                yield from self._line(block.last, y)
            elif block.first == 0 and not self.loaded:
                yield from self._rows(y * source.stride - source.padding, source.kernel)
            if block.last == len(layers) - 1:
                line = end.out_w * end.out_c
                yield OUTPUT, y * line, rows * line

    def _weights(self, first: int, last: int) -> Iterator[Transfer]:
        for at in range(first, last + 1):
            yield at, 0, self.chain.layers[at].weights

    def _rows(self, start: int, count: int) -> Iterator[Transfer]:
        """Rows of the network's input, as far as they exist."""
        source = self.chain.layers[0]
        first, stop = max(0, start), min(source.in_h, start + count)
        line = source.in_w * source.in_c
        if stop > first:
            yield INPUT, first * line, (stop - first) * line

    def _tile(self, last: int, top: int, rows: int) -> Iterator[Transfer]:
        """One tile of rows of layer `last`'s output, made from the block's input."""
        if not self.kept:
            yield from self._weights(self.block.first, last)
        for layer in reversed(self.chain.layers[self.block.first : last + 1]):
            top, rows = top * layer.stride - layer.padding, (rows - 1) * layer.stride + layer.kernel
        if self.block.first == 0 and not self.loaded:
            yield from self._rows(top, rows)

    def _line(self, at: int, index: int) -> Iterator[Transfer]:
        """One line of layer `at`'s output, and before it the lines of its input that are not there yet."""
        layer = self.chain.layers[at]
        while self.next[at] <= index * layer.stride - layer.padding + layer.kernel - 1:
            line = self.next[at]
            self.next[at] += 1
            if not 0 <= line < layer.in_h:
                continue
            if at == self.head + 1 > self.block.first:
                yield from self._tile(self.head, line, 1)
            elif at > self.block.first:
                yield from self._line(at - 1, line)
            elif self.block.first == 0 and not self.loaded:
                yield from self._rows(line, 1)
        if not self.kept:
            yield at, 0, layer.weights
