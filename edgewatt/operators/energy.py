"""Off-chip traffic of a schedule on the wires: its block transfers as a memory trace with real weights and activations.

The transfers are Belady's on blocks. Activations come from running the model on an input; a block carries what its
buffer held at that moment, in the tensor's own format. Weights are read once per operator, before it runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import Progress
from reorder.operators.schedule import schedule as plain
from reorder.operators.schedule.arena import ALIGNMENT
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from reorder.operators.schedule.schedule import Schedule
from reorder.operators.schedule.traffic import offchip_transfers, seconds_until, too_late
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.operators.execute import NotComputedError, can_compute, execute_stepwise, stored
from traces.operators.opgraph import INPUT, OpGraph, element_bits, stored_bytes
from traces.trace.chunks import LOAD, STORE, STREAMS, Chunk, Memory, Region, Trace

PIECE_BYTES = 128  # of one access: transfers longer than this are several accesses
HOME_ALIGNMENT = 256
MOST = 1 << 16  # transfers of a chunk
_COPIES = 3  # of all buffers that are held at once, about: memory's content before, what was written, what runs
READS, WRITES, SUMS, WEIGHTS = (STREAMS.index(name) for name in ("inputs", "outputs", "partial_sums", "values"))

Bytes = npt.NDArray[np.uint8]


def operator_trace(
    graph: OpGraph,
    order: npt.ArrayLike,
    *,
    onchip_bytes: int,
    block_bytes: int = 256,
    data: bool = True,
    seed: int = 0,
    deadline: float | None = None,
) -> Trace:
    """Return the off-chip transfers of a schedule as a trace, one chunk per operator (per 2^16 transfers of one).

    Inputs are drawn (seeded; uniform over the range of 8-bit integers, standard normal otherwise). data: carry real
    bytes; needs the model's constants. Streams: inputs, outputs, partial_sums (activations), values (weights).
    """
    problem = OperatorProblem(graph)
    steps = problem.check_order(order)
    layout = _Layout(graph)
    if data:
        claim(_COPIES * layout.total, graph.source or graph.name, "what its buffers hold")
    contents = _contents(graph, steps, seed) if data else None
    image = None if contents is None else _image(graph, layout)
    log = offchip_transfers(problem, steps, onchip_bytes=onchip_bytes, block_bytes=block_bytes, deadline=deadline)
    accesses = [len(problem.buffer_rows["reads"][v]) + len(problem.buffer_rows["writes"][v]) for v in steps]
    step_of = np.repeat(np.arange(len(steps)), accesses)
    starts = np.searchsorted(step_of[log[:, 0]], np.arange(len(steps) + 1))

    def chunks() -> Iterator[Chunk]:
        for k, v in enumerate(steps.tolist()):
            rows = _Rows()
            for name in graph.nodes[v].constants:
                weights = stored_bytes(graph.constants[name])
                rows.add(layout.address[name], len(weights), LOAD, WEIGHTS, None if contents is None else weights)
            for begin in range(starts[k], starts[k + 1], MOST):
                if begin > starts[k]:
                    yield rows.chunk()
                    rows = _Rows()
                if deadline is not None and seconds_until(deadline) == 0:
                    raise too_late(graph)
                for _, b, block, is_write, changed in log[begin : min(begin + MOST, starts[k + 1])].tolist():
                    first = block * block_bytes
                    size = min(block_bytes, int(graph.buffer_bytes[b]) - first)
                    shared = len(graph.writers[graph.buffers[b]]) > 1
                    stream = SUMS if shared else WRITES if is_write else READS
                    held = None
                    if contents is not None:
                        written_at, states = contents[b]
                        held = states[bisect_right(written_at, step_of[changed]) - 1][first : first + size]
                    at = layout.address[graph.buffers[b]] + first
                    rows.add(at, size, STORE if is_write else LOAD, stream, held)
            if rows.accesses:
                yield rows.chunk()

    description = {
        "graph": graph.name,
        "onchip_bytes": onchip_bytes,
        "block_bytes": block_bytes,
        "data": data,
        "input": f"drawn with seed {seed}",
    }
    return Trace(chunks, Memory(0, layout.total, image, layout.regions), None, description)


class _Layout:
    """Home addresses off-chip: buffers, then constants, each at a multiple of HOME_ALIGNMENT."""

    def __init__(self, graph: OpGraph) -> None:
        self.address: dict[str, int] = {}
        regions = []
        at = 0
        sizes = dict(zip(graph.buffers, graph.buffer_bytes.tolist(), strict=True))
        for name, size in (*sizes.items(), *((name, len(stored_bytes(a))) for name, a in graph.constants.items())):
            self.address[name] = at
            regions.append(Region(name, at, size))
            at += -(-size // HOME_ALIGNMENT) * HOME_ALIGNMENT
        self.regions, self.total = tuple(regions), at


class _Rows:
    def __init__(self) -> None:
        self.accesses: list[tuple[int, int, int, int]] = []  # address, size, op, stream
        self.payload: list[Bytes] = []

    def add(self, address: int, size: int, op: int, stream: int, held: Bytes | None) -> None:
        for first in range(0, size, PIECE_BYTES):
            self.accesses.append((address + first, min(PIECE_BYTES, size - first), op, stream))
        if held is not None:
            self.payload.append(held)

    def chunk(self) -> Chunk:
        addresses, *columns = zip(*self.accesses, strict=True)
        sizes, ops, streams = (np.array(column, np.uint8) for column in columns)
        chunk = Chunk(np.array(addresses, np.uint64), sizes, ops, streams)
        if not self.payload:
            return chunk
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        return replace(chunk, payload_offset=offsets, payload=np.concatenate(self.payload))


Contents = list[tuple[list[int], list[Bytes]]]
"""Of each buffer the steps that changed it, and what it held after each."""


def _contents(graph: OpGraph, order: Order, seed: int) -> Contents:
    if not graph.constants and any(node.op != INPUT for node in graph.nodes):
        raise InputError(
            f"{graph.source or graph.name}: the graph has no weights: transfers carry no data (data=False)"
        )
    number = {name: i for i, name in enumerate(graph.buffers)}
    contents: Contents = [([], []) for _ in number]
    for step, written in enumerate(execute_stepwise(graph, draw_inputs(graph, seed), order.tolist())):
        for buffer, values in written.items():
            written_at, states = contents[number[buffer]]
            written_at.append(step)
            states.append(_stored(graph, buffer, values))
    return contents


def draw_inputs(graph: OpGraph, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    drawn = {}
    for node in graph.nodes:
        if node.op != INPUT:
            continue
        tensor = node.output
        scale = graph.quantization.get(tensor.name)
        if tensor.dtype in ("uint8", "int8"):
            low = 0 if tensor.dtype == "uint8" else -128
            stored = random.integers(low, low + 256, tensor.shape)
            real = stored if scale is None else (stored - scale.zero_point[0]) * scale.scale[0]
            drawn[tensor.name] = real.astype(np.float32)
        else:
            drawn[tensor.name] = random.standard_normal(tensor.shape).astype(np.float32)
    return drawn


def _stored(graph: OpGraph, buffer: str, values: npt.NDArray[Any]) -> Bytes:
    tensor = next(t for t in graph.tensors.values() if t.buffer == buffer)
    scale = next((graph.quantization[t.name] for t in graph.tensors.values()
                  if t.buffer == buffer and t.name in graph.quantization), None)  # fmt: skip
    raw = stored_bytes(stored(values, tensor, scale or graph.quantization.get(buffer)), tensor.dtype)
    size = int(graph.buffer_bytes[graph.buffers.index(buffer)])
    return np.pad(raw, (0, max(0, size - len(raw))))[:size]


def _image(graph: OpGraph, layout: _Layout) -> Bytes:
    image = np.zeros(layout.total, np.uint8)
    for name, values in graph.constants.items():
        held = stored_bytes(values)
        image[layout.address[name] : layout.address[name] + len(held)] = held
    return image


def play(trace: Trace, part: Any, encoder: str, element_bytes: int) -> tuple[Any, dict[str, float]]:
    from hwmodel.energy.total import replay_energy
    from hwmodel.machine import BusSpec, Machine
    from hwmodel.parts.part_file import load_part
    from hwmodel.replay import replay

    loaded = load_part(part)
    o = loaded.organisation
    bus = BusSpec(bus_bytes=o.byte_lanes, block_bytes=o.burst_bytes)
    machine = Machine((), encoder=encoder, element_bytes=element_bytes, bus=bus, part=loaded)
    result = replay(trace, machine)
    energy = replay_energy(result, machine)
    assert result.dram is not None
    spent = {"io_pj": energy.io_pj, "interface_pj": energy.interface_pj, "core_pj": energy.core_pj}
    return result, {**spent, "total_pj": energy.total_pj, "time_ns": result.dram.time_ns}


def operator_energy(
    graph: OpGraph,
    order: npt.ArrayLike,
    *,
    onchip_bytes: int,
    part: Any = "lpddr4-3200",
    encoder: str = "raw",
    block_bytes: int = 256,
    seed: int = 0,
    deadline: float | None = None,
) -> dict[str, Any]:
    """Play a schedule's off-chip transfers on a memory and return bytes, wire counts, time and energy in pJ.

    part, encoder: as everywhere in the suite. Where the data is unknown, as the graph has no constants or an operator
    that cannot be computed, wires are not counted and only the energy that does not depend on data is given. Keys:
    data ('known', or why it is not), read_bytes, written_bytes, weight_bytes, ones, toggles (None without data), io_pj
    (data wires; None without data), interface_pj, core_pj, total_pj, time_ns.
    """
    unknown = data_unknown(graph)
    made: dict[str, Any] = {
        "onchip_bytes": onchip_bytes, "block_bytes": block_bytes, "seed": seed, "deadline": deadline,
    }  # fmt: skip
    try:
        trace = operator_trace(graph, order, data=not unknown, **made)
    except NotComputedError as error:
        unknown, trace = str(error), operator_trace(graph, order, data=False, **made)
    result, spent = play(trace, part, encoder, _element_bytes(graph))
    streams = result.load_bytes + result.store_bytes
    return {
        "data": unknown or "known",
        "read_bytes": int(result.load_bytes.sum() - result.load_bytes[WEIGHTS]),
        "written_bytes": int(result.store_bytes.sum()),
        "weight_bytes": int(streams[WEIGHTS]),
        "ones": result.total.ones,
        "toggles": result.total.toggles,
        **spent,
        "io_pj": None if unknown else spent["io_pj"],
    }


def data_unknown(graph: OpGraph) -> str:
    if not graph.constants:
        return "the graph has no weights"
    kinds = sorted({node.op for node in graph.nodes if not can_compute(node)})
    return f"not computed: {', '.join(kinds)}" if kinds else ""


def _element_bytes(graph: OpGraph) -> int:
    sizes: Counter[int] = Counter()
    for tensor in graph.tensors.values():
        sizes[(element_bits(tensor.dtype) + 7) // 8] += tensor.n_bytes
    return sizes.most_common(1)[0][0]


SEEDS = 3  # searches for little traffic, from different seeds


@dataclass(frozen=True)
class OperatorMachine:
    onchip_bytes: int
    part: Any = "lpddr4-3200"
    encoder: str = "raw"


def machine_of(system: str) -> OperatorMachine:
    from edgewatt.config.loading import as_document, resolve

    data = resolve(as_document({"system": system})).data
    caches = data.get("caches") or []
    sizes = [int(level["size_bytes"]) for level in caches] + [int((data.get("scratchpad") or {}).get("size_bytes", 0))]
    part = (data.get("dram") or {}).get("part")
    if not max(sizes) or part is None:
        raise InputError(f"system {system!r} has no memory on the chip or not a DRAM: energy needs both")
    return OperatorMachine(max(sizes), part, data.get("encoder") or "raw")


def schedule(
    graph: OpGraph,
    *,
    objective: str = "peak",
    method: str = "best-first",
    rewrite: Sequence[str] | str = (),
    onchip_bytes: int | None = None,
    block_bytes: int = 256,
    allocator: str = "exact",
    alignment: int | str = ALIGNMENT,
    budget_bytes: int | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    evaluations: int = 5_000,
    progress: Progress | None = None,
    machine: OperatorMachine | str | None = None,
    **parameters: Any,
) -> Schedule:
    """Return an order of a graph's operators: see `reorder.operators.schedule.schedule.schedule`.

    objective 'energy' compares the order of least peak, the file's, Kahn's, a greedy one and the results of searches
    for little traffic. It returns the one whose off-chip transfers take the least energy on `machine` (a system's name,
    its file or an OperatorMachine): the best of these, not proved. `details["energy"]` is that order's, as
    edgewatt.operators.energy.operator_energy returns it; `details["candidates_pj"]` has all orders that were tried.
    method: of SCHEDULERS. rewrite: patterns, or 'all'. onchip_bytes, block_bytes: of the objective 'traffic'.
    allocator, alignment (bytes, or 'graph'): of the arena. budget_bytes: what it must fit in. evaluations:
    orders that a search tries. time_limit_s: then the best found. parameters: the method's own.
    Raises InputError for a graph, name or option that cannot be used.
    """
    options: dict[str, Any] = {
        "method": method, "rewrite": rewrite, "block_bytes": block_bytes, "allocator": allocator,
        "alignment": alignment, "budget_bytes": budget_bytes, "time_limit_s": time_limit_s,
        "evaluations": evaluations, "progress": progress, **parameters,
    }  # fmt: skip
    if objective != "energy":
        if machine is not None:
            raise InputError("a machine (--system) belongs to the objective 'energy' (--objective energy)")
        return plain.schedule(graph, objective=objective, onchip_bytes=onchip_bytes, seed=seed, **options)
    if machine is None:
        raise InputError("objective='energy' needs a machine (--system): the name of a system, or its file")
    on = machine_of(machine) if isinstance(machine, str) else machine
    options["onchip_bytes"] = on.onchip_bytes
    least = plain.schedule(graph, objective="peak", seed=seed, **options)
    results = [least]
    if least.traffic_bytes:
        results += [plain.schedule(graph, objective="traffic", seed=seed + k, **options) for k in range(SEEDS)]
    orders: dict[bytes, npt.NDArray[np.int64]] = {r.order.tobytes(): r.order for r in results}
    problem = OperatorProblem(least.graph)
    for order in problem.simple_orders():
        if budget_bytes is None or int(problem.costs.peak(order)) <= budget_bytes:
            orders.setdefault(order.astype(np.int64).tobytes(), order.astype(np.int64))
    energy = {
        key: operator_energy(
            least.graph, order, onchip_bytes=on.onchip_bytes, part=on.part, encoder=on.encoder, block_bytes=block_bytes,
            seed=seed,
        )
        for key, order in orders.items()
    }  # fmt: skip
    best = min(energy, key=lambda key: (energy[key]["total_pj"], key != least.order.tobytes()))
    chosen = next((r for r in results if r.order.tobytes() == best), None)
    if chosen is None:
        given = least.graph.in_order(orders[best].tolist())
        left = {"method", "rewrite", "time_limit_s", *parameters}
        again = plain.schedule(given, method="file", **{k: v for k, v in options.items() if k not in left})
        at = {name: k for k, name in enumerate(given.buffers)}
        chosen = replace(
            again, graph=least.graph, order=orders[best], lower_bound_bytes=least.lower_bound_bytes,
            offsets=again.offsets[[at[name] for name in least.graph.buffers]],
        )  # fmt: skip
    details = {
        **least.details, "energy": energy[best], "candidates_pj": sorted(e["total_pj"] for e in energy.values()),
    }  # fmt: skip
    return replace(chosen, objective="energy", method=least.method, states=least.states, proved=False, details=details)
