"""Inference on the processor at hand: Algorithm 1 of Gleinig et al. 2023, in exactly the given order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.inference.runs as kernel
from hwmodel.processor.arena import Arena
from hwmodel.processor.phases import phases, shares
from hwmodel.processor.quantization import Quantized, quantize, to_bytes
from hwmodel.processor.work import OrderedWork, ordered_work
from traces.base.errors import InputError, unknown_name
from traces.work.network import Network, is_real

Float32 = npt.NDArray[np.float32]

DTYPES = {"float32": kernel.F32, "bf16": kernel.BF16, "int8": kernel.INT8}
MOST_LANES = 4096
MOST_THREADS = 1024


def compile_inference(
    network: Network,
    order: Any = None,
    *,
    lanes: int = 128,
    dtype: str = "float32",
    threads: int = 1,
    split: str | None = None,
    algorithm: str = "runs",
    calibration: npt.ArrayLike | None = None,
    simd: str | None = None,
) -> CompiledInference:
    """Prepare inference that executes the connections of `network` in exactly the given order.

    order: an Ordering or int[W]; None is the network's own order. It is never sorted again.
    lanes: input vectors processed together; a neuron is a row of that many values, its pitch a multiple of 64 bytes
        (1: one vector at a time, a neuron is one value).
    dtype: 'float32'; 'bf16': weights rounded to bf16, arithmetic in float32; 'int8': int8 weights with a scale per
        target, 8-bit values with a scale per neuron, 32-bit sums (see hwmodel.processor.quantization).
    threads: how many share the work; split: 'lanes' (any order), 'targets' (orders that go by layers), or None: lanes
        where every thread gets at least 16 of them.
    algorithm: 'runs' keeps the partial sum of consecutive connections of one target in registers; 'literal' is
        Algorithm 1 as printed: every connection loads and stores its target.
    calibration: float[B, I], inputs that are typical, for the ranges of int8; None: the network's batch, or where there
        is none the inputs of the first run.
    simd: 'avx512', 'avx2' or 'baseline' at most; None: the best there is.

    Raises InputError for an order that is no topological permutation, a network without weights and bad options.
    """
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    if algorithm not in ("runs", "literal"):
        raise unknown_name("algorithm", algorithm, ("runs", "literal"))
    if simd is not None and simd not in kernel.LEVELS:
        raise unknown_name("SIMD level", simd, kernel.LEVELS)
    for name, value, most in (("lanes", lanes, MOST_LANES), ("threads", threads, MOST_THREADS)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
            raise InputError(f"{name} must be an integer from 1 to {most}, not {value!r}")
    if split not in (None, "lanes", "targets"):
        raise unknown_name("split", split, ("lanes", "targets"))
    if dtype != "float32" and lanes == 1:
        lanes = 2  # a row of one float is a matter of float32
    work = ordered_work(network, order, single_steps=algorithm == "literal")
    if split is None:
        split = "lanes" if threads == 1 or lanes >= 16 * threads else "targets"
    level = kernel.level_number(simd)
    given = None if calibration is None else _checked_inputs(network, calibration)
    return CompiledInference(work, int(lanes), dtype, int(threads), split, level, given)


class CompiledInference:
    """A network laid out for inference in one order of work; see `compile_inference`.

    runs: maximal stretches of consecutive connections with one target. stream_bytes: headers, sources and weights that
    one pass reads. arena_bytes: rows of values, of all threads together. lanes: input vectors of one pass of a thread.
    """

    def __init__(
        self,
        work: OrderedWork,
        lanes: int,
        dtype: str,
        threads: int,
        split: str,
        level: int,
        calibration: Float32 | None,
        keep_all: bool = False,
    ) -> None:
        self.network, self.dtype, self.threads, self.split = work.network, dtype, threads, split
        self.simd: str = kernel.LEVELS[level]
        self._work, self._level, self._asked = work, level, lanes
        self._by_targets = split == "targets" and threads > 1
        self.lanes = lanes if self._by_targets else max(1, -(-lanes // threads))
        align = 64 if dtype == "int8" else 16
        self.lanes = 1 if self.lanes == 1 else -(-self.lanes // align) * align if threads > 1 else self.lanes
        self._columns = 1 if self.lanes == 1 else -(-self.lanes // align) * align
        self._lock = threading.Lock()
        self._calibration = calibration if calibration is not None else work.network.batch
        self._segments: npt.NDArray[np.int64] | None = None
        self._thread_segments: list[npt.NDArray[np.int64]] = []
        if self._by_targets:
            self._work = work = self._shared_out(work)
        self._row, self._n_rows = work.rows(keep_all or self._by_targets)
        self._pitch = self._columns * (1 if dtype == "int8" else 4)
        unit = 4 if self._columns == 1 else kernel.UNIT_BYTES
        self._place = self._units(self._row * (self._pitch // unit))
        inputs = work.network.inputs[work.fed_inputs]
        self._input_rows = self._row[inputs] * self._pitch
        self._output_rows = self._row[work.network.outputs] * self._pitch
        self._quantized: Quantized | None = None
        self._kind = DTYPES[dtype]
        line = 1 if self._columns == 1 else kernel.LINE_UNITS
        if dtype != "int8" and self._n_rows * (self._pitch // unit) <= kernel.NARROW_PLACES * line:
            self._kind |= kernel.NARROW
        if dtype != "int8":
            self._words, self._first = kernel.float_stream(
                work.sources, work.targets, work.weights, work.starts, self._place, work.biases, work.activation,
                work.network.in_degree, self._kind, line,
            )  # fmt: skip
        elif self._calibration is not None:
            self._lay_out_int8(self._calibration)

    # -- what it is ------------------------------------------------------------------------------------------------

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
        weights = 4 * -(-lengths // 2) if self.dtype == "bf16" else 4 * lengths
        sources = 4 * -(-lengths // 2) if self._kind & kernel.NARROW else 4 * lengths
        return int((12 + sources + weights).sum())

    @property
    def arena_bytes(self) -> int:
        """Bytes of the rows of values (and of 32-bit sums) of all threads."""
        sums = self._n_sum_rows * self._columns * 4 if self.dtype == "int8" else 0
        return (self._n_rows * self._pitch + sums) * (1 if self._by_targets else self.threads)

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, inputs: npt.ArrayLike) -> Float32:
        """Return the outputs, float32[B, O], of float32[B, I] inputs; columns in the order of `network.outputs`.

        Input vectors that lie side by side (the transpose of an array [I, B]) are copied in whole rows, which is
        faster; the result is the transpose of such an array. The GIL is released; calls from several threads wait for
        each other. Raises InputError for a wrong shape or type.
        """
        batch = _checked_inputs(self.network, inputs)
        out = np.empty((len(self._output_rows), len(batch)), np.float32)
        if len(self._work.fed_inputs) < len(self.network.inputs):
            batch = batch[:, self._work.fed_inputs]
        with self._lock:
            if self.dtype == "int8":
                self._run_int8(batch, out)
            else:
                self._run_float(batch, out)
        return out.T

    def neurons(self, inputs: npt.ArrayLike) -> Float32:
        """Return what every neuron holds, float32[B, N], after the same kernels went the same way; isolated ones: bias.

        Rows are not used twice for this, so it takes more memory than `run`. int8: values as they are after rounding
        to 8 bits, outputs as their sums.
        """
        batch = _checked_inputs(self.network, inputs)
        out = np.empty((self.network.n_neurons, len(batch)), np.float32)
        network = self.network
        out[:] = self._work.biases[:, None]
        out[network.inputs] = batch.T
        constants, values = self._work.constants
        out[constants] = values[:, None]
        part = self._keeping_all
        if self.dtype == "int8":
            with part._lock:
                part._run_int8(batch[:, part._work.fed_inputs], np.empty((len(network.outputs), len(batch))), out)
            return out.T
        fed = np.flatnonzero(network.in_degree > 0)
        part._output_rows = part._row[fed] * part._pitch
        kept = np.empty((len(fed), len(batch)), np.float32)
        with part._lock:
            part._run_float(batch[:, part._work.fed_inputs], kept)
        out[fed] = kept
        return out.T

    @cached_property
    def _keeping_all(self) -> CompiledInference:
        made = CompiledInference(
            self._work, self._asked, self.dtype, self.threads, self.split, self._level, self._calibration, True
        )
        return made

    def _run_float(self, batch: Float32, out: Float32) -> None:
        columns, kind, level = self._columns, self._kind, self._level
        end = int(self._first[-1])
        if self._by_targets:
            for vector in range(0, len(batch), self.lanes):
                here = batch[vector : vector + self.lanes]
                rows = self._arenas[0].rows(self._pitch, np.float32)
                at = self._input_rows // self._pitch
                rows[at, : len(here)] = here.T
                rows[at, len(here) :] = 0
                self._by_phases(kind)
                out[:, vector : vector + len(here)] = rows[self._output_rows // self._pitch, : len(here)]
            return

        def passes(number: int) -> None:
            kernel.float_passes(
                self._words, end, self._arenas[number].address, columns, kind, level, batch, out, self._input_rows,
                self._output_rows, number * self.lanes, self.lanes, self.threads * self.lanes,
            )  # fmt: skip

        self._in_threads(passes)

    def _run_int8(self, batch: Float32, out: npt.NDArray[Any], every: Float32 | None = None) -> None:
        """every: float32[N, B] to fill with the values of all neurons that have rows."""
        if self._quantized is None:
            whole = np.zeros((len(batch), len(self.network.inputs)), np.float32)
            whole[:, self._work.fed_inputs] = batch
            self._lay_out_int8(whole)
        found = self._quantized
        assert found is not None
        inputs = self.network.inputs[self._work.fed_inputs]
        outputs = self.network.outputs
        fed_outputs = np.flatnonzero(self.network.in_degree[outputs] > 0)
        held = np.flatnonzero(self._row >= 0)
        places = np.arange(self._columns) // 64 * 64 + kernel.SUM_PLACES[np.arange(self._columns) % 64]

        def one_pass(number: int, vector: int) -> None:
            here = batch[vector : vector + self.lanes]
            arena = self._arenas[number]
            rows = arena.rows(self._pitch, np.uint8)
            rows[self._row[inputs], : len(here)] = to_bytes(here, found.scale[inputs], found.zero[inputs]).T
            if self._by_targets:
                self._by_phases(kernel.INT8)
            else:
                kernel.execute(
                    self._words, np.array([[0, self._first[-1]]]), np.zeros(0, np.int64), arena.address, self._columns,
                    kernel.INT8, self._level,
                )  # fmt: skip
            real = lambda ids: ((rows[self._row[ids], : len(here)].astype(np.float32)  # noqa: E731
                                 - found.zero[ids, None]) * found.scale[ids, None])  # fmt: skip
            now = slice(vector, vector + len(here))
            out[:, now] = real(outputs)
            sums = self._sum_table(arena)[self._sum_row[outputs[fed_outputs]]][:, places[: len(here)]]
            out[fed_outputs, now] = sums * found.sum_scale[outputs[fed_outputs], None].astype(np.float64)
            if every is not None:
                every[held, now] = real(held)
                every[outputs[fed_outputs], now] = out[fed_outputs, now]

        if self._by_targets:
            for vector in range(0, len(batch), self.lanes):
                one_pass(0, vector)
            return

        def passes(number: int) -> None:
            for vector in range(number * self.lanes, len(batch), self.threads * self.lanes):
                one_pass(number, vector)

        self._in_threads(passes)

    def _by_phases(self, kind: int) -> None:
        meeting = np.array([0, self.threads], np.int64)

        def part(number: int) -> None:
            kernel.execute(
                self._words, self._thread_segments[number], meeting, self._arenas[0].address, self._columns, kind,
                self._level,
            )  # fmt: skip

        self._in_threads(part)

    def _in_threads(self, part: Any) -> None:
        if self.threads == 1:
            part(0)
            return
        others = [self._pool.submit(part, number) for number in range(1, self.threads)]
        part(0)
        for other in others:
            other.result()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        # one worker for every thread but the caller's: all must run at once where they wait for each other
        return ThreadPoolExecutor(self.threads - 1, thread_name_prefix="edgewatt-inference")

    # -- laying out ------------------------------------------------------------------------------------------------

    def _shared_out(self, work: OrderedWork) -> OrderedWork:
        """Return the work sorted by (phase, thread), and remember which runs are whose."""
        network = work.network
        phase = phases(work.sources, work.targets, network.n_neurons)
        thread = shares(phase, work.targets, network.n_neurons, self.threads)
        order = np.lexsort((thread, phase))  # stable: each thread keeps the order it was given
        shared = OrderedWork(network, work.sources[order], work.targets[order], work.weights[order], work.single_steps)
        group = phase[order] * self.threads + thread[order]
        self._groups = np.searchsorted(group, np.arange((phase[-1] + 1) * self.threads + 1))
        return shared

    @cached_property
    def _arenas(self) -> list[Arena]:
        found = []
        ids, values = self._work.constants
        for _ in range(1 if self._by_targets else self.threads):
            arena = Arena(self.arena_bytes // (1 if self._by_targets else self.threads))
            if self._quantized is None:
                arena.rows(self._pitch, np.float32)[self._row[ids]] = values[:, None]
            else:
                q = self._quantized
                steps = to_bytes(values, q.scale[ids], q.zero[ids])
                arena.rows(self._pitch, np.uint8)[self._row[ids]] = steps[:, None]
            found.append(arena)
        if self._by_targets:
            word_of = self._first[np.searchsorted(self._work.starts, self._groups)]
            bounds = word_of.reshape(-1)
            table = np.stack((bounds[:-1], bounds[1:]), axis=1).reshape(-1, self.threads, 2)
            self._thread_segments = [np.ascontiguousarray(table[:, t]) for t in range(self.threads)]
        return found

    def _units(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        if len(places) and places.max() >= 2**32:
            raise InputError(
                f"rows of {self._pitch} bytes for {self._n_rows} neurons are beyond 32 GiB: use fewer lanes"
            )
        return np.where(places < 0, 0, places).astype(np.uint32)

    @cached_property
    def _sum_row(self) -> npt.NDArray[np.int64]:
        """int64[N]: row of 32-bit sums of targets that need one: of several runs, or outputs. -1: none."""
        work = self._work
        runs = np.bincount(work.targets[work.starts[:-1]], minlength=self.network.n_neurons)
        needed = np.flatnonzero((runs > 1) | ((self.network.in_degree > 0) & self.network.is_output))
        rows = np.full(self.network.n_neurons, -1, np.int64)
        rows[needed] = np.arange(len(needed))
        return rows

    @property
    def _n_sum_rows(self) -> int:
        return int(self._sum_row.max()) + 1

    def _sum_table(self, arena: Arena) -> npt.NDArray[np.int32]:
        begin = self._n_rows * self._pitch
        return (
            arena.bytes[begin : begin + self._n_sum_rows * self._columns * 4]
            .view(np.int32)
            .reshape(self._n_sum_rows, self._columns)
        )

    def _lay_out_int8(self, calibration: Float32) -> None:
        """Quantize by what neurons hold on the calibration inputs, as this machine computes them in float32."""
        exact = CompiledInference(self._work, 128, "float32", 1, "lanes", self._level, None, True)
        self._calibration = calibration
        self._quantized = found = quantize(self._work, exact.neurons(calibration))
        work, network = self._work, self.network
        sum_place = self._n_rows * self._pitch + self._sum_row * (4 * self._columns)
        self._words, self._first = kernel.int8_stream(
            work.sources, work.targets, found.weights, work.starts, self._place,
            self._units(sum_place // kernel.UNIT_BYTES), found.start, found.multiplier, found.zero, work.activation,
            network.is_output.astype(np.uint8), network.in_degree,
        )  # fmt: skip


def _checked_inputs(network: Network, inputs: npt.ArrayLike) -> Float32:
    given = np.asarray(inputs)
    if given.ndim != 2 or given.shape[1] != len(network.inputs):
        raise InputError(f"inputs have shape {given.shape}, expected (B, {len(network.inputs)}): one column per input")
    if given.dtype == np.float32 and not (given.strides[0] | given.strides[1]) & 3:
        return given
    if not is_real(given.dtype):
        raise InputError(f"inputs must hold real numbers, not {given.dtype}")
    return np.ascontiguousarray(given, np.float32)
