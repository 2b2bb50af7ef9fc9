"""A network in its order of work, ready to be laid out: what every neuron starts from and how it is finished."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.inference.runs import LINE_UNITS, NARROW_OFFSETS, UNIT_BYTES
from cython_ext.streams.streams import assign_rows, run_starts, shared_quads
from hwmodel.processor.arena import Float32
from traces.base.errors import InputError
from traces.networks.forward import start_values
from traces.networks.network import COMPILED_ACTIVATIONS, Network, weights_of
from traces.networks.processing import processing_arrays
from traces.networks.quantization import Quantized, quantize

Ids = npt.NDArray[np.int64]
PAIRING = "avx512"
"""The SIMD level whose registers hold the sums of two targets: its kernels take two runs that begin alike at a time."""


@dataclass(frozen=True, eq=False)
class OrderedWork:
    """A network's connections in processing order. single_steps: no partial sum outlives its connection."""

    network: Network
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    weights: Float32
    single_steps: bool

    @cached_property
    def starts(self) -> Ids:
        """int64[R + 1]: position of each run's first connection, and W."""
        return np.asarray(run_starts(self.targets, self.single_steps))

    @cached_property
    def biases(self) -> Float32:
        """float32[N]."""
        network = self.network
        return np.zeros(network.n_neurons, np.float32) if network.biases is None else network.biases

    def quantized(self, values: Float32) -> Quantized:
        """Return the 8-bit form by what neurons hold on typical inputs, float32[B, N]; weights in processing order."""
        return quantize(self.network, self.sources, self.targets, self.weights, values)

    @cached_property
    def activation(self) -> npt.NDArray[np.uint8]:
        """uint8[N]: what finishes each neuron. Outputs stay linear, except for clipped-relu."""
        for name in self.network.used_activations:
            if name not in COMPILED_ACTIVATIONS:
                raise InputError(
                    f"{self.network.name}: compiled inference and C files know {', '.join(COMPILED_ACTIVATIONS)}, not "
                    f"{name}: `edgewatt run`, `order` and `break-even` take it; relu times the same products "
                    "(--activation relu)"
                )
        return self.network.codes

    @cached_property
    def constants(self) -> tuple[Ids, Float32]:
        """Neurons without incoming connections that are not inputs, and what they hold: they are activated when loaded.

        Under clipped-relu a bias is added only where the weighted sum is not zero, so they hold 0.
        """
        network = self.network
        unfed = network.in_degree == 0
        unfed[network.inputs] = False
        ids = np.flatnonzero(unfed & (network.touched | network.is_output))
        return ids, start_values(network)[ids]

    @cached_property
    def fed_inputs(self) -> Ids:
        """Columns of the batch that anything depends on."""
        network = self.network
        return np.flatnonzero((network.touched | network.is_output)[network.inputs])

    @cached_property
    def outside(self) -> npt.NDArray[np.bool_]:
        """bool[R]: runs whose sources are all inputs, which can be read where the input vectors arrive."""
        is_input = np.zeros(self.network.n_neurons, bool)
        is_input[self.network.inputs] = True
        outside: npt.NDArray[np.bool_] = np.logical_and.reduceat(is_input[self.sources], self.starts[:-1])
        return outside

    @cached_property
    def shared(self) -> Ids:
        """int64[R]: of a run that begins with the same sources as the next, how many quads of them; else 0.

        Nothing is in two pairs, and the second of a pair does not read what the first computes.
        """
        outside = self.outside.view(np.uint8)
        return np.asarray(shared_quads(self.sources, self.targets, self.starts, outside))

    @cached_property
    def copied(self) -> Ids:
        """Places in `fed_inputs` of inputs that need a row of the arena: other runs read them, or they are outputs."""
        network = self.network
        needed = network.is_output.copy()
        needed[self.sources[~np.repeat(self.outside, np.diff(self.starts))]] = True
        return np.flatnonzero(needed[network.inputs[self.fed_inputs]])

    def rows(self, keep_all: bool, *, apart: bool = True) -> tuple[Ids, int]:
        """Return int64[N], the row of the arena of each neuron (-1: none), and the number of rows.

        keep_all: every neuron keeps a row of its own; else rows are used again after a neuron's last use. apart: inputs
        stay in a table of their own, but for those `copied`; else all have rows.
        """
        network = self.network
        w = len(self.sources)
        last_use = np.full(network.n_neurons, -1, np.int64)
        steps = np.arange(w)
        np.maximum.at(last_use, self.sources, steps)
        np.maximum.at(last_use, self.targets, steps)
        keep = np.full(network.n_neurons, keep_all)
        keep[network.outputs] = True
        constants = self.constants[0]
        keep[constants] = True
        inputs = network.inputs[self.fed_inputs]
        if apart:
            keep[inputs] = True  # none of them gives back a row that it does not have
            inputs = inputs[self.copied]
            keep[inputs] = keep_all | network.is_output[inputs]
        resident = np.concatenate((inputs, constants)).astype(np.int32)
        row, n_rows = assign_rows(self.sources, self.targets, last_use, keep.astype(np.uint8), resident)
        return np.asarray(row), int(n_rows)


def ordered_work(network: Network, order: Any, *, single_steps: bool = False) -> OrderedWork:
    """Return the network in the given order (an Ordering, int[W] or None: its own), checked to be a legal one."""
    given = weights_of(network, "inference")
    sources, targets = processing_arrays(network, order)
    edges = getattr(order, "edges", order)
    weights = given if edges is None else given[np.asarray(edges)]
    return OrderedWork(network, sources, targets, np.ascontiguousarray(weights), single_steps)


def spread(rows: Ids) -> Ids:
    """Return rows in another order inside each 16, one of its own for every 16, so that no stride falls into few sets.

    The orders are those of hashes: XOR-mapped placement leaves patterns in which caches fetch ahead. -1 (no row) stays.
    """
    if not len(rows) or rows.max() < 0:
        return rows
    hashed = np.arange((int(rows.max()) // 16 + 1) * 16, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        hashed = (hashed ^ hashed >> np.uint64(shift)) * np.uint64(factor)
    order = np.argsort(hashed.reshape(-1, 16), axis=1, kind="stable").reshape(-1)
    return np.where(rows < 0, rows, (rows & ~np.int64(15)) + order[rows])


def narrow_offsets(rows: int, pitch: int) -> bool:
    """Whether 16 bits say where each of so many rows is, in lines."""
    return rows * pitch <= NARROW_OFFSETS * LINE_UNITS * UNIT_BYTES


def in_units(offsets: Ids) -> npt.NDArray[np.uint32]:
    """Return offsets of rows as the stream holds them; -1 (no row) becomes 0. Raises InputError beyond 32 bits."""
    if len(offsets) and offsets.max() >= 2**32:
        raise InputError("the rows of values are beyond 32 GiB: use fewer lanes")
    return np.where(offsets < 0, 0, offsets).astype(np.uint32)
