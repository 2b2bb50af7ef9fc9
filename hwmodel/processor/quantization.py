"""Where the values of a network in 8 bits are, and the stream that its kernels read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cython_ext.inference.runs as kernel
from cython_ext.streams.streams import int8_stream
from hwmodel.processor.arena import Arena, Float32
from hwmodel.processor.work import Ids, OrderedWork, in_units
from traces.networks.quantization import Quantized, to_bytes


class IntegerLayout:
    """Where a quantized network's values are. row: int64[N] rows of `columns` bytes in the arena, n_rows of them.

    Targets of several runs, and outputs, also have a row of 32-bit sums, behind all rows of bytes. out: the neurons
    that go out of a pass; all_sums: each of them has a sum; sums_at, sum_scales: where these are, in bytes, and their
    scales.
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
        self._summed, self._rest, self.all_sums = summed, out[~summed], bool(summed.all())
        self.sums_at: Ids = self._begin + self._sum_row[out[summed]] * (4 * columns)
        self.sum_scales: npt.NDArray[np.float64] = quantized.sum_scale[out[summed]].astype(np.float64)

    def stream(
        self, offset: npt.NDArray[np.uint32], table_offset: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint32], Ids]:
        """Return the words of the stream and the first word of each run."""
        work, quantized, network = self._work, self.quantized, self._work.network
        sums = self._begin + self._sum_row * (4 * self._columns)
        words, first = int8_stream(
            work.sources, work.targets, quantized.weights, work.starts, offset, in_units(sums // kernel.UNIT_BYTES),
            quantized.start, quantized.multiplier, quantized.zero, work.activation, network.is_output.view(np.uint8),
            network.in_degree, work.outside.view(np.uint8), table_offset,
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
        kernel._write_bytes(table, offsets, self._work.fed_inputs, batch, first, lanes, scale, zero, level)

    def read(self, arena: Arena, out: Float32, level: int) -> None:
        """Fill out, float32[len(out), B], with what neurons hold; outputs are read from their 32-bit sums."""
        if self.all_sums:
            kernel._read_sums(arena.address, self.sums_at, self.sum_scales, out, level)
            return
        summed, rest = self._summed, self._rest
        real = np.empty((len(self.sums_at), out.shape[1]), np.float32)
        kernel._read_sums(arena.address, self.sums_at, self.sum_scales, real, level)
        out[summed] = real
        rows = arena.bytes[: self._begin].reshape(-1, self._columns)
        out[~summed] = self.values(rest, rows[self._row[rest], : out.shape[1]])
