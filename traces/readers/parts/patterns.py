"""Regular patterns of zeros in trained weights: N:M groups and blocks."""

from __future__ import annotations

import numpy as np

MOST_LOOKED_AT = 1 << 24  # places of a layer's dense form, a byte each
_GROUPS = ((1, 4), (2, 4), (2, 8), (4, 8))  # (most non-zeros, of so many), the stricter first
_BLOCKS = (64, 32, 16, 8, 4)
_FULL = 0.9  # share of a kept block that must be non-zero
_MIXED = 0.5  # share of groups that must use all they may, or another pattern is the better word


def zero_pattern(weights: np.ndarray) -> str:
    """Return what a weight tensor's zeros look like in words, '' where they follow no pattern known here.

    weights: [outputs, ...]; N:M groups are consecutive inputs (dimension 1; for convolutions at one tap), blocks are
    squares of outputs x inputs of the flattened tensor, or columns and rows of them.
    """
    kept = weights != 0
    density = float(kept.mean()) if kept.size else 1.0
    if not 0 < density < 0.95:
        return ""
    return _groups(kept) or _blocks(kept.reshape(len(kept), -1), density)


def _groups(kept: np.ndarray) -> str:
    rows = np.moveaxis(kept, 1, -1).reshape(-1, kept.shape[1])
    for most, of in _GROUPS:
        if rows.shape[1] % of == 0:
            counts = rows.reshape(-1, of).sum(axis=1)
            if counts.max() <= most and np.mean(counts == most) >= _MIXED and len(counts) >= 8:
                return f"{most}:{of} sparse: at most {most} of {of} consecutive inputs are not zero"
    return ""


def _blocks(kept: np.ndarray, density: float) -> str:
    shapes = [(side, side) for side in _BLOCKS] + [(1, side) for side in _BLOCKS] + [(side, 1) for side in _BLOCKS]
    for tall, wide in shapes:
        n_rows, n_columns = kept.shape[0] // tall, kept.shape[1] // wide
        if kept.shape[0] % tall or kept.shape[1] % wide or n_rows * n_columns < 4:
            continue
        fill = kept.reshape(n_rows, tall, n_columns, wide).mean(axis=(1, 3))
        held = fill > 0
        if held.mean() <= 0.95 and fill[held].mean() >= _FULL and held.mean() < 2 * density:
            return f"block-sparse: blocks of {tall} x {wide}, {held.mean():.0%} of them kept"
    return ""
