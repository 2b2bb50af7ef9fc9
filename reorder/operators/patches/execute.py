"""Running a patch-wise plan in NumPy, with buffers of the planned size, to compare it with layer-by-layer execution.

Values are int8, sums int64; a layer's output is its sum shifted right and clipped to int8, then the added tensor is
added and clipped, so every way to run a chain must give the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.operators.patches.chain import ConvolutionLayer, LayerChain
from reorder.operators.patches.plans import Block, PatchPlan, rows_made, tile_rows, window
from traces.base.memory import claim
from traces.base.progress import Limit

Int8 = npt.NDArray[np.int8]
SHIFT = 7
PIECE = 1 << 24  # multiplications between two looks at the clock


@dataclass
class Tally:
    """multiplications done, and the most values that blocks held (buffers, inputs and outputs as the plan counts).

    offchip_bytes: of the network's input and output, and weights, each time that a layer begins a tile or a line.
    """

    multiplications: int = 0
    peak_bytes: int = 0
    offchip_bytes: int = 0


def _clip(values: npt.NDArray[np.int64]) -> Int8:
    return np.clip(values, -128, 127).astype(np.int8)


def _layer(layer: ConvolutionLayer, padded: Int8, weights: Int8, limit: Limit) -> Int8:
    """Apply a layer to input that holds its padding: int8[h, w, c] -> int8[out rows, out columns, c]."""
    k, s = layer.kernel, layer.stride
    rows, columns = (padded.shape[0] - k) // s + 1, (padded.shape[1] - k) // s + 1
    out = np.empty((rows, columns, layer.out_c), np.int8)
    channels = max(1, PIECE // layer.per_value)
    across = max(1, channels // layer.out_c)
    down = max(1, across // columns)
    for top in range(0, rows, down):
        for left in range(0, columns, across):
            for first in range(0, layer.out_c, channels):
                place = np.s_[top : top + down, left : left + across, first : first + channels]
                made = out[place]
                total = np.zeros(made.shape, np.int64)
                for y in range(k):
                    limit.check(text="running")
                    for x in range(k):
                        part = padded[y + top * s :: s, x + left * s :: s][: made.shape[0], : made.shape[1]]
                        w = weights[y, x, ..., first : first + channels].astype(np.int64)
                        if layer.kind == "conv":
                            total += part.astype(np.int64) @ w
                        else:
                            total += part[..., first : first + channels].astype(np.int64) * w
                out[place] = _clip(total >> SHIFT)
    return out


def claim_run(chain: LayerChain) -> None:
    """Raise InputError unless tensors, weights and the buffers of any plan fit into memory."""
    tensors = sum(layer.in_values for layer in chain.layers) + chain.layers[-1].out_values
    widest = max((a.in_h + 2 * a.padding) * (a.in_w + 2 * a.padding) * a.in_c + 9 * a.out_values for a in chain.layers)
    claim(tensors + widest + sum(layer.weights for layer in chain.layers), chain.name, "running it in NumPy")


def run_whole(chain: LayerChain, given: Int8, weights: Sequence[Int8], limit: Limit | None = None) -> Int8:
    """Run layer by layer. Raises TimeIsUp where the limit's time is over before."""
    limit = limit or Limit()
    inputs: list[Int8] = []
    for layer, w in zip(chain.layers, weights, strict=True):
        inputs.append(given)
        p = layer.padding
        given = _layer(layer, np.pad(given, ((p, p), (p, p), (0, 0))), w, limit)
        if layer.adds is not None:
            given = _clip(given.astype(np.int64) + inputs[layer.adds])
    return given


def run_plan(
    chain: LayerChain,
    plan: PatchPlan,
    given: Int8,
    weights: Sequence[Int8],
    *,
    weight_buffer: int = 0,
    limit: Limit | None = None,
) -> tuple[Int8, Tally]:
    """Run a plan block by block; return the output and what it took. weight_buffer: as the plan was made with.

    Raises TimeIsUp where the limit's time is over before.
    """
    tally, limit = Tally(), limit or Limit()
    made = {0: given}  # inputs of layers that are held whole
    for block in plan.blocks:
        total = sum(layer.weights for layer in chain.layers[block.first : block.last + 1])
        kept = block.mode == "whole" or total <= weight_buffer
        tally.offchip_bytes += total if kept else 0
        out = _run_block(chain, block, made, weights, tally, limit, kept)
        end = block.last + 1
        made = {k: v for k, v in made.items() if any(a.adds == k for a in chain.layers[end:])}
        made[end] = out
    result = made[len(chain.layers)]
    tally.offchip_bytes += result.size
    return result, tally


def _run_block(
    chain: LayerChain,
    block: Block,
    made: dict[int, Int8],
    weights: Sequence[Int8],
    tally: Tally,
    limit: Limit,
    kept: bool,
) -> Int8:
    first, last = block.first, block.last
    end = chain.layers[last]
    out = np.empty((end.out_h, end.out_w, end.out_c), np.int8)
    # what is held whole: the block's input, unless it is streamed, its output, and tensors to be added later or here
    needed = {k for k in made if any(a.adds == k for at, a in enumerate(chain.layers) if at >= first)}
    if block.mode == "lines" and first == 0 and all(a.adds != 0 for a in chain.layers[last + 1 :]):
        needed.discard(0)
    loaded = first == 0 and block.mode != "lines" and any(layer.adds == 0 for layer in chain.layers)
    tally.offchip_bytes += made[0].size if loaded else 0  # it is in memory to be added, and read from there
    held = sum(made[k].size for k in needed | ({first} if first else set()))
    held += out.size if last < len(chain.layers) - 1 else 0
    if block.mode == "whole":
        p = end.padding
        out[:] = _layer(end, np.pad(made[first], ((p, p), (p, p), (0, 0))), weights[last], limit)
        if end.adds is not None:
            out[:] = _clip(out.astype(np.int64) + made[end.adds])
        tally.multiplications += out.size * end.per_value
        if first == 0 and not loaded:  # a kernel that keeps no lines reads them again for each line of its output
            tally.offchip_bytes += rows_made(chain, 0, 0, 1)[0] * end.in_w * end.in_c
        tally.peak_bytes = max(tally.peak_bytes, held)
        return out
    run: dict[str, Any] = {"limit": limit, "kept": kept, "loaded": loaded}
    if block.mode in ("lines", "mixed"):
        stream = _Stream(chain, block, made, weights, tally, axis=0, rows=None, top=0, **run)
        for y in range(end.out_h):
            out[y] = stream.slice_of(last, y)
        tally.peak_bytes = max(tally.peak_bytes, held + stream.values + stream.head_values)
        return out
    for y in range(0, end.out_h, block.tile):
        rows = tile_rows(chain, first, last, block.tile)
        stream = _Stream(chain, block, made, weights, tally, axis=1, rows=rows, top=y, **run)
        tile = np.stack([stream.slice_of(last, x) for x in range(end.out_w)], axis=1)
        out[y : y + block.tile] = tile[: end.out_h - y]
        tally.peak_bytes = max(tally.peak_bytes, held + stream.values)
    return out


class _Stream:
    """A block run slice by slice: columns of one tile of rows (axis 1), or whole lines (axis 0).

    Each layer holds the last `kernel` slices of its input; `values` is what all buffers hold.
    """

    def __init__(
        self,
        chain: LayerChain,
        block: Block,
        made: dict[int, Int8],
        weights: Sequence[Int8],
        tally: Tally,
        *,
        axis: int,
        rows: list[tuple[int, int]] | None,
        top: int,
        limit: Limit,
        kept: bool,
        loaded: bool,
    ) -> None:
        self.chain, self.block, self.made, self.weights, self.tally, self.axis = (
            chain,
            block,
            made,
            weights,
            tally,
            axis,
        )
        self.rings: dict[int, deque[Int8]] = {}
        self.next: dict[int, int] = {}
        self.tops: dict[int, int] = {}  # layer -> first row of its input in this tile; of the last one's output
        self.kept: dict[int, deque[tuple[int, Int8]]] = {}
        self.rows, self.limit = rows, limit
        self.values = 0
        self.weights_kept, self.input_loaded = kept, loaded
        self.tops[block.last + 1] = top
        self.head = block.split if block.split is not None else block.first - 1  # layers up to it run by rows
        self.head_values = 0
        for at in range(block.last, self.head, -1):
            layer = chain.layers[at]
            self.tops[at] = self.tops[at + 1] * layer.stride - layer.padding
            self.rings[at], self.next[at] = deque(maxlen=layer.kernel), -layer.padding
            if layer.adds is not None and layer.adds not in made and layer.adds not in self.kept:
                self.kept[layer.adds] = deque(maxlen=window(chain, layer.adds, at))
            if axis == 0 and layer.adds == block.first == 0 and 0 not in self.kept:
                self.kept[0] = deque(maxlen=window(chain, 0, at))
        for at, ring in self.rings.items():
            layer = chain.layers[at]
            assert ring.maxlen is not None
            if rows is not None:
                self.values += rows[at - block.first][0] * ring.maxlen * layer.in_c
            elif self.head >= block.first or not at == block.first > 0:
                self.values += ring.maxlen * layer.in_w * layer.in_c
            if axis == 1 and not kept:
                tally.offchip_bytes += layer.weights
        for adds, slices in self.kept.items():
            assert slices.maxlen is not None
            source = chain.layers[adds]
            at = max(k for k in range(adds, block.last + 1) if chain.layers[k].adds == adds)
            lines = source.in_w if rows is None else rows[at - block.first][1]
            self.values += lines * slices.maxlen * source.in_c

    def _rows_of(self, at: int, count: int) -> npt.NDArray[np.bool_]:
        """bool[count]: which rows of a tile of layer `at`'s input exist."""
        height = self.chain.layers[at].in_h if at < len(self.chain.layers) else self.chain.layers[-1].out_h
        rows = np.arange(self.tops[at], self.tops[at] + count)
        return (rows >= 0) & (rows < height)

    def _input(self, at: int, index: int) -> Int8:
        """Slice `index` of layer `at`'s input: int8[rows, c] of a column, int8[w, c] of a line; zeros beyond."""
        layer = self.chain.layers[at]
        size = layer.in_w if self.axis else layer.in_h
        shape = (self.rows[at - self.block.first][0] if self.rows else layer.in_w, layer.in_c)
        if not 0 <= index < size:
            return np.zeros(shape, np.int8)
        if at == self.head + 1 > self.block.first:
            values = self._row_of_head(index)
        elif at > self.block.first:
            values = self.slice_of(at - 1, index)
        elif self.axis == 0:
            values = self.made[at][index]
        else:
            values = np.zeros(shape, np.int8)
            there = self._rows_of(at, shape[0])
            values[there] = self.made[at][np.arange(self.tops[at], self.tops[at] + shape[0])[there], index]
        if at == self.block.first == 0 and not self.input_loaded:
            self.tally.offchip_bytes += values.size if self.axis == 0 else int(there.sum()) * layer.in_c
        if at in self.kept:
            self.kept[at].append((index, values))
        return values

    def _row_of_head(self, index: int) -> Int8:
        """Row `index` of the output of the layers that run by rows."""
        first, split = self.block.first, self.head
        head = Block(first, split, "rows", 1, 0, 0)
        rows = tile_rows(self.chain, first, split, 1)
        stream = _Stream(
            self.chain, head, self.made, self.weights, self.tally, axis=1, rows=rows, top=index, limit=self.limit,
            kept=self.weights_kept, loaded=self.input_loaded,
        )  # fmt: skip
        self.head_values = stream.values
        return np.stack([stream.slice_of(split, x)[0] for x in range(self.chain.layers[split].out_w)])

    def slice_of(self, at: int, index: int) -> Int8:
        """Slice `index` of layer `at`'s output; slices are asked for in order."""
        layer = self.chain.layers[at]
        ring = self.rings[at]
        while self.next[at] <= index * layer.stride - layer.padding + layer.kernel - 1:
            ring.append(self._input(at, self.next[at]))
            self.next[at] += 1
        stacked = np.stack(list(ring), axis=self.axis)
        if self.axis == 0:
            p = layer.padding
            out: Int8 = _layer(layer, np.pad(stacked, ((0, 0), (p, p), (0, 0))), self.weights[at], self.limit)[0]
        else:
            out = _layer(layer, stacked, self.weights[at], self.limit)[:, 0]
            there = self._rows_of(at + 1, len(out))
            out[~there] = 0
        if self.axis == 0 and not self.weights_kept:
            self.tally.offchip_bytes += layer.weights
        made = out.size if self.axis == 0 else int(there.sum()) * layer.out_c
        self.tally.multiplications += made * layer.per_value
        if layer.adds is not None:
            out = _clip(out.astype(np.int64) + self._kept(layer.adds, at, index, len(out)))
        return out

    def _kept(self, adds: int, at: int, index: int, count: int) -> Int8:
        if adds in self.made and adds not in self.kept:
            whole: Int8 = self.made[adds]
            if self.axis == 0:
                row: Int8 = whole[index]
                return row
            rows = np.arange(self.tops[at + 1], self.tops[at + 1] + count)
            there = (rows >= 0) & (rows < whole.shape[0])
            part = np.zeros((count, whole.shape[2]), np.int8)
            part[there] = whole[rows[there], index]
            return part
        part = next(values for k, values in self.kept[adds] if k == index)
        if self.axis == 0:
            return part
        start = self.tops[at + 1] - self.tops[adds]
        return part[start : start + count]


def random_weights(chain: LayerChain, seed: int) -> list[Int8]:
    """Draw int8 weights: [k, k, in, out] of a convolution, [k, k, c] of a depthwise one."""
    rng = np.random.default_rng(seed)
    weights = []
    for layer in chain.layers:
        shape = (layer.kernel, layer.kernel, layer.in_c, layer.out_c)[: 4 if layer.kind == "conv" else 3]
        weights.append(rng.integers(-60, 60, shape, np.int8))
    return weights
