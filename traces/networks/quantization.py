"""From real weights and values to 8 bits: int8 weights with one scale per target, uint8 values with one per neuron."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.networks.network import Network, weights_of

Float32 = npt.NDArray[np.float32]
Ids = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Quantized:
    """real value = (u - zero) * scale; real sum = sum * sum_scale; u = round(sum * multiplier) + zero.

    weights: int8[W]. scale, sum_scale, multiplier: float32[N]. zero, start: int32[N].
    """

    weights: npt.NDArray[np.int8]
    scale: Float32
    zero: npt.NDArray[np.int32]
    sum_scale: Float32
    start: npt.NDArray[np.int32]
    multiplier: Float32


def quantize(network: Network, sources: Ids, targets: Ids, weights: Float32, values: Float32) -> Quantized:
    """Return the 8-bit form of a network whose neurons hold `values` (float32[B, N]) on inputs that are typical.

    sources, targets: int[W] neurons of the connections, weights: float32[W], in any order, which is that of
    the result's weights.

    A neuron that is never negative gets 0 to 255 for 0 to its largest value, others 1 to 255 around 128. Weights times
    their source's scale are divided by the largest into a target, which becomes 127.
    """
    for name in network.used_activations:
        if name not in ("identity", "relu"):
            why = "adds its bias after the sum" if name == "clipped-relu" else "is computed in float32"
            raise InputError(f"int8 knows the activations identity and relu; {name} {why}")
    for k in np.flatnonzero(~np.isfinite(values).all(axis=0))[:1].tolist():
        raise InputError(f"neuron {k} holds no finite number on the calibration inputs: use float32, or other inputs")
    biases = np.zeros(network.n_neurons, np.float32) if network.biases is None else network.biases
    low, high = values.min(axis=0, initial=0.0), values.max(axis=0, initial=0.0)
    whole = (values == np.rint(values)).all(axis=0) & (high.astype(np.float64) - low <= 255)
    most = np.maximum(-low, high).astype(np.float64)
    scale = _float32(np.where(whole, 1.0, most / np.where(low < 0, 127, 255)))
    scale[most == 0] = scale[most > 0].min(initial=1.0)  # silent neurons must not decide the scale of their targets
    zero = np.where(whole, -low, np.where(low < 0, 128, 0)).astype(np.int32)

    taken = weights.astype(np.float64) * scale[sources]
    largest = np.zeros(network.n_neurons)
    np.maximum.at(largest, targets, np.abs(taken))
    fits = np.ones(network.n_neurons, bool)
    np.logical_and.at(fits, targets, taken == np.rint(taken))
    fits &= (largest <= 127) & (biases == np.rint(biases))
    sum_scale = _float32(np.where(fits | (largest == 0), 1.0, largest / 127))
    steps = np.rint(taken / sum_scale[targets]).astype(np.int64)

    offset = np.zeros(network.n_neurons, np.int64)
    np.add.at(offset, targets, steps * zero[sources])
    reach = np.zeros(network.n_neurons, np.int64)
    np.add.at(reach, targets, np.abs(steps) * 255)
    bias = np.rint(biases / sum_scale.astype(np.float64))
    beyond = np.flatnonzero(np.abs(bias) + np.abs(offset) + reach >= 2**31)
    if beyond.size:
        raise InputError(f"neuron {beyond[0]}: its sum of 8-bit products may leave 32 bits; use float32 or bf16")
    multiplier = _float32(sum_scale.astype(np.float64) / scale)
    start = (bias - offset).astype(np.int32)
    return Quantized(steps.astype(np.int8), scale, zero, sum_scale, start, multiplier)


def _float32(scales: npt.NDArray[np.float64]) -> Float32:
    limits = np.finfo(np.float32)
    for k in np.flatnonzero(scales > limits.max)[:1].tolist():
        raise InputError(f"neuron {k}: its sums are too large beside its values for 8 bits; use float32 or bf16")
    return np.maximum(scales, limits.tiny).astype(np.float32)


def to_bytes(values: npt.NDArray[np.generic], scale: Float32, zero: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Return uint8 of the same shape: values rounded half to even and clamped; the last axis is that of the scales."""
    steps = np.rint(np.asarray(values, np.float64) / scale) + zero
    return np.clip(steps, 0, 255).astype(np.uint8)


_KEPT: WeakKeyDictionary[Network, Quantized] = WeakKeyDictionary()


def quantized_network(network: Network, inputs: Float32) -> Quantized:
    """Return the 8-bit form by what neurons hold on the network's batch, or where it has none on `inputs`,
    float32[B, I]; weights as the network numbers its connections."""
    found = _KEPT.get(network)
    if found is None:
        weights = weights_of(network, "8-bit values")
        values = forward(network, None if network.batch is not None else inputs)
        found = quantize(network, network.sources, network.targets, weights, values)
        if network.batch is not None:  # else it depends on the inputs
            _KEPT[network] = found
    return found
