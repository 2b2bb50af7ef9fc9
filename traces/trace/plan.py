"""From a layout and an order of work to the arrays of a walk: steps, addresses, the first memory image, chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.base.memory import claim
from traces.formats import element_bits, from_bits, to_bits
from traces.layout.kind import LAYOUTS, LayoutKind, Space, Steps, Stored
from traces.layout.settings import BOTH_INT8, INT8, NEURON_FORMATS, Layout, choices
from traces.networks.forward import SLOPE, start_values
from traces.networks.network import Network, weights_of
from traces.networks.quantization import Quantized, quantized_network, to_bytes
from traces.trace.chunks import STREAMS, Chunk, Memory, Region

ROW_REGIONS = ("neurons", "partial_sums")
NEURON_STREAMS = tuple(STREAMS.index(name) for name in ("inputs", "partial_sums", "outputs"))
MOST_PAYLOAD_BYTES = 2**25  # per chunk, unless that leaves fewer than LEAST_ACCESSES
LEAST_ACCESSES = 64


class ChunkBuffers:
    """Columns of one chunk of at most `chunk_accesses` accesses, none wider than `widest` bytes."""

    def __init__(self, chunk_accesses: int, widest: int) -> None:
        self.capacity = min(chunk_accesses, max(MOST_PAYLOAD_BYTES // widest, LEAST_ACCESSES))
        self.widest = widest

    def fresh(self) -> tuple[np.ndarray, ...]:
        """Return new arrays address, size, op, stream, payload_offset, payload for a walk's `fill`."""
        n = self.capacity
        size = np.empty(n, np.uint8 if self.widest < 256 else np.uint16)
        columns: tuple[Any, ...] = (np.empty(n, np.uint64), size, np.empty(n, np.uint8), np.empty(n, np.uint8))
        self.columns = (*columns, np.empty(n + 1, np.int64), np.empty(n * self.widest, np.uint8))
        return self.columns

    def chunk(self, n: int, work: np.ndarray | None = None) -> Chunk:
        """Return the first n accesses of the arrays last handed out."""
        address, size, op, stream, offset, payload = self.columns
        return Chunk(address[:n], size[:n], op[:n], stream[:n], offset[: n + 1], payload[: offset[n]], work=work)


Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Plan:
    """A network laid out for one order of work; K steps (connections in processing order, with ELLPACK padding).

    kind: the layout chosen. memory: regions and initial image, neuron values of all samples last.
    source, target: int32[K] neurons. weight: float32[K], decoded from the stored bits. bias: float32[N] as
        stored. slot: int64[1 or 2, K] element index, in the second row of the stored weight.
    finish: uint8[K], 1 + activation number at the last step of a target, else 0. slope: float32[N], of leaky-relu.
    element: int64[E, 4] arrays read at each step: (image offset, bits per element, stream number, row of slot).
    event_step, event_offset, event_size, event_stream: structure loads before a step: int64, image offset int64,
        bytes uint8, stream number uint8.
    neurons_offset: image offset of the neuron rows of the first pass. A row holds `lanes` values of value_bytes each,
        in row_bytes; the next one starts row_pitch later, those of the next of n_passes pass_bytes later.
    sums_offset, sum_bytes, sum_pitch: the same of the rows of partial sums, which are those of the neurons but in int8.
    integers: int8: the network in 8 bits; its weights are those of `network`'s connections.
    is_output, is_computed: bool[N], neurons that are outputs; that have incoming connections.
    id_bytes: of a neuron's id. zeroed: stored non-zero weights that became zero in value_format.
    padding: steps that are ELLPACK padding.
    hand_over: uint8[K], 1 where another engine goes on: what was in registers goes through memory.
    """

    kind: str
    memory: Memory
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    slot: Int64Array
    finish: npt.NDArray[np.uint8]
    slope: npt.NDArray[np.float32]
    hand_over: npt.NDArray[np.uint8]
    element: Int64Array
    event_step: Int64Array
    event_offset: Int64Array
    event_size: npt.NDArray[np.uint8]
    event_stream: npt.NDArray[np.uint8]
    is_output: npt.NDArray[np.bool_]
    is_computed: npt.NDArray[np.bool_]
    neurons_offset: int
    lanes: int
    value_bytes: int
    row_pitch: int
    sums_offset: int
    sum_bytes: int
    sum_pitch: int
    n_passes: int
    neuron_format: int
    id_bytes: int
    registers: int
    zeroed: int
    padding: int
    integers: Quantized | None

    @property
    def base_address(self) -> int:
        return self.memory.base_address

    @property
    def row_bytes(self) -> int:
        return self.lanes * self.value_bytes

    @property
    def sum_row_bytes(self) -> int:
        return self.lanes * self.sum_bytes

    def bias_bytes(self, neurons: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
        """Return uint8[4 * n]: what the sums of neurons (int[n]) start from, fp32, or int32 beside bytes."""
        if self.integers is not None:
            return np.ascontiguousarray(self.integers.start[neurons], "<i4").view(np.uint8)
        return np.ascontiguousarray(self.bias[neurons], "<f4").view(np.uint8)

    @property
    def widest_access(self) -> int:
        """Bytes of the widest access of a walk, at least 8."""
        return max(8, self.sum_row_bytes, *(int(bits + 7) // 8 for bits in self.element[:, 1]))

    @property
    def element_bytes(self) -> dict[str, int]:
        """Bytes of one element of each stream: of an id, a weight, a neuron value, a record of all three."""
        widths = {(stream, max(1, bits // 8)) for _, bits, stream, _ in self.element.tolist()}
        loads = np.unique(self.event_stream.astype(np.int64) * 256 + self.event_size).tolist()
        widths |= {divmod(load, 256) for load in loads}
        n_bytes = {STREAMS[stream]: self.value_bytes for stream in NEURON_STREAMS} | {"partial_sums": self.sum_bytes}
        for stream, width in sorted(widths, reverse=True):
            n_bytes[STREAMS[stream]] = width
        return n_bytes

    @property
    def pass_bytes(self) -> int:
        return len(self.bias) * self.row_pitch

    @property
    def sum_pass_bytes(self) -> int:
        return len(self.bias) * self.sum_pitch


def plan_layout(network: Network, edges: Int64Array, layout: Layout, samples: npt.NDArray[np.float32]) -> Plan:
    """Lay out `network`, processed in the order `edges` (int64[W]), for the input vectors `samples` (float32[B, I]).

    Returns the Plan. Raises InputError where the order does not allow the layout, ids do not fit id_bits, or the
    network has no weights. O(W + N B) time and memory.
    """
    weights_of(network, "a trace, which carries real bytes,")
    from cython_ext.trace.walk import neuron_bits, neuron_values

    kind = smallest_kind(network, edges, layout)
    member = LAYOUTS[kind].item
    integers = None
    if layout.neuron_format == INT8:
        if layout.value_format != INT8:
            raise InputError(f"neuron_format int8 needs weights in int8, not {layout.value_format}: {BOTH_INT8}")
        integers = quantized_network(network, samples)
    stored, weight, zeroed = _stored(network, edges, layout, member, integers)
    steps, slot = stored.steps, stored.slot
    space = Space(layout.base_address, layout.alignment_bytes)
    elements, loads = member.store(stored, space)

    neuron_format = list(NEURON_FORMATS).index(layout.neuron_format)
    lanes, row_pitch = layout.lanes, layout.row_pitch
    values = _initial_values(network, samples, lanes)
    if integers is None:
        rows = _rows(neuron_bits(values.reshape(-1), neuron_format), values.shape, row_pitch)
    else:
        held = to_bytes(values.transpose(0, 2, 1), integers.scale, integers.zero).transpose(0, 2, 1)
        rows = _rows(np.ascontiguousarray(held).reshape(-1), values.shape, row_pitch)
    neurons_offset = sums_offset = space.add("neurons", rows.reshape(-1))
    if integers is not None:
        start = np.where(network.in_degree > 0, integers.start, 0).astype("<i4")
        sums = np.broadcast_to(start[None, :, None], values.shape)
        sums = _rows(np.ascontiguousarray(sums).reshape(-1).view(np.uint8), values.shape, layout.sum_pitch)
        sums_offset = space.add("partial_sums", sums.reshape(-1))
    bias = network.biases if network.biases is not None else np.zeros(network.n_neurons, np.float32)
    finish = np.zeros(len(steps.source), np.uint8)
    last = np.zeros(network.n_neurons, np.int64)
    last[steps.target] = np.arange(len(steps.target))  # the last assignment to an index stays
    touched = np.flatnonzero(network.in_degree)
    finish[last[touched]] = 1 + network.codes[touched]
    return Plan(
        kind=kind,
        memory=memory_of(space),
        source=steps.source.astype(np.int32),
        target=steps.target.astype(np.int32),
        weight=weight,
        bias=bias if integers is not None else neuron_values(neuron_bits(bias, neuron_format), neuron_format),
        slot=np.stack((slot,) if stored.weight_slot is None else (slot, stored.weight_slot)),
        finish=finish,
        slope=np.full(network.n_neurons, SLOPE) if network.slopes is None else network.slopes,
        hand_over=np.zeros(len(finish), np.uint8),
        element=np.array([(e.offset, e.bits, STREAMS.index(e.stream), e.by_weight) for e in elements], np.int64),
        event_step=loads.step,
        event_offset=loads.offset,
        event_size=loads.size,
        event_stream=_stream_numbers(loads.stream),
        is_output=network.is_output,
        is_computed=network.in_degree > 0,
        neurons_offset=neurons_offset,
        lanes=lanes,
        value_bytes=NEURON_FORMATS[layout.neuron_format],
        row_pitch=row_pitch,
        sums_offset=sums_offset,
        sum_bytes=layout.sum_row_bytes // lanes,
        sum_pitch=layout.sum_pitch,
        n_passes=len(rows),
        neuron_format=neuron_format,
        id_bytes=stored.id_bytes,
        registers=int(layout.registers == "run"),
        zeroed=zeroed,
        padding=int(steps.is_padding.sum()),
        integers=integers,
    )


def smallest_kind(network: Network, edges: Int64Array, layout: Layout) -> str:
    """Return the layout kind with the fewest bytes of connections among its `choices`."""
    names = choices(network, edges, layout)
    if len(names) == 1:
        return names[0]
    sizes = {}
    for name in names:
        member, space = LAYOUTS[name].item, Space(0, 1)
        member.store(_stored(network, edges, layout, member, None)[0], space)
        sizes[name] = space.end
    return min(sizes, key=lambda name: sizes[name])


def _stored(
    network: Network, edges: Int64Array, layout: Layout, member: LayoutKind, integers: Quantized | None
) -> tuple[Stored, npt.NDArray[np.float32], int]:
    assert network.weights is not None
    steps, ids_of = member.steps(network, edges), network.weight_ids if layout.neuron_format != INT8 else None
    values, weight_slot = network.weights[edges], None
    if ids_of is not None:  # padding has a stored weight of its own, the last
        values = np.zeros(int(ids_of.max()) + 1 + steps.is_padding.any(), np.float32)
        values[ids_of] = network.weights
        weight_slot = ids_of[edges][steps.origin]
        weight_slot[steps.is_padding] = len(values) - 1

    def spread(of_values: np.ndarray) -> np.ndarray:
        return steps.spread(of_values) if weight_slot is None else of_values[weight_slot]

    if integers is None:
        bits, scale, report = to_bits(values, layout.value_format)
        weight = np.ascontiguousarray(from_bits(bits, layout.value_format, scale=scale), np.float32)
        value_bits, zeroed = element_bits(layout.value_format), report.zeroed
    else:  # each in steps of its target's scale, so none is shared
        whole = integers.weights[edges]
        bits, weight, value_bits = whole.view(np.uint8), whole.astype(np.float32), 8
        zeroed = int(np.count_nonzero((whole == 0) & (values != 0)))
    ids, id_bytes = _ids(steps, member, layout)
    slot = _slots(steps, layout.row_alignment_bytes if member.has_rows else None, value_bits, id_bytes)
    kept = None if weight_slot is None else bits
    stored = Stored(steps, ids, id_bytes, spread(bits), value_bits, layout.value_format, slot, weight_slot, kept)
    return stored, spread(weight), zeroed


def _stream_numbers(names: npt.NDArray[np.str_]) -> npt.NDArray[np.uint8]:
    streams, index = np.unique(names, return_inverse=True)
    return np.array([STREAMS.index(name) for name in streams], np.uint8)[index]


def _slots(steps: Steps, row_alignment: int | None, value_bits: int, id_bytes: int) -> Int64Array:
    if row_alignment is None:
        return np.arange(len(steps.source), dtype=np.int64)
    # powers of two: the larger holds both
    slots = steps.aligned_slots(max(row_alignment * 8 // value_bits, row_alignment // id_bytes, 1))
    elements = int(slots[-1]) + 1 if len(slots) else 0
    claim(elements * (id_bytes + value_bits // 8), f"row_alignment_bytes {row_alignment}", "the memory with all rows")
    return slots


def memory_of(space: Space) -> Memory:
    claim(space.end, f"alignment_bytes {space.alignment}", "the memory with all arrays")
    regions = tuple(Region(name, space.base + offset, len(data)) for name, offset, data in space.parts)
    return Memory(space.base, space.end, space.image(), regions)


def _ids(steps: Steps, member: LayoutKind, layout: Layout) -> tuple[dict[str, Int64Array], int]:
    base = layout.id_base
    if base == "layer" and steps.layer is None:
        raise InputError("id_base 'layer' needs a layered network: use 'network'")
    if base is None:
        base = "layer" if steps.layer is not None and member.ids_per_layer else "network"
    ids = {"source": steps.source, "target": steps.target}
    if base == "layer":
        assert steps.layer is not None
        ids = {end: each - _lowest(each, steps.layer) for end, each in ids.items()}
    highest = max(int(ids[end].max()) for end in member.ids)
    bits = layout.id_bits or (16 if highest < 2**16 else 32)
    if highest >= 2**bits:
        raise InputError(f"neuron id {highest} does not fit id_bits {bits}: use {16 if highest < 2**16 else 32}")
    return ids, bits // 8


def _lowest(ids: Int64Array, layer: Int64Array) -> Int64Array:
    _, index = np.unique(layer, return_inverse=True)
    lowest = np.full(int(index.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(lowest, index, ids)
    return lowest[index]


def _initial_values(network: Network, samples: npt.NDArray[np.float32], lanes: int) -> npt.NDArray[np.float32]:
    """Return float32[passes, N, lanes], what rows hold before the first access: input vectors, or `start_values`."""
    n_passes = -(-len(samples) // lanes)
    values = np.tile(start_values(network), (n_passes * lanes, 1))
    values[:, network.inputs] = 0
    values[: len(samples), network.inputs] = samples
    return np.ascontiguousarray(values.reshape(n_passes, lanes, -1).transpose(0, 2, 1))


def _rows(stored: npt.NDArray[np.uint8], shape: tuple[int, ...], pitch: int) -> npt.NDArray[np.uint8]:
    stored = stored.reshape(*shape[:2], -1)
    if stored.shape[2] == pitch:
        return stored
    rows = np.zeros((*shape[:2], pitch), np.uint8)
    rows[:, :, : stored.shape[2]] = stored
    return rows
