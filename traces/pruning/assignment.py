"""Where each neuron of a trained network stands, so that windows keep the most of what matters.

Neurons of a layer change places without any change of what the network computes, as long as their weights go along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from traces.pruning.windows import Windows

MOST = 4096
"""Neurons of a layer that is arranged: linear assignment takes O(n^3)."""
_ENOUGH = 1e-3  # a round that keeps less than this share more is the last


def arranged(
    windows: Windows, scores: Sequence[npt.NDArray[np.floating]], *, seed: int = 0, rounds: int = 10
) -> tuple[Windows, float]:
    """Return the windows with neurons at other positions, and the share of all scores that they allow.

    Each layer in turn is assigned to positions, the others kept (Jonker and Volgenant's linear assignment, as in
    SciPy), until the share stands still. scores: [outputs, inputs] of each layer, at least 0. Starts at random
    positions; a layer of more than `MOST` neurons stays there.
    """
    from scipy.optimize import linear_sum_assignment

    widths, rng = windows.widths, np.random.default_rng(seed)
    total = sum(float(score.sum()) for score in scores) or 1.0
    fixed = replace(windows, positions=tuple(np.arange(n) for n in widths))
    allowed = [mask.astype(np.float32) for mask in fixed.allowed()]  # by position
    positions = [rng.permutation(n) for n in widths]
    kept = 0.0
    for _ in range(rounds):
        before, kept = kept, 0.0
        for layer in [*range(1, len(widths), 2), *range(0, len(widths), 2)]:  # neighbours of a layer stand still
            if widths[layer] > MOST:
                continue
            gain = np.zeros((widths[layer], widths[layer]), np.float32)  # of a neuron at a position
            if layer > 0:
                gain += scores[layer - 1][:, np.argsort(positions[layer - 1])] @ allowed[layer - 1].T
            if layer < len(widths) - 1:
                gain += scores[layer][np.argsort(positions[layer + 1])].T @ allowed[layer]
            positions[layer] = linear_sum_assignment(gain, maximize=True)[1]
        placed = replace(windows, positions=tuple(positions))
        kept = share_kept(placed, scores) / total
        if kept < before + _ENOUGH:
            break
    return placed, kept


def share_kept(windows: Windows, scores: Sequence[npt.NDArray[np.floating]]) -> float:
    """Return the sum of the scores of what windows allow."""
    return float(sum(score[windows.pairs(k)].sum() for k, score in enumerate(scores)))


def strongest(scores: Sequence[npt.NDArray[np.floating]], counts: Sequence[int]) -> list[npt.NDArray[np.floating]]:
    """Return scores of which only the largest stay, so many in each layer; others are 0."""
    kept = []
    for score, count in zip(scores, counts, strict=True):
        if 0 < count < score.size:
            score = np.where(score >= np.partition(score.ravel(), -count)[-count], score, 0)
        kept.append(score)
    return kept
