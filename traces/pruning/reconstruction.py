"""Weights of a pruned network that bring back what its layers computed before: least squares on calibration inputs.

Layer by layer, on what the pruned layers before it give: which weights go is decided in rounds, those first whose
removal costs the least squared error once the others have adapted (optimal brain surgeon, Hassibi and Stork 1993:
w^2 / [H^-1] of a weight, H the inputs' second moments, here exact for each output's own set of weights).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.pruning.selection import Mask

Floats = npt.NDArray[np.float64]
Activation = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
RIDGE = 1e-4  # of the mean second moment of an input: keeps inputs that are nearly alike from large opposite weights


@dataclass(frozen=True, eq=False)
class Reconstructed:
    """weights: float64[outputs, inputs], 0 outside the mask; biases: float64[outputs]; mask; errors: of each layer.

    An error is the root of the mean over outputs of squared error / variance, each output alike, on what the layer
    computes before its activation.
    """

    weights: list[Floats]
    biases: list[Floats]
    masks: list[Mask]
    errors: list[float]


def importances(
    weights: Sequence[Floats], biases: Sequence[Floats], inputs: Floats, activations: Sequence[Activation]
) -> list[Floats]:
    """Return the share that each connection has in the variance of the outputs: [outputs, inputs] of each layer.

    Each output counts alike: one of them may hold nearly all of the plain variance.
    """
    values, shares = inputs, []
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        share = w**2 * values.var(axis=0)
        shares.append(share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300))
        values = activations[k](values @ w.T + b)
    of_output = np.ones(len(shares[-1]))
    for share in reversed(shares):
        share *= of_output[:, None]
        of_output = share.sum(axis=0)
    return shares


def losses(
    weights: Sequence[Floats], biases: Sequence[Floats], inputs: Floats, activations: Sequence[Activation]
) -> list[Floats]:
    """Return what the removal of each connection alone costs once the others have adapted: [outputs, inputs] of each
    layer, shares of the outputs' variance. Connections that bring others' news cost less than their importance."""
    shares, made = importances(weights, biases, inputs, activations), []
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        target = inputs @ w.T + b
        made.append(_Layer(inputs, target, shares[k].sum(axis=1)).solved(w != 0)[1])
        inputs = activations[k](target)
    return made


def alike(error: Floats, truth: Floats) -> float:
    """Return the root of the mean over columns of squared error / variance; columns that never change do not count."""
    variance = truth.var(axis=0)
    there = variance > 1e-12 * max(float(variance.max(initial=0)), 1e-300)
    return float(np.sqrt(((error[:, there] ** 2).mean(axis=0) / variance[there]).mean())) if there.any() else 0.0


def reconstruct(
    weights: Sequence[Floats],
    biases: Sequence[Floats],
    inputs: Floats,
    allowed: Sequence[Mask],
    counts: Sequence[int],
    *,
    activations: Sequence[Activation],
    rounds: int = 4,
) -> Reconstructed:
    """Prune each layer to so many of the connections allowed, and fit what stays to the layer's former outputs.

    inputs: float64[B, inputs], calibration vectors. activations: of each layer's sums. rounds: steps from what is
    allowed to `counts`, each with new weights. An output whose old weights in the mask do as well keeps them: nothing
    is fitted where nothing was pruned. O(rounds x sum over outputs of n^3) for n weights each.
    """
    shares = importances(weights, biases, inputs, activations)
    before, now, made = inputs, inputs, Reconstructed([], [], [], [])
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        target = before @ w.T + b
        layer = _Layer(now, target, shares[k].sum(axis=1))
        fitted = layer.better_of(w, layer.pruned(allowed[k], counts[k], rounds), now, target)
        now = now @ fitted[0].T + fitted[1]
        made.weights.append(fitted[0])
        made.biases.append(fitted[1])
        made.masks.append(fitted[0] != 0)
        made.errors.append(alike(now - target, target))
        before, now = activations[k](target), activations[k](now)
    return made


class _Layer:
    """Least squares of one layer. importance: float64[outputs], of each output's relative error."""

    def __init__(self, inputs: Floats, target: Floats, importance: Floats) -> None:
        self.mean, self.to = inputs.mean(axis=0), target.mean(axis=0)
        centred = inputs - self.mean
        self.moments = centred.T @ centred
        self.moments[np.diag_indices_from(self.moments)] += RIDGE * np.trace(self.moments) / len(self.moments) + 1e-12
        self.products = centred.T @ (target - self.to)
        self.scale = importance / np.maximum(((target - self.to) ** 2).sum(axis=0), 1e-300)

    def pruned(self, mask: Mask, count: int, rounds: int) -> tuple[Floats, Floats]:
        """Return weights, `count` of them not 0, and biases."""
        start = int(mask.sum())
        count = min(count, start)
        for step in range(rounds):
            keep = round(start * (count / max(start, 1)) ** ((step + 1) / rounds))
            if keep < mask.sum():
                loss = self.solved(mask)[1]
                at = np.flatnonzero(mask)
                best = np.argmax(loss, axis=1)  # every output keeps an input, every input in use an output
                loss[np.arange(len(loss)), best] = np.where(mask.any(axis=1), np.inf, 0)
                used = np.flatnonzero(mask.any(axis=0))
                loss[np.argmax(loss[:, used], axis=0), used] = np.inf
                mask = np.zeros_like(mask)
                mask.ravel()[at[np.argsort(-loss.ravel()[at], kind="stable")[:keep]]] = True
        weights = self.solved(mask)[0]
        return weights, self.to - weights @ self.mean

    def better_of(
        self, old: Floats, fitted: tuple[Floats, Floats], inputs: Floats, target: Floats
    ) -> tuple[Floats, Floats]:
        """Return fitted weights and biases, of outputs whose old weights at the same places do as well those."""
        weights, biases = fitted
        kept = np.where((weights != 0) & (old == 0), 1e-30, old * (weights != 0))
        kept_biases = self.to - kept @ self.mean
        now, then = (
            ((inputs @ w.T + b - target) ** 2).sum(axis=0) for w, b in ((weights, biases), (kept, kept_biases))
        )
        same = then <= now
        return np.where(same[:, None], kept, weights), np.where(same, kept_biases, biases)

    def solved(self, mask: Mask) -> tuple[Floats, Floats]:
        """Return the best weights in a mask, and what the removal of each costs; both [outputs, inputs]."""
        from scipy.linalg import cho_factor, cho_solve
        from scipy.linalg.lapack import dpotri

        weights, loss = np.zeros(mask.shape), np.zeros(mask.shape)
        same: dict[bytes, list[int]] = {}
        for row, bits in enumerate(np.packbits(mask, axis=1)):
            same.setdefault(bits.tobytes(), []).append(row)
        for alike_rows in same.values():
            rows = np.array(alike_rows)
            on = np.flatnonzero(mask[rows[0]])
            if not len(on):
                continue
            factor = cho_factor(self.moments[np.ix_(on, on)], lower=True, check_finite=False)
            fitted = cho_solve(factor, self.products[np.ix_(on, rows)], check_finite=False).T
            inverse = np.diag(dpotri(factor[0], lower=1)[0])
            weights[np.ix_(rows, on)] = np.where(fitted == 0, 1e-30, fitted)
            loss[np.ix_(rows, on)] = fitted**2 / inverse * self.scale[rows, None]
        return weights, loss


def refined(
    made: Reconstructed,
    inputs: Floats,
    outputs: Floats,
    *,
    activations: Sequence[Activation],
    steps: int,
    seed: int = 0,
) -> Reconstructed:
    """Return the weights after `steps` of Adam on all layers together, for the outputs' relative squared error.

    outputs: float64[B, outputs], what the network computed before. A step takes `_BATCH` vectors; the rate falls as a
    cosine; slopes are differences over 2 `_STEP`. O(steps x _BATCH x weights).
    """
    rng = np.random.default_rng(seed)
    masks = [mask.astype(np.float32) for mask in made.masks]
    parameters = [np.array(each, np.float32) for each in (*made.weights, *made.biases)]
    n, moments = len(masks), [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
    x, y = inputs.astype(np.float32), outputs.astype(np.float32)
    scale = (1 / np.maximum(y.var(axis=0), 1e-12 * float(y.var(axis=0).max()) + 1e-30)).astype(np.float32)
    for step in range(1, steps + 1):
        rows = rng.integers(0, len(x), min(_BATCH, len(x)))
        sums: list[npt.NDArray[Any]] = []
        values: list[npt.NDArray[Any]] = [x[rows]]
        for k in range(n):
            sums.append(values[-1] @ parameters[k].T + parameters[n + k])
            values.append(activations[k](sums[-1]))
        delta = (values[-1] - y[rows]) * (scale * np.float32(2 / len(rows) / len(scale)))
        gradients: list[npt.NDArray[np.float32]] = [delta] * (2 * n)
        for k in range(n - 1, -1, -1):
            delta = delta * (activations[k](sums[k] + _STEP) - activations[k](sums[k] - _STEP)) / (2 * _STEP)
            gradients[k], gradients[n + k] = delta.T @ values[k] * masks[k], delta.sum(axis=0)
            if k:
                delta = delta @ parameters[k]
        now = 1e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
        for p, g, (m, v) in zip(parameters, gradients, moments, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= (now / (1 - 0.9**step)) * m / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    doubles = [p.astype(np.float64) for p in parameters]
    return Reconstructed(doubles[:n], doubles[n:], made.masks, made.errors)


_BATCH, _STEP = 256, np.float32(2**-10)
