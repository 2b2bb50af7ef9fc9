"""Inference on the processor at hand: Algorithm 1 of Gleinig et al. 2023, in exactly the given order."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.inference.runs as kernel
from cython_ext.inference.runs import level_number
from cython_ext.streams.streams import RUN_WORDS, float_stream
from hwmodel.processor.arena import Arena, Float32, PackedInputs, checked_inputs
from hwmodel.processor.quantization import IntegerLayout
from hwmodel.processor.work import PAIRING, OrderedWork, in_units, narrow_offsets, ordered_work, spread
from traces.base.errors import InputError, shown, unknown_name
from traces.base.reprs import OneLineRepr
from traces.base.workers import available_cores
from traces.networks.network import Network

DTYPES = {"float32": kernel.F32, "bf16": kernel.BF16, "int8": kernel.INT8}
MOST_LANES = 4096


def compile_inference(
    network: Network,
    order: Any = None,
    *,
    lanes: int = 128,
    dtype: str = "float32",
    threads: int = 1,
    algorithm: str = "runs",
    calibration: npt.ArrayLike | None = None,
) -> CompiledInference:
    """Prepare inference that executes the connections of `network` in exactly the given order.

    order: an Ordering or int[W]; None is the network's own order. It is never sorted again.
    lanes: input vectors processed together; a neuron is a row of that many values, its pitch a multiple of 64 bytes
        (1: one vector at a time, a neuron is one value).
    dtype: 'float32'; 'bf16': weights rounded to bf16, arithmetic in float32; 'int8': int8 weights with a scale per
        target, 8-bit values with a scale per neuron, 32-bit sums (see traces.networks.quantization).
    threads: how many share the lanes, which never depend on one another; each has rows of its own. At most 16, or four
        a core.
    algorithm: 'runs' keeps the partial sum of consecutive connections of one target in registers; 'literal' is
        Algorithm 1 as printed: every connection loads and stores its target.
    calibration: float[B, I], inputs that are typical, for the ranges of int8; None: the network's batch, or where there
        is none the inputs of the first run.

    Returns a CompiledInference. Raises InputError for an order that is not a topological permutation, a network without
    weights and bad options.
    """
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    if algorithm not in ("runs", "literal"):
        raise unknown_name("algorithm", algorithm, ("runs", "literal"))
    for name, value, most in (("lanes", lanes, MOST_LANES), ("threads", threads, max(16, 4 * available_cores()))):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
            raise InputError(f"{name} must be an integer from 1 to {most}, not {shown(value)}")
    if dtype != "float32" and lanes == 1:
        lanes = 2  # a row of one float is a matter of float32
    work = ordered_work(network, order, single_steps=algorithm == "literal")
    given = None if calibration is None else checked_inputs(network, calibration)
    if given is not None and not np.isfinite(given).all():
        raise InputError("calibration: inputs that are typical are finite numbers")
    return CompiledInference(work, int(lanes), dtype, int(threads), level_number(), given)


class _Threads:
    """The caller and `count` - 1 others, started at the first call."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0  # that started the pool: one that is forked from it has none

    def each(self, part: Callable[[int], None]) -> None:
        """Call part(number) in every thread, number 0 in the caller's, and wait for all."""
        if self.count > 1 and (self._pool is None or self._process != os.getpid()):
            self._pool = ThreadPoolExecutor(self.count - 1, thread_name_prefix="edgewatt-inference")
            self._process = os.getpid()
        others = [self._pool.submit(part, number) for number in range(1, self.count)] if self._pool else []
        part(0)
        for other in others:
            other.result()


class CompiledInference(OneLineRepr):
    """A network laid out for inference in one order of work; see `compile_inference`.

    stream_bytes, arena_bytes: of one pass, of all threads together. lanes: input vectors of one pass of a thread.
    """

    def _repr_fields(self) -> dict[str, object]:
        return {
            "network": self.network.name, "connections": self.network.n_connections, "runs": self.runs,
            "lanes": self.lanes, "dtype": self.dtype, "threads": self.threads, "simd": self.simd,
            "stream bytes": self.stream_bytes, "arena bytes": self.arena_bytes,
        }  # fmt: skip

    def __init__(
        self,
        work: OrderedWork,
        lanes: int,
        dtype: str,
        threads: int,
        level: int,
        calibration: Float32 | None,
        keep_all: bool = False,
    ) -> None:
        self.network, self.dtype, self.threads = work.network, dtype, threads
        self.simd: str = kernel.LEVELS[level]
        self._work, self._level, self._asked = work, level, lanes
        self.lanes = max(1, -(-lanes // threads))
        align = 64 if dtype == "int8" else 16
        single = dtype == "float32" and self.lanes == 1  # other kernels know rows of several vectors only
        self.lanes = -(-self.lanes // align) * align if threads > 1 and not single else self.lanes
        self._columns = 1 if single else -(-self.lanes // align) * align
        self._lock = threading.Lock()
        self._calibration = calibration if calibration is not None else work.network.batch
        self._row, n_rows = work.rows(keep_all)
        fed = work.network.inputs[work.fed_inputs]
        self._table_row = np.arange(len(fed))
        self._n_rows, table_rows = n_rows, len(fed)
        if self._columns > 1:
            self._row, self._table_row = spread(self._row), spread(self._table_row)
            self._n_rows, table_rows = -(-n_rows // 16) * 16, -(-len(fed) // 16) * 16
        self._pitch = self._columns * (1 if dtype == "int8" else 4)
        unit = 4 if self._columns == 1 else kernel.UNIT_BYTES
        self._offset = in_units(self._row * (self._pitch // unit))
        self._out = np.flatnonzero(work.network.in_degree > 0) if keep_all else work.network.outputs
        self._output_rows = self._row[self._out] * self._pitch
        self._n_out = len(self._out)
        self._pairs = self.simd == PAIRING and self._columns > 1
        self._threads = _Threads(threads)
        self._spare: list[tuple[Arena, Arena]] = []  # rows, and room for inputs, that no call uses at the moment
        self._integers: IntegerLayout | None = None
        self._kind = DTYPES[dtype]
        line = 1 if self._columns == 1 else kernel.LINE_UNITS
        table_offset = np.full(work.network.n_neurons, -1, np.int64)
        table_offset[fed] = self._table_row * (self._pitch // unit)
        self._table_offset = in_units(table_offset)
        self._table_bytes = table_rows * self._pitch
        most = max(self._n_rows, table_rows)
        if dtype != "int8" and (narrow_offsets(most, self._pitch) if line > 1 else most <= kernel.NARROW_OFFSETS):
            self._kind |= kernel.NARROW
        if dtype != "int8":
            self._stream = float_stream(
                work.sources, work.targets, work.weights, work.starts, self._offset, work.biases, work.activation,
                work.network.in_degree, work.outside.view(np.uint8), self._table_offset, self._kind, line,
                work.shared if self._pairs else np.zeros(self.runs, np.int64),
            )  # fmt: skip
            self._first = RUN_WORDS * np.arange(self.runs + 1)
            self._passes = self._made_passes()
        elif self._calibration is not None:
            self._need_integers(self._calibration)

    @property
    def runs(self) -> int:
        """Maximal stretches of one target ('literal': connections)."""
        return len(self._work.starts) - 1

    @property
    def stream_bytes(self) -> int:
        """Bytes of headers, sources and weights that one pass reads."""
        lengths = np.diff(self._work.starts)
        if self.dtype == "int8":
            return int((24 + 20 * (-(-lengths // 4))).sum())
        weights = 2 if self.dtype == "bf16" else 4
        offset_bytes = 2 if self._kind & kernel.NARROW else 4
        return int((16 + 4 * -(-lengths // 4) * (weights + offset_bytes)).sum())

    @property
    def arena_bytes(self) -> int:
        """Bytes of the rows of values (and of 32-bit sums) and of the tables of inputs of all threads, for one call."""
        return (self._rows_bytes + self._table_bytes) * self.threads

    @property
    def _rows_bytes(self) -> int:
        return self._n_rows * self._pitch + (self._integers.sum_bytes if self._integers is not None else 0)

    def run(self, inputs: npt.ArrayLike | PackedInputs) -> Float32:
        """Return the outputs, float32[B, O], of float32[B, I] inputs; columns in the order of `network.outputs`.

        Inputs are copied to where the kernels read them, in whole rows (faster) where input vectors lie side by side
        (the transpose of an array [I, B]); those that `pack` returned are read where they are. The result is the
        transpose of an array [O, B]. The GIL is released. Calls from several threads go on side by side, each in
        rows of its own. Raises InputError for a wrong shape or type, and inputs that another network has packed.
        """
        if isinstance(inputs, PackedInputs):
            if inputs.owner is not self:
                raise InputError("these inputs were packed by another compiled network: each packs its own")
            out = np.empty((self._n_out, inputs.n_vectors), np.float32)
            self._run(inputs.tables, None, out)
        else:
            batch = checked_inputs(self.network, inputs)
            out = np.empty((self._n_out, len(batch)), np.float32)
            self._run(None, batch, out)
        return out.T

    def pack(self, inputs: npt.ArrayLike) -> PackedInputs:
        """Return input vectors as `run` reads them, so that running them again copies (or quantizes) nothing.

        Takes `arena` memory for all of them: rows of a multiple of 64 bytes per input and pass. Raises InputError for a
        wrong shape or type.
        """
        batch = checked_inputs(self.network, inputs)
        self._need_integers(batch)
        tables = Arena(-(-len(batch) // self.lanes) * self._table_bytes)
        for number, vector in enumerate(range(0, len(batch), self.lanes)):
            self._pack(tables, number * self._table_bytes, batch, vector)
        return PackedInputs(self, len(batch), tables)

    def neurons(self, inputs: npt.ArrayLike) -> Float32:
        """Return what every neuron holds, float32[B, N], after the same kernels went the same way; isolated ones: bias.

        Rows are not used twice for this, so it takes more memory than `run`. int8: values as they are after rounding
        to 8 bits, outputs as their sums.
        """
        batch = checked_inputs(self.network, inputs)
        out = np.empty((self.network.n_neurons, len(batch)), np.float32)
        network = self.network
        out[:] = self._work.biases[:, None]
        out[network.inputs] = batch.T
        constants, values = self._work.constants
        out[constants] = values[:, None]
        part = self._keeping_all
        fed = np.flatnonzero(network.in_degree > 0)
        kept = np.empty((len(fed), len(batch)), np.float32)
        part._run(None, batch, kept)
        out[fed] = kept
        if self.dtype == "int8":
            assert part._integers is not None
            ids = np.concatenate((network.inputs[self._work.fed_inputs], constants))
            out[ids] = part._integers.values(ids, part._integers.steps(ids, out[ids].T).T)
        return out.T

    @cached_property
    def _keeping_all(self) -> CompiledInference:
        """The same with a row for every neuron, all of which with incoming connections go out."""
        return CompiledInference(
            self._work, self._asked, self.dtype, self.threads, self._level, self._calibration, True
        )

    def _run(self, tables: Arena | None, batch: Float32 | None, out: Float32) -> None:
        """Do all passes. tables: packed inputs; None: `batch` is copied."""
        if batch is not None:
            self._need_integers(batch)
        self._threads.each(lambda number: self._run_part(number, tables, batch, out))

    def _run_part(self, number: int, tables: Arena | None, batch: Float32 | None, out: Float32) -> None:
        """Do the passes of one thread, in an arena that no other call uses."""
        try:
            arena, own = self._spare.pop()
        except IndexError:
            arena, own = self._new_arena(), Arena(self._table_bytes)
        table, first, step = tables or own, number * self.lanes, self.lanes * self.threads
        integers = self._integers
        if integers is None or (batch is None and integers.all_sums):
            self._passes.run(arena.address, table.address, batch, out, first, self.lanes, step)
        else:
            for vector in range(first, out.shape[1], step):
                at = 0 if batch is not None else vector // self.lanes * self._table_bytes
                if batch is not None:
                    self._pack(table, 0, batch, vector)
                self._passes.execute(arena.address, table.address + at)
                integers.read(arena, out[:, vector : vector + self.lanes], self._level)
        self._spare.append((arena, own))

    def _pack(self, tables: Arena, at: int, batch: Float32, vector: int) -> None:
        """Write the table of inputs of one pass, `at` so many bytes."""
        if self._integers is None:
            self._passes.pack(tables.address + at, batch, vector, self.lanes)
        else:
            rows = self._table_row * self._pitch
            self._integers.write_inputs(tables.address + at, rows, batch, vector, self.lanes, self._level)

    def _made_passes(self) -> Any:
        copied = self._work.copied
        rows = self._row[self.network.inputs[self._work.fed_inputs][copied]]
        integers = self._integers
        outputs, scales = (
            (self._output_rows, np.zeros(0)) if integers is None else (integers.sums_at, integers.sum_scales)
        )
        return kernel._Passes(
            self._stream, int(self._first[-1]), self._columns, self._kind, self._level, self._work.fed_inputs,
            self._table_row * self._pitch, self._table_row[copied] * self._pitch, rows * self._pitch, outputs,
            self._pitch, self._table_bytes, scales,
        )  # fmt: skip

    def _new_arena(self) -> Arena:
        """Rows of one thread, those of constants filled."""
        ids, values = self._work.constants
        arena = Arena(self._rows_bytes)
        if self._integers is None:
            arena.rows(self._pitch, np.float32)[self._row[ids]] = values[:, None]
        else:
            arena.rows(self._pitch, np.uint8)[self._row[ids]] = self._integers.steps(ids, values)[:, None]
        return arena

    def _need_integers(self, batch: Float32) -> None:
        """int8: quantize by what neurons hold on the calibration inputs, or these, computed here in float32."""
        if self.dtype != "int8":
            return
        with self._lock:
            if self._integers is None:
                exact = CompiledInference(self._work, 128, "float32", 1, self._level, None, True)
                self._calibration = batch if self._calibration is None else self._calibration
                quantized = self._work.quantized(exact.neurons(self._calibration))
                layout = self._row, self._n_rows, self._columns, self._out
                self._integers = IntegerLayout(self._work, quantized, *layout)
                words, self._first = self._integers.stream(self._offset, self._table_offset)
                nothing = np.zeros(0, np.uint32)
                self._stream = words, nothing, nothing
                self._passes = self._made_passes()
