"""int8 in memory: the integer stream, rows of bytes, and rows of 32-bit sums behind them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cython_ext.inference.runs as kernel
from hwmodel.processor.arena import Arena
from hwmodel.processor.quantization import Quantized, to_bytes
from hwmodel.processor.work import OrderedWork, in_units

Float32 = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


class IntegerLayout:
    """Where a quantized network's values are. row: int64[N] rows of `columns` bytes in the arena, n_rows of them.

    Targets of several runs, and outputs, also have a row of 32-bit sums, behind all rows of bytes.
    """

    def __init__(self, work: OrderedWork, quantized: Quantized, row: Ids, n_rows: int, columns: int) -> None:
        self._work, self.quantized, self._row, self._columns = work, quantized, row, columns
        network = work.network
        self._inputs = network.inputs[work.fed_inputs]
        runs = np.bincount(work.targets[work.starts[:-1]], minlength=network.n_neurons)
        needed = np.flatnonzero((runs > 1) | ((network.in_degree > 0) & network.is_output))
        self._sum_row = np.full(network.n_neurons, -1, np.int64)
        self._sum_row[needed] = np.arange(len(needed))
        self._begin = n_rows * columns
        self.sum_bytes = len(needed) * columns * 4
        lanes = np.arange(columns)
        self._sum_place = lanes // 64 * 64 + kernel.SUM_PLACES[lanes % 64]

    def stream(
        self, place: npt.NDArray[np.uint32], table_place: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint32], Ids]:
        """Return the words of the stream and the first word of each run."""
        work, found, network = self._work, self.quantized, self._work.network
        sums = self._begin + self._sum_row * (4 * self._columns)
        words, first = kernel.int8_stream(
            work.sources, work.targets, found.weights, work.starts, place, in_units(sums // kernel.UNIT_BYTES),
            found.start, found.multiplier, found.zero, work.activation, network.is_output.view(np.uint8),
            network.in_degree, work.outside.view(np.uint8), table_place,
        )  # fmt: skip
        return words, first

    def steps(self, ids: Ids, values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
        """Return what neurons hold in steps of their scales; the last axis of values is that of the neurons."""
        return to_bytes(values, self.quantized.scale[ids], self.quantized.zero[ids])

    def values(self, ids: Ids, steps: npt.NDArray[np.uint8]) -> Float32:
        """Return float32[len(ids), B] of steps uint8[len(ids), B]."""
        found = self.quantized
        real: Float32 = (steps.astype(np.float32) - found.zero[ids, None]) * found.scale[ids, None]
        return real

    def write_inputs(self, table: int, offsets: Ids, batch: Float32, first: int, lanes: int, level: int) -> None:
        """Quantize `lanes` vectors of float32[B, I] from the `first` on into rows of the table of inputs."""
        scale, zero = (a[self._inputs].astype(np.float64) for a in (self.quantized.scale, self.quantized.zero))
        kernel.write_bytes(table, offsets, self._work.fed_inputs, batch, first, lanes, scale, zero, level)

    def read(self, arena: Arena, ids: Ids, out: Float32) -> None:
        """Fill out, float32[len(ids), B], with what neurons hold; outputs are read from their 32-bit sums."""
        network, here = self._work.network, out.shape[1]
        summed = network.is_output[ids] & (network.in_degree[ids] > 0)
        wide, rest = ids[summed], ids[~summed]
        behind = arena.bytes[self._begin : self._begin + self.sum_bytes].view(np.int32).reshape(-1, self._columns)
        sums = behind[self._sum_row[wide]][:, self._sum_place[:here]]
        out[summed] = sums * self.quantized.sum_scale[wide, None].astype(np.float64)
        if len(rest):
            rows = arena.bytes[: self._begin].reshape(-1, self._columns)
            out[~summed] = self.values(rest, rows[self._row[rest], :here])
