"""A point on a GPU: each layer is a sparse product of its matrix, whose tuples lie in the order of work.

The model is `hwmodel.caches.gpu`, one kernel per layer, caches cold at its start. It sees addresses alone: no wires are
counted and their energy is that of strobes, clock and commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewatt.runs.model import Before, Point
from hwmodel.caches.gpu import GpuResult, GpuSpec, GpuTime, gpu_time, simulate_gpu_spmv
from hwmodel.dram.energy import EnergyRow, WireRow, core_rows, interface_rows
from hwmodel.dram.interface import InterfaceCounts, timed_groups
from hwmodel.energy.total import Row, bill, billed_energy
from hwmodel.machine import Machine
from traces.base.errors import InputError
from traces.trace.chunks import STREAMS, by_stream
from traces.trace.spmv import lay_out_spmv

if TYPE_CHECKING:
    from hwmodel.parts.part import Organisation
    from traces.networks.network import Network


def simulate_gpu(point: Point, before: Before, machine: Machine) -> dict[str, Any]:
    """Return what the layers of a point's network do on its GPU, as JSON values of the shape that replay has.

    Raises InputError for an order that does not finish row after row, layer after layer.
    """
    spec, part = point.machine.gpu, machine.part
    assert spec is not None and point.layout is not None and point.order is not None
    kind = point.order.ordering.kind
    network, edges = before["network"], before["tuple_order"]["edges"]
    try:
        matrices = layer_matrices(network, edges)
    except InputError as error:
        raise InputError(f"ordering {kind}: {error}") from None
    if any(matrix.format != "csr" for matrix in matrices):
        raise InputError(
            f"ordering {kind}: the GPU model computes row after row in the order of their numbers: use two-optimal or "
            "layerwise, with any tuple order inside the rows"
        )
    problems = [
        lay_out_spmv(
            matrix,
            np.zeros(matrix.shape[1], np.float32),  # addresses do not depend on it
            value_format=point.layout.format,
            vector_format=point.layout.layout.neuron_format,
            id_bits=point.layout.layout.id_bits or (16 if max(matrix.shape) <= 2**16 else 32),
        )
        for matrix in matrices
    ]
    played = [simulate_gpu_spmv(problem, spec) for problem in problems]
    controller = replace(machine.memory_controller(), front_end="independent")  # a slice of the L2 for each channel
    timed = [gpu_time(result, spec, part, controller) for result in played]
    return {
        **_counts(played, part.organisation),
        "zeroed_weights": sum(problem.zeroed for problem in problems),
        **_costs(played, timed, machine, sum(problem.memory.total_bytes for problem in problems)),
        "gpu": {"busy_cycles": sum(result.busy_cycles for result in played), "clock_ns": _clock_ns(spec)},
    }


def _clock_ns(spec: GpuSpec) -> float:
    return 1e3 / spec.clock_mhz


def _counts(played: list[GpuResult], memory: Organisation) -> dict[str, Any]:
    way = np.zeros((2, len(STREAMS)), np.int64)
    for result in played:
        for write in (0, 1):
            way[write] += np.bincount(result.memory_stream[result.memory_is_write == write], minlength=len(STREAMS))
    loads = sum(result.l1_accesses for result in played)
    levels = []
    for level in ("l1", "l2"):
        each = [getattr(result, level) for result in played]
        counts = {name: sum(getattr(one, name) for one in each) for name in asdict(each[0])}
        levels.append({**counts, "hits": sum(c.hits for c in each), "misses": sum(c.misses for c in each)})
    return {
        "layout": "csr",
        "inputs": "none: addresses alone",
        "accesses": by_stream(sectors=loads),
        "cache": levels,
        "traffic": {
            "reads": int(way[0].sum()),
            "writes": int(way[1].sum()),
            "block_bytes": memory.burst_bytes,
            "streams": by_stream(reads=way[0], writes=way[1]),
        },
        "bus": {
            "beats": int(way.sum()) * memory.burst_beats,
            "ones": None,
            "toggles": None,
            "streams": {},
            "wires": {},
        },
    }


def _costs(played: list[GpuResult], timed: list[GpuTime], machine: Machine, footprint_bytes: int) -> dict[str, Any]:
    part, time_ns, n_bursts = machine.part, sum(done.time_ns for done in timed), 0
    interface: dict[str, WireRow] = {}
    core: dict[str, EnergyRow] = {}
    commands: dict[str, int] = {}
    for result, done in zip(played, timed, strict=True):
        writes = int(result.memory_is_write.sum())
        bursts = (len(result.memory_is_write) - writes, writes)
        n_bursts += sum(bursts)
        groups = tuple(timed_groups(done.dram.counts, bursts, done.dram.end_cycle, part))
        _add(interface, interface_rows(InterfaceCounts(groups, sum(bursts), 0), part))
        _add(core, core_rows(done.dram.counts, part))
        for name, count in done.dram.commands.items():
            commands[name] = commands.get(name, 0) + count
    billed = bill(
        machine.idle,
        part,
        time_ns=time_ns,
        moved_bytes=n_bursts * part.organisation.burst_bytes,
        footprint_bytes=footprint_bytes,
    )
    energy = billed_energy([*interface.values()], [*core.values()], None, billed, part)
    reads = sum(done.dram.counts.reads for done in timed)
    latency = sum(done.dram.counts.read_latency_cycles for done in timed)
    return {
        "dram": {
            "commands": {name: count for name, count in commands.items() if count},
            "cycles": sum(done.dram.total_cycles for done in timed),
            "row_hits": sum(done.dram.counts.row_hits for done in timed),
            "mean_read_latency_ns": part.tck_ns * latency / reads if reads else 0.0,
        },
        "energy_pj": energy.as_record(),
        "time_ns": time_ns,
    }


def _add(terms: dict[str, Row], rows: Iterable[Row]) -> None:
    for row in rows:
        before = terms[row.term].count if row.term in terms else 0
        terms[row.term] = replace(row, count=before + row.count)


def layer_matrices(network: Network, edges: np.ndarray) -> list[Any]:
    """Return scipy.sparse matrices (rows are outputs), float32, whose stored order is that of `edges` (int64[W]).

    Rows and columns count the connected neurons of a layer from 0 in the order of their ids (all inputs, all outputs).
    CSR where the order finishes row after row in the order of their ids, else COO, whose entries stand in the order of
    work. Raises InputError where the network has no layers or no weights, or where the order goes back to a layer that
    it had left, which one matrix per layer cannot hold.
    """
    from scipy.sparse import coo_matrix, csr_matrix

    if network.layer is None or network.weights is None:
        raise InputError(f"{network.name}: matrices need a layered network with weights")
    layers = network.layer[edges]
    back = np.flatnonzero(np.diff(layers) < 0)
    if len(back):
        at = int(back[0]) + 1
        raise InputError(
            f"{network.name}: the order goes back from layer {int(layers[at - 1])} to layer {int(layers[at])} at its "
            f"{at + 1}th connection, which one matrix per layer cannot hold: export an order that works layer by layer "
            "(two-optimal, layerwise), or write the order itself with `edgewatt order -o order.npz`"
        )
    matrices = []
    groups = _groups(network)
    for layer, (columns, rows) in zip(np.unique(network.layer), pairwise(groups), strict=True):
        mine = edges[network.layer[edges] == layer]
        row = np.searchsorted(rows, network.targets[mine])
        column = np.searchsorted(columns, network.sources[mine])
        shape = (len(rows), len(columns))
        if (np.diff(row) < 0).any():
            matrices.append(coo_matrix((network.weights[mine], (row, column)), shape=shape))
            continue
        pointers = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
        matrices.append(csr_matrix((network.weights[mine], column, pointers), shape=shape))
    return matrices


def _groups(network: Network) -> list[np.ndarray]:
    """Return the neuron ids between the layers, ascending: inputs, what joins two layers, ..., outputs.

    Hidden neurons without any connection are in none of them, so that matrices of neighbouring layers fit.
    """
    assert network.layer is not None
    layers = np.unique(network.layer)
    ends = [np.unique(network.targets[network.layer == layer]) for layer in layers[:-1]]
    starts = [np.unique(network.sources[network.layer == layer]) for layer in layers[1:]]
    joints = [np.union1d(end, start) for end, start in zip(ends, starts, strict=True)]
    return [np.sort(network.inputs), *joints, np.sort(network.outputs)]


def write_matrices(matrices: list[Any], output: str | Path) -> list[Path]:
    """Write one file per layer: `output` itself for a single layer, else NAME-1.EXT, NAME-2.EXT and so on."""
    from reorder.tuples.files import write_matrix

    output = Path(output)
    if output.suffix.lower() == ".safetensors" and any(matrix.format == "coo" for matrix in matrices):
        raise InputError(
            f"{output}: this order does not finish row after row, so it takes coordinate form: write .npz or .mtx"
        )
    paths = [output]
    if len(matrices) > 1:
        paths = [output.with_name(f"{output.stem}-{k}{output.suffix}") for k in range(1, len(matrices) + 1)]
    for matrix, path in zip(matrices, paths, strict=True):
        write_matrix(matrix, path)
    return paths
