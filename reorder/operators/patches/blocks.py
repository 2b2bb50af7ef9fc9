"""Blocks of layers that run together, and what each takes: memory, multiplications, off-chip bytes.

A block of one layer runs whole. A longer block is *fused* in one of three ways:

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

from dataclasses import dataclass, replace

from reorder.operators.patches.chain import LayerChain


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
