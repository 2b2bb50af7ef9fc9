"""From a layout and an order of work to the arrays the walk reads: steps, addresses, and the first memory image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.access.trace import STREAMS, Memory, Region
from traces.base.errors import InputError
from traces.layouts.layout import NEURON_FORMATS, Layout, choose_kind
from traces.work.network import ACTIVATIONS, Network

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Plan:
    """A network laid out for one order of work; K steps (connections in processing order, with ELLPACK padding).

    kind: the layout chosen. memory: regions and initial image, neuron values of all samples last.
    source, target: int32[K] neurons. weight: float32[K], decoded from the stored bits. bias: float32[N] as
        stored. slot: int64[K] element index.
    finish: uint8[K], 1 + activation number at the last step of a target, else 0.
    element: int64[E, 3] arrays read at each step: (image offset, bits per element, stream number).
    event_step, event_offset, event_size: structure loads before a step: int64, image offset int64, bytes uint8.
    neurons_offset: image offset of the neuron values; neuron_bytes each, sample_bytes per sample of n_samples.
    zeroed: stored non-zero weights that became zero in value_format. padding: steps that are ELLPACK padding.
    """

    kind: str
    memory: Memory
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    slot: Int64Array
    finish: npt.NDArray[np.uint8]
    element: Int64Array
    event_step: Int64Array
    event_offset: Int64Array
    event_size: npt.NDArray[np.uint8]
    neurons_offset: int
    neuron_bytes: int
    sample_bytes: int
    n_samples: int
    neuron_format: int
    registers: int
    zeroed: int
    padding: int

    @property
    def base_address(self) -> int:
        """Address of image byte 0."""
        return self.memory.base_address


def plan_layout(network: Network, edges: Int64Array, layout: Layout, samples: npt.NDArray[np.float32]) -> Plan:
    """Lay out `network`, processed in the order `edges` (int64[W]), for the input vectors `samples` (float32[B, I]).

    Returns the Plan. Raises InputError where the order does not allow the layout, ids do not fit id_bits, or the
    network has no weights. O(W + N B) time and memory.
    """
    if network.weights is None:
        raise InputError("the network has no weights, and a trace carries real bytes: give it weights first")
    from cython_ext.trace.walk import neuron_bits, neuron_values

    kind = choose_kind(network, edges, layout)
    steps = _Steps.of(network, edges, kind)
    bits, weight, value_bits, zeroed = _stored_weights(network.weights[edges], layout.value_format)
    bits, weight = steps.spread(bits), steps.spread(weight)

    source_ids, target_ids, id_bytes = _ids(network, steps, kind, layout)
    slot = steps.slots(kind, layout.row_alignment_bytes, value_bits, id_bytes)
    space = _Space(layout.base_address, layout.alignment_bytes)
    element: list[tuple[int, int, int]] = []

    def array(name: str, stream: str, ids: Int64Array) -> None:
        packed = _scatter(ids.astype(f"<u{id_bytes}"), slot)
        element.append((space.add(name, packed.view(np.uint8)), 8 * id_bytes, STREAMS.index(stream)))

    if kind == "tuples":
        records = _tuples(source_ids, target_ids, id_bytes, bits, value_bits)
        element.append((space.add("tuples", records.reshape(-1)), 8 * records.shape[1], STREAMS.index("tuples")))
    else:
        if kind != "csc":
            array("column_ids", "ids", source_ids)
        if kind in ("csc", "coo"):
            array("row_ids", "ids", target_ids)
        values = _pack(_scatter(bits, slot), layout.value_format)
        element.append((space.add("values", values), value_bits, STREAMS.index("values")))
    events = _structure(network, steps, kind, slot, space, id_bytes)

    neuron_bytes = NEURON_FORMATS[layout.neuron_format]
    neuron_format = list(NEURON_FORMATS).index(layout.neuron_format)
    neurons_offset = space.add("neurons", neuron_bits(_initial_values(network, samples), neuron_format))
    bias = network.biases if network.biases is not None else np.zeros(network.n_neurons, np.float32)
    finish = np.zeros(len(steps.source), np.uint8)
    last = np.zeros(network.n_neurons, np.int64)
    last[steps.target] = np.arange(len(steps.target))  # the last assignment to an index stays
    touched = np.flatnonzero(network.in_degree)
    finish[last[touched]] = 1
    if network.activation != "identity":
        active = touched if network.activation == "clipped-relu" else touched[~network.is_output[touched]]
        finish[last[active]] = 1 + ACTIVATIONS.index(network.activation)
    return Plan(
        kind=kind,
        memory=space.memory(),
        source=steps.source.astype(np.int32),
        target=steps.target.astype(np.int32),
        weight=weight,
        bias=neuron_values(neuron_bits(bias, neuron_format), neuron_format),
        slot=slot,
        finish=finish,
        element=np.array(element, np.int64),
        event_step=events[0],
        event_offset=events[1],
        event_size=events[2],
        neurons_offset=neurons_offset,
        neuron_bytes=neuron_bytes,
        sample_bytes=network.n_neurons * neuron_bytes,
        n_samples=len(samples),
        neuron_format=neuron_format,
        registers=int(layout.registers == "run"),
        zeroed=zeroed,
        padding=int(steps.is_padding.sum()),
    )


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps of the walk: connections in processing order, with the padding ELLPACK adds at the end of each row."""

    source: Int64Array
    target: Int64Array
    layer: Int64Array | None
    origin: Int64Array  # the position in the order each step comes from; padding repeats its row's last
    is_padding: npt.NDArray[np.bool_]
    run_start: Int64Array  # first step of each row (column in csc), plus the end

    @classmethod
    def of(cls, network: Network, edges: Int64Array, kind: str) -> _Steps:
        major = (network.sources if kind == "csc" else network.targets)[edges]
        run_start = np.r_[np.flatnonzero(np.r_[True, np.diff(major) != 0]), len(edges)]
        origin = np.arange(len(edges))
        is_padding = np.zeros(len(edges), bool)
        if kind == "ell":
            lengths = np.diff(run_start)
            group = network.layer[edges[run_start[:-1]]] if network.layer is not None else np.zeros(len(lengths), int)
            widest = np.zeros(int(group.max()) + 1, np.int64)
            np.maximum.at(widest, group, lengths)
            repeats = np.ones(len(edges), np.int64)
            repeats[run_start[1:] - 1] += widest[group] - lengths
            origin = np.repeat(origin, repeats)
            is_padding = np.r_[False, origin[1:] == origin[:-1]]
            run_start = np.r_[0, np.cumsum(widest[group])]
        at = edges[origin]
        layer = network.layer[at] if network.layer is not None else None
        return cls(network.sources[at], network.targets[at], layer, origin, is_padding, run_start)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return per-connection values (in processing order) per step; padding gets zero."""
        if len(self.origin) == len(values):
            return values
        spread = values[self.origin]
        spread[self.is_padding] = 0
        return spread

    def slots(self, kind: str, alignment: int | None, value_bits: int, id_bytes: int) -> Int64Array:
        """Return int64[K]: the element index of each step in the values and ids arrays."""
        slot = np.arange(len(self.source), dtype=np.int64)
        if alignment is None or kind not in ("csr", "csc", "ell"):
            return slot
        unit = max(alignment * 8 // value_bits, alignment // id_bytes, 1)  # powers of two: the larger holds both
        lengths = np.diff(self.run_start)
        start = np.r_[0, np.cumsum(-(-lengths // unit) * unit)][:-1]
        return slot + np.repeat(start - self.run_start[:-1], lengths)


class _Space:
    """Arrays one after another, each from an aligned base; offsets are relative to the first aligned address."""

    def __init__(self, base_address: int, alignment: int) -> None:
        self.base = -(-base_address // alignment) * alignment
        self.alignment = alignment
        self.parts: list[tuple[str, int, np.ndarray]] = []
        self.end = 0

    def add(self, name: str, data: npt.NDArray[np.uint8]) -> int:
        offset = -(-self.end // self.alignment) * self.alignment
        self.parts.append((name, offset, data))
        self.end = offset + len(data)
        return offset

    def memory(self) -> Memory:
        image = np.zeros(self.end, np.uint8)
        for _, offset, data in self.parts:
            image[offset : offset + len(data)] = data
        image.setflags(write=False)
        regions = tuple(Region(name, self.base + offset, len(data)) for name, offset, data in self.parts)
        return Memory(self.base, self.end, image, regions)


def _stored_weights(values: npt.NDArray[np.float32], name: str) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return (bits, decoded float32, bits per element, non-zeros that became zero) of the weights in a format."""
    from traces.formats import element_bits, from_bits, to_bits

    bits, scale, report = to_bits(values, name)
    decoded = np.ascontiguousarray(from_bits(bits, name, scale=scale), np.float32)
    return bits, decoded, element_bits(name), int(report.zeroed)


def _ids(network: Network, steps: _Steps, kind: str, layout: Layout) -> tuple[Int64Array, Int64Array, int]:
    """Return the stored source and target ids per step and the bytes of one id."""
    base = layout.id_base
    if base == "layer" and steps.layer is None:
        raise InputError("id_base 'layer' needs a layered network: use 'network'")
    if base is None:
        base = "layer" if steps.layer is not None and kind != "tuples" else "network"
    source, target = steps.source, steps.target
    if base == "layer":
        assert steps.layer is not None
        source, target = (ids - _lowest(ids, steps.layer) for ids in (source, target))
    stored = [source] if kind in ("csr", "ell") else [target] if kind == "csc" else [source, target]
    highest = max(int(ids.max()) for ids in stored)
    bits = layout.id_bits or (16 if highest < 2**16 else 32)
    if highest >= 2**bits:
        raise InputError(f"neuron id {highest} does not fit id_bits {bits}: use {16 if highest < 2**16 else 32}")
    return source, target, bits // 8


def _lowest(ids: Int64Array, layer: Int64Array) -> Int64Array:
    _, index = np.unique(layer, return_inverse=True)
    lowest = np.full(int(index.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(lowest, index, ids)
    return lowest[index]


def _scatter(values: np.ndarray, slot: Int64Array) -> np.ndarray:
    """Place the values at their slots; slots between rows stay zero."""
    if len(slot) == int(slot[-1]) + 1:
        return values
    placed = np.zeros(int(slot[-1]) + 1, values.dtype)
    placed[slot] = values
    return placed


def _pack(bits: np.ndarray, name: str) -> npt.NDArray[np.uint8]:
    from traces.formats import pack

    return np.asarray(pack(bits, name), np.uint8)


def _tuples(
    source: Int64Array, target: Int64Array, id_bytes: int, bits: np.ndarray, value_bits: int
) -> npt.NDArray[np.uint8]:
    """Return uint8[K, r]: source id, target id, weight bits, little-endian, packed; an int4 weight takes a byte."""
    fields = [ids.astype(f"<u{id_bytes}").view(np.uint8).reshape(-1, id_bytes) for ids in (source, target)]
    value_bytes = max(value_bits // 8, 1)
    fields.append(bits.astype(f"<u{value_bytes}").view(np.uint8).reshape(-1, value_bytes))
    return np.concatenate(fields, axis=1)


def _structure(
    network: Network, steps: _Steps, kind: str, slot: Int64Array, space: _Space, id_bytes: int
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.uint8]]:
    """Add pointer arrays to the space; return the loads they cost as (step, image offset, bytes).

    Rows whose targets ascend are stored as plain CSR: one pointer per row of the range, empty rows included, each
    loaded once (the end of a row is the start of the next one). In any other row order the rows are named: an id and
    a pointer per row that exists (doubly compressed, DCSR). ELLPACK rows need no pointers, only ids where they jump.
    """
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    if kind in ("coo", "tuples"):
        return none
    first = steps.run_start[:-1]
    major = (steps.source if kind == "csc" else steps.target)[first]
    what = "column" if kind == "csc" else "row"
    jumps = np.diff(major)
    ids_offset = None
    if (jumps < 0).any() or (kind == "ell" and (jumps != 1).any()):
        width = max(id_bytes, 2 if int(major.max()) < 2**16 else 4)
        ids_offset = space.add(f"{what}_index", major.astype(f"<u{width}").view(np.uint8))
        row, at_step = np.arange(len(major)), first
        id_events = (at_step, ids_offset + width * row, np.full(len(row), width, np.uint8))
        if kind == "ell":
            return id_events
    elif kind == "ell":
        return none
    else:
        row = major - major[0]
    n_rows = int(row[-1]) + 1
    start = np.zeros(n_rows + 1, np.int64)
    start[row] = slot[first]
    start[-1] = slot[-1] + 1
    filled = np.zeros(n_rows, bool)
    filled[row] = True
    # An empty row starts where the next one does; going backwards, starts never grow.
    start[:-1][~filled] = start[-1]
    start = np.minimum.accumulate(start[::-1])[::-1]
    width = 4 if int(start[-1]) < 2**32 else 8
    offset = space.add(f"{what}_pointers", start.astype(f"<u{width}").view(np.uint8))
    # Pointer r + 1 is loaded when row r begins; an empty row costs its pointer before the next row's.
    step_of_row = np.full(n_rows, len(steps.source), np.int64)
    step_of_row[row] = first
    step_of_row = np.minimum.accumulate(step_of_row[::-1])[::-1]
    pointer = np.arange(n_rows + 1)
    step = np.r_[0, step_of_row]
    size = np.full(n_rows + 1, width, np.uint8)
    if ids_offset is None:
        return step.astype(np.int64), offset + width * pointer, size
    step = np.r_[id_events[0], step]
    by_step = np.argsort(step, kind="stable")
    return (
        step[by_step].astype(np.int64),
        np.r_[id_events[1], offset + width * pointer][by_step],
        np.r_[id_events[2], size][by_step],
    )


def _initial_values(network: Network, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return float32[B * N], the neuron values before the first access: the input vector, elsewhere the bias."""
    values = np.zeros((len(samples), network.n_neurons), np.float32)
    if network.biases is not None:
        values[:] = network.biases
    values[:, network.inputs] = samples
    return values.reshape(-1)
