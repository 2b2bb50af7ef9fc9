"""How the public optimiser msf-CNN (arXiv 2505.11483, commit fd74a7c) counts a fused block: to compare with it.

It differs from ours in two places. Rows of a layer's buffer are those of the last tile that lies whole inside the
input, with padding added where the tile touches a border by its reckoning of positions (its own note says that this may
be wrong in some cases). And the tiles that a layer computes are counted without the padding of the layers before, so
that tiles at a border are left out: fewer multiplications than a run needs.
"""

from __future__ import annotations

from reorder.operators.patches.blocks import Block
from reorder.operators.patches.chain import LayerChain


def make_block(chain: LayerChain, first: int, last: int) -> Block | None:
    """Return layers first to last as a block, one row of output at a time; None where a tile does not fit its input."""
    layers = chain.layers[first : last + 1]
    memory = layers[0].in_values if first else 0
    memory += layers[-1].out_values if last < len(chain.layers) - 1 else 0
    if first == last:
        return Block(first, last, "whole", layers[0].out_h, memory, layers[0].out_values * layers[0].per_value)
    if any(layer.adds is not None for layer in layers):
        return None  # it knows no residual additions
    tile, step = 1, 1
    for layer in reversed(layers):
        tile, step = (tile - 1) * layer.stride + layer.kernel, step * layer.stride
    if tile > min(layers[0].in_h, layers[0].in_w):
        return None
    work, rows, pitch = 0, tile, step
    for layer in layers:
        tiles = (layer.in_h + 2 * layer.padding - rows) // pitch + 1
        rows, pitch = (rows - layer.kernel) // layer.stride + 1, pitch // layer.stride
        work += tiles * rows * layer.out_w * layer.out_c * layer.per_value
    top, rows, passed = (layers[0].in_h - tile) // step * step, tile, 1
    for layer in layers:
        memory += layer.kernel * rows * layer.in_c
        passed *= layer.stride
        at = top // passed
        rows += layer.padding * ((at == 0) + (at + rows >= layer.in_h)) - layer.kernel
        rows = rows // layer.stride + 1
    return Block(first, last, "rows", 1, memory, work)
