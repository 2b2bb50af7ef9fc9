"""Inversion flags inside a burst, as slowly and plainly as possible: from the texts of the cells to levels on wires."""

from itertools import product


def wires(cells, blocks, data, flags, metadata):
    """Levels [beat][wire] of one burst. cells: texts for four beats each. data: bits. flags: 0 or 1 each."""
    shares = len(data) // len(flags) if flags else 0
    bits = {
        "D": [bit ^ (flags[k // shares] if flags else 0) for k, bit in enumerate(data)],
        "M": [metadata >> k & 1 for k in range(4 * sum(row.split().count("M") for row in cells))] * blocks,
        "I": list(flags),
    }
    levels = []
    for _ in range(blocks):
        for row in cells:
            beats = [[], [], [], []]
            for kind in row.split():
                for beat in beats:
                    beat.append(bits[kind].pop(0))
            levels += beats
    return levels


def cost(levels, before, one, zero, edge):
    """Of all wires of a burst, from what they carried before it."""
    total = 0
    for beat in levels:
        total += sum(one if level else zero for level in beat)
        total += edge * sum(a != b for a, b in zip(before, beat, strict=True))
        before = beat
    return total


def cheapest(cells, blocks, data, n_flags, metadata, before, one, zero, edge):
    """Least cost over all flags; of equal ones the first in the order of counting up."""
    choices = product((0, 1), repeat=n_flags)
    return min(choices, key=lambda f: cost(wires(cells, blocks, data, f, metadata), before, one, zero, edge))
