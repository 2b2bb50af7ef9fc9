"""From real weights and values to 8 bits: int8 weights with one scale per target, uint8 values with one per neuron."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import cython_ext.inference.runs as kernel
from cython_ext.streams.streams import int8_stream
from hwmodel.processor.arena import Arena
from hwmodel.processor.work import OrderedWork, in_units
from traces.base.errors import InputError

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Quantized:
    """real value = (u - zero) * scale; real sum = sum * sum_scale; u = round(sum * multiplier) + zero.

    weights: int8[W] in processing order. scale, sum_scale, multiplier: float32[N]. zero, start: int32[N].
    """

    weights: npt.NDArray[np.int8]
    scale: Float32
    zero: npt.NDArray[np.int32]
    sum_scale: Float32
    start: npt.NDArray[np.int32]
    multiplier: Float32


def quantize(work: OrderedWork, values: Float32) -> Quantized:
    """Return the 8-bit form of a network whose neurons hold `values` (float32[B, N]) on inputs that are typical.

    A neuron that is never negative gets 0 to 255 for 0 to its largest value, others 1 to 255 around 128. Weights are
    taken times their source's scale, so each source has a scale of its own, and divided by the largest into a target,
    which becomes 127. Whole numbers over a range of at most 255, and whole weights up to 127, are kept as they are, so
    integer networks stay exact. The bias and the sources' zero points go into the integer that a sum starts from.
    Raises InputError for values that are not finite, for sums beyond 32 bits, for scales beyond float32, and for
    clipped-relu, whose bias depends on the sum.
    """
    network = work.network
    if network.activation == "clipped-relu":
        raise InputError("int8 knows the activations identity and relu; clipped-relu adds its bias after the sum")
    for k in np.flatnonzero(~np.isfinite(values).all(axis=0))[:1].tolist():
        raise InputError(f"neuron {k} holds no finite number on the calibration inputs: use float32, or other inputs")
    low, high = values.min(axis=0, initial=0.0), values.max(axis=0, initial=0.0)
    whole = (values == np.rint(values)).all(axis=0) & (high.astype(np.float64) - low <= 255)
    most = np.maximum(-low, high).astype(np.float64)
    scale = _float32(np.where(whole, 1.0, most / np.where(low < 0, 127, 255)))
    scale[most == 0] = scale[most > 0].min(initial=1.0)  # silent neurons must not decide the scale of their targets
    zero = np.where(whole, -low, np.where(low < 0, 128, 0)).astype(np.int32)

    taken = work.weights.astype(np.float64) * scale[work.sources]
    largest = np.zeros(network.n_neurons)
    np.maximum.at(largest, work.targets, np.abs(taken))
    fits = np.ones(network.n_neurons, bool)
    np.logical_and.at(fits, work.targets, taken == np.rint(taken))
    fits &= (largest <= 127) & (work.biases == np.rint(work.biases))
    sum_scale = _float32(np.where(fits | (largest == 0), 1.0, largest / 127))
    weights = np.rint(taken / sum_scale[work.targets]).astype(np.int64)

    offset = np.zeros(network.n_neurons, np.int64)
    np.add.at(offset, work.targets, weights * zero[work.sources])
    reach = np.zeros(network.n_neurons, np.int64)
    np.add.at(reach, work.targets, np.abs(weights) * 255)
    bias = np.rint(work.biases / sum_scale.astype(np.float64))
    beyond = np.flatnonzero(np.abs(bias) + np.abs(offset) + reach >= 2**31)
    if beyond.size:
        raise InputError(f"neuron {beyond[0]}: its sum of 8-bit products may leave 32 bits; use float32 or bf16")
    multiplier = _float32(sum_scale.astype(np.float64) / scale)
    start = (bias - offset).astype(np.int32)
    return Quantized(weights.astype(np.int8), scale, zero, sum_scale, start, multiplier)


def _float32(scales: npt.NDArray[np.float64]) -> Float32:
    limits = np.finfo(np.float32)
    for k in np.flatnonzero(scales > limits.max)[:1].tolist():
        raise InputError(f"neuron {k}: its sums are too large beside its values for 8 bits; use float32 or bf16")
    return np.maximum(scales, limits.tiny).astype(np.float32)


def to_bytes(values: npt.NDArray[np.generic], scale: Float32, zero: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Return uint8 of the same shape: values rounded half to even and clamped; the last axis is that of the scales."""
    steps = np.rint(np.asarray(values, np.float64) / scale) + zero
    return np.clip(steps, 0, 255).astype(np.uint8)


Ids = npt.NDArray[np.int64]


class IntegerLayout:
    """Where a quantized network's values are. row: int64[N] rows of `columns` bytes in the arena, n_rows of them.

    Targets of several runs, and outputs, also have a row of 32-bit sums, behind all rows of bytes. out: the neurons
    that go out of a pass; sums_at, sum_scales: where the sums of those that have them are, in bytes, and their scales.
    """

    def __init__(self, work: OrderedWork, quantized: Quantized, row: Ids, n_rows: int, columns: int, out: Ids) -> None:
        self._work, self.quantized, self._row, self._columns = work, quantized, row, columns
        network = work.network
        self._inputs = network.inputs[work.fed_inputs]
        runs = np.bincount(work.targets[work.starts[:-1]], minlength=network.n_neurons)
        needed = np.flatnonzero((runs > 1) | ((network.in_degree > 0) & network.is_output))
        self._sum_row = np.full(network.n_neurons, -1, np.int64)
        self._sum_row[needed] = np.arange(len(needed))
        self._begin = n_rows * columns
        self.sum_bytes = len(needed) * columns * 4
        summed = network.is_output[out] & (network.in_degree[out] > 0)
        self._rest = None if summed.all() else (summed, out[~summed])
        self.sums_at: Ids = self._begin + self._sum_row[out[summed]] * (4 * columns)
        self.sum_scales: npt.NDArray[np.float64] = quantized.sum_scale[out[summed]].astype(np.float64)

    def stream(
        self, place: npt.NDArray[np.uint32], table_place: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint32], Ids]:
        """Return the words of the stream and the first word of each run."""
        work, quantized, network = self._work, self.quantized, self._work.network
        sums = self._begin + self._sum_row * (4 * self._columns)
        words, first = int8_stream(
            work.sources, work.targets, quantized.weights, work.starts, place, in_units(sums // kernel.UNIT_BYTES),
            quantized.start, quantized.multiplier, quantized.zero, work.activation, network.is_output.view(np.uint8),
            network.in_degree, work.outside.view(np.uint8), table_place,
        )  # fmt: skip
        return words, first

    def steps(self, ids: Ids, values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
        """Return what neurons hold in steps of their scales; the last axis of values is that of the neurons."""
        return to_bytes(values, self.quantized.scale[ids], self.quantized.zero[ids])

    def values(self, ids: Ids, steps: npt.NDArray[np.uint8]) -> Float32:
        """Return float32[len(ids), B] of steps uint8[len(ids), B]."""
        quantized = self.quantized
        real: Float32 = (steps.astype(np.float32) - quantized.zero[ids, None]) * quantized.scale[ids, None]
        return real

    def write_inputs(self, table: int, offsets: Ids, batch: Float32, first: int, lanes: int, level: int) -> None:
        """Quantize `lanes` vectors of float32[B, I] from the `first` on into rows of the table of inputs."""
        scale, zero = (a[self._inputs].astype(np.float64) for a in (self.quantized.scale, self.quantized.zero))
        kernel.write_bytes(table, offsets, self._work.fed_inputs, batch, first, lanes, scale, zero, level)

    @property
    def all_sums(self) -> bool:
        """Whether every neuron that goes out is read from its 32-bit sum."""
        return self._rest is None

    def read(self, arena: Arena, out: Float32, level: int) -> None:
        """Fill out, float32[len(out), B], with what neurons hold; outputs are read from their 32-bit sums."""
        if self._rest is None:
            kernel.read_sums(arena.address, self.sums_at, self.sum_scales, out, level)
            return
        summed, rest = self._rest
        real = np.empty((len(self.sums_at), out.shape[1]), np.float32)
        kernel.read_sums(arena.address, self.sums_at, self.sum_scales, real, level)
        out[summed] = real
        rows = arena.bytes[: self._begin].reshape(-1, self._columns)
        out[~summed] = self.values(rest, rows[self._row[rest], : out.shape[1]])
