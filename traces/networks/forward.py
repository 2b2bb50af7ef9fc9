"""The forward pass: what every neuron holds, for payloads on the wires and for validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.network import ACTIVATIONS, Network, weights_of

# Bias of every neuron by layer width, from the challenge's public reference program (reference/radixnet/README.md).
BIASES = {1024: -0.3, 4096: -0.35, 16384: -0.4, 65536: -0.45}


def default_bias(width: int) -> float:
    """Return the challenge's bias for a layer width; -0.3 for widths it does not have."""
    return BIASES.get(width, -0.3)


SLOPE = np.float32(0.01)  # of leaky-relu where a network has none of its own
SMOOTH: Mapping[str, Callable[..., npt.NDArray[Any]]] = {
    "leaky-relu": lambda z, slope=SLOPE: np.where(z < 0, slope * z, z),
    "tanh": np.tanh,
    "sigmoid": lambda z: 0.5 * (np.tanh(0.5 * z) + 1),
    "silu": lambda z: z * 0.5 * (np.tanh(0.5 * z) + 1),
    "gelu": lambda z: 0.5 * z * (1 + np.vectorize(math.erf, otypes=[np.float64])(z / math.sqrt(2))),
    "hard-swish": lambda z: z * np.clip(z / 6 + 0.5, 0, 1),
    "relu6": lambda z: np.clip(z, 0, 6),
}  # of float64; the others follow from sums alone

CLIP = 32.0  # the Graph Challenge's upper limit of an activation
_SLICE = 1 << 22  # products held at a time: bounds the memory of wide layers and large batches


def forward(
    network: Network, batch: npt.ArrayLike | None = None, *, dtype: npt.DTypeLike = np.float32
) -> npt.NDArray[Any]:
    """Return the activations of all neurons, `dtype`[B, N], for float[B, I] inputs (None: the network's own batch).

    Sums are float64, in the stored order (pairwise), rounded once to `dtype`, behind the bias and the activation; with
    ``dtype=np.int64`` all is exact integer arithmetic. Outputs stay linear but under clipped-relu, which
    adds the bias only where a sum is not zero and clips to [0, 32]. Neurons without incoming connections hold their
    input, or what their activation makes of their bias.

    O(B * W) time, O(B * N) memory. Raises InputError without weights or inputs, or where integers would overflow.
    """
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64, np.int64):
        raise InputError(f"a forward pass runs in float32, float64 or int64, not {kind}")
    if kind == np.int64 and (smooth := [name for name in network.used_activations if name in SMOOTH]):
        raise InputError(f"{network.name}: {smooth[0]} gives no whole numbers: a pass in int64 needs relu")
    given = weights_of(network, "a forward pass")
    inputs = _inputs(network, batch)
    sum_kind = np.dtype(np.int64) if kind == np.int64 else np.dtype(np.float64)
    weights = _converted(given, sum_kind, "weights")
    biases = np.zeros(network.n_neurons) if network.biases is None else network.biases
    biases = _converted(biases, sum_kind, "biases")

    values = np.zeros((len(inputs), network.n_neurons), kind)
    values[:] = start_values(network, biases)
    values[:, network.inputs] = _converted(inputs, kind, "batch")

    # Connections by (depth of target, target): each depth is one slice whose sources are all done.
    rank = np.empty(network.n_neurons, np.int64)
    by_depth = np.lexsort((np.arange(network.n_neurons), network.depth))
    rank[by_depth] = np.arange(network.n_neurons)
    edges = np.argsort(rank[network.targets], kind="stable")
    sources, weights = network.sources[edges], weights[edges]
    starts = np.concatenate(([0], np.cumsum(network.in_degree[by_depth])))
    levels = np.searchsorted(network.depth[by_depth], np.arange(network.depth.max() + 2))
    for first, last in zip(levels[1:-1].tolist(), levels[2:].tolist(), strict=True):
        targets = by_depth[first:last]
        begin, end = int(starts[first]), int(starts[last])
        segments = starts[first:last] - begin
        rows = max(1, _SLICE // (end - begin))
        for row in range(0, len(values), rows):
            part = slice(row, row + rows)
            products = values[part].take(sources[begin:end], axis=1) * weights[begin:end]
            sums = np.add.reduceat(products, segments, axis=1)
            if kind == np.int64:
                _check_overflow(values[part], sources[begin:end], weights[begin:end], segments, biases[targets])
            with np.errstate(over="ignore"):  # refused below
                values[part, targets] = _activate(sums, biases[targets], network, targets)
    if kind.kind == "f" and not np.isfinite(values).all():
        neuron = int(np.argwhere(~np.isfinite(values))[0][1])
        raise InputError(f"the activation of neuron {neuron} is beyond the range of {kind}: scale the weights down")
    return values


def _activate(
    sums: npt.NDArray[Any], biases: npt.NDArray[Any], network: Network, targets: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    if network.activation == "clipped-relu":
        return np.where(sums == 0, 0, np.clip(sums + biases, 0, CLIP).astype(sums.dtype))
    sums = sums + biases
    return activated(sums, network.codes[targets], _at(network.slopes, targets))


def start_values(network: Network, biases: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """Return what neurons hold before anything is computed: their bias, behind the activation where nothing comes in.
    biases: of any type, [N]; None: the network's, float32. clipped-relu adds a bias to sums alone that are not 0."""
    held = network.biases if biases is None else biases
    held = np.zeros(network.n_neurons, np.float32) if held is None else held.copy()
    unfed = network.in_degree == 0
    if network.activation == "clipped-relu":
        held[unfed] = 0
    else:
        held[unfed] = activated(held[unfed], network.codes[unfed], _at(network.slopes, unfed))
    return held


def _at(slopes: npt.NDArray[np.float32] | None, neurons: npt.NDArray[Any]) -> npt.NDArray[np.float32] | None:
    return None if slopes is None else slopes[neurons]


def activated(
    sums: npt.NDArray[Any], codes: npt.NDArray[np.uint8], slopes: npt.NDArray[np.float32] | None
) -> npt.NDArray[Any]:
    """Return sums[..., n], changed in place, behind the activations (codes uint8[n], slopes float32[n] or None) of n
    neurons; clipped-relu needs more than these."""
    for code in np.unique(codes).tolist():
        at, name = codes == code, ACTIVATIONS[code]
        if name == "relu":
            np.maximum(sums, 0, out=sums, where=at)
        elif name == "leaky-relu" and slopes is not None:
            sums[..., at] = SMOOTH[name](sums[..., at], slopes[at])
        elif name != "identity":
            sums[..., at] = SMOOTH[name](sums[..., at])
    return sums


def _inputs(network: Network, batch: npt.ArrayLike | None) -> npt.NDArray[Any]:
    given = network.batch if batch is None else np.asarray(batch)
    if given is None:
        raise InputError(f"{network.name} carries no inputs: give a batch of shape (B, {len(network.inputs)})")
    if given.ndim != 2 or given.shape[1] != len(network.inputs):
        raise InputError(f"batch has shape {given.shape}, expected (B, {len(network.inputs)}): one column per input")
    if not np.isfinite(given).all():
        raise InputError("batch holds a value that is not finite")
    return given


def _converted(values: npt.NDArray[Any], kind: np.dtype[Any], what: str) -> npt.NDArray[Any]:
    if kind == np.int64 and not np.array_equal(values, np.rint(values)):
        raise InputError(f"{what} must be whole numbers for an exact integer pass")
    return values.astype(kind)


def _check_overflow(
    values: npt.NDArray[Any],
    sources: npt.NDArray[np.int64],
    weights: npt.NDArray[Any],
    segments: npt.NDArray[np.int64],
    biases: npt.NDArray[Any],
) -> None:
    """Refuse sums that could leave int64, judged by the sum of magnitudes in float64 (half the range as a margin)."""
    magnitude = np.abs(values.astype(np.float64)).take(sources, axis=1) * np.abs(weights.astype(np.float64))
    if (np.add.reduceat(magnitude, segments, axis=1) + np.abs(biases)).max(initial=0.0) >= 2.0**62:
        raise InputError("the exact integer pass would leave 64 bits: use smaller weights or inputs")
