"""The off-chip transfers of a plan, in the order in which a run makes them."""

from __future__ import annotations

from collections.abc import Iterator

from reorder.operators.patches.blocks import Block
from reorder.operators.patches.chain import LayerChain
from reorder.operators.patches.front import PatchPlan

INPUT, OUTPUT = -1, -2
Transfer = tuple[int, int, int]  # layer whose weights they are, INPUT or OUTPUT; first byte; bytes


def transfers(chain: LayerChain, plan: PatchPlan, *, weight_buffer: int = 0) -> Iterator[Transfer]:
    """Yield every transfer; their sizes add up to `plan.offchip_bytes` but for lines that no tile asks for."""
    for block in plan.blocks:
        yield from _Block(chain, block, weight_buffer).run()


class _Block:
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
